/* runtime/listener.h - opens the sockets that the proxy listens on. */
#ifndef WEIR_RUNTIME_LISTENER_H
#define WEIR_RUNTIME_LISTENER_H

#include <stddef.h>
#include <sys/socket.h>

#define LISTENER_TEXT_SIZE 128

/*
 * Binds `address` ("127.0.0.1:8080", "[::1]:8080", "unix:/path") once for each worker, the TCP ones
 * with SO_REUSEPORT so that the kernel spreads connections; a port of 0 takes a free one, the same
 * for all. A local socket is one socket shared by all, as duplicates.
 *
 * ret_fds   `count` non-blocking descriptors, on which nobody can connect before listener_listen
 * ret_text  the address as bound, for people
 * ret_port  0 for a local socket
 *
 * Returns 0, or -errno with nothing left open.
 */
int listener_bind(const char *address, size_t count, int *ret_fds,
                  char ret_text[static LISTENER_TEXT_SIZE], unsigned *ret_port);

/* 0 or -errno. */
int listener_listen(int fd);

/*
 * Makes use of a socket that another process has opened: it becomes non-blocking, for that process
 * too.
 *
 * ret_text  its address, as `listen` has them
 * ret_port  0 for a local socket
 *
 * Returns 0, -EPROTOTYPE where it is no listening stream socket of IP or a local one, or -errno.
 */
int listener_adopt(int fd, char ret_text[static LISTENER_TEXT_SIZE], unsigned *ret_port);

#endif
