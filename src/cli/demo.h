/* cli/demo.h - `weir demo`: a host with a hidden limit, weir and its clients in one process. */
#ifndef WEIR_CLI_DEMO_H
#define WEIR_CLI_DEMO_H

/* argv[0] is the command's name. Returns the exit status. */
int demo_main(int argc, char **argv);

#endif
