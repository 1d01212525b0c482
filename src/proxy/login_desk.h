/* proxy/login_desk.h - checks passwords on a thread of its own, since each takes its time, and
 * keeps those away who guess. */
#ifndef WEIR_PROXY_LOGIN_DESK_H
#define WEIR_PROXY_LOGIN_DESK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/usec.h"
#include "core/throttle.h"
#include "proxy/users.h"
#include "runtime/digest.h"
#include "runtime/mailbox.h"

/* One password to be checked. Made by a worker, and again the worker's when it has been. */
struct login_check {
        struct list link; /* the desk's */
        unsigned worker;
        struct users *users; /* held */
        size_t user;         /* its index, or USERS_NOBODY */
        char *password;      /* owned */
        uint8_t source[THROTTLE_KEY_SIZE];
        bool good; /* what came of it */
        /* the worker's own: */
        struct list pending, waiters;
        uint8_t digest[DIGEST_SIZE];
        char address[INET6_ADDRSTRLEN];
};
void login_check_free(struct login_check *c);

struct login_desk;

struct login_desk *login_desk_new(unsigned workers);
void login_desk_free(struct login_desk *d); /* the workers have ended; NULL is fine */

/* Before the workers run: who is told when a password of theirs has been checked. */
void login_desk_attach(struct login_desk *d, unsigned worker, struct mailbox *mailbox);

/* How long nobody from there may try, because of wrong passwords: ten at once, then one in six
 * seconds. 0: they may. By any thread. */
usec_t login_desk_wait(struct login_desk *d, const uint8_t source[THROTTLE_KEY_SIZE]);

/* Takes `c` over, in order. False: too many wait already, of that source or of all; it stays the
 * caller's. */
bool login_desk_ask(struct login_desk *d, struct login_check *c);

/* The worker's next one that has been checked; NULL: none. */
struct login_check *login_desk_next(struct login_desk *d, unsigned worker);

#endif
