/* runtime/listener.h - opens the sockets that the proxy listens on. */
#ifndef WEIR_RUNTIME_LISTENER_H
#define WEIR_RUNTIME_LISTENER_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

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

/* Why an address cannot be listened on and what to do, as one plain line; the caller frees it.
 *
 * r        what listener_bind or listener_listen returned
 * setting  where the address is set, for people
 */
char *listener_fault(int r, const char *address, const char *setting);

/* A local socket in the file system, to be removed by those who made it. */
struct listener_local {
        char *path; /* owned; NULL: there is none */
        dev_t device;
        ino_t inode;
};

/* Of an address that was just opened; of a TCP one there is nothing to note. */
void listener_local_note(const char *address, struct listener_local *ret);

/* Removes it, unless another process has put its own socket there since. */
void listener_local_remove(struct listener_local *l);

#endif
