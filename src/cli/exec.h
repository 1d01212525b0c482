/* cli/exec.h - `weir exec`: a proxy for one command, which is told of it by its environment. */
#ifndef WEIR_CLI_EXEC_H
#define WEIR_CLI_EXEC_H

int exec_main(int argc, char **argv);

#endif
