/* cli/check.h - `weir check`: says what is wrong with a configuration file. */
#ifndef WEIR_CLI_CHECK_H
#define WEIR_CLI_CHECK_H

/* Prints each fault as FILE:LINE:COLUMN: KEY: WHAT on stderr, or "FILE: ok" on stdout. Returns the
 * exit status: 0, 1 where there are faults, 2 for a wrong command line. argv[0] is "check". */
int check_main(int argc, char **argv);

#endif
