/* cli/run.h - `weir run`: the proxy in the foreground. */
#ifndef WEIR_CLI_RUN_H
#define WEIR_CLI_RUN_H

int run_main(int argc, char **argv);

#endif
