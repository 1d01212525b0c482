/* cli/explain.h - weir explain: what would apply to a URL, and which line of the file says so. */
#ifndef WEIR_CLI_EXPLAIN_H
#define WEIR_CLI_EXPLAIN_H

/* Returns the exit status: 0, 1 where the configuration has faults, 2 for a bad command line. */
int explain_main(int argc, char **argv);

#endif
