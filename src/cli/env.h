/* cli/env.h - `weir env`: what a shell has to set so that its commands use a running proxy. */
#ifndef WEIR_CLI_ENV_H
#define WEIR_CLI_ENV_H

int env_main(int argc, char **argv);

#endif
