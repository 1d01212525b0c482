/* cli/ca.h - `weir ca`: the CA in whose name HTTPS is opened, made and shown. */
#ifndef WEIR_CLI_CA_H
#define WEIR_CLI_CA_H

int ca_main(int argc, char **argv);

#endif
