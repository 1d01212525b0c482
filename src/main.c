/* main.c - the command line: finds the command and hands over. */
#include <stdio.h>

int main(void)
{
        fputs("weir: no command is built yet\n", stderr);
        return 2;
}
