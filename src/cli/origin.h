/* cli/origin.h - `weir origin`: a host with a hidden limit, to practise against. */
#ifndef WEIR_CLI_ORIGIN_H
#define WEIR_CLI_ORIGIN_H

/* argv[0] is the command's name. Returns the exit status. */
int origin_main(int argc, char **argv);

#endif
