/* proxy/login.h - whether the client of a request has said who it is, where that is asked for. */
#ifndef WEIR_PROXY_LOGIN_H
#define WEIR_PROXY_LOGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "proxy/users.h"
#include "runtime/digest.h"

struct exchange;
struct worker;

/* What a worker knows of passwords: those that were right, by digests that only this process can
 * make, so that each is checked at length but once. */
struct login_book {
        struct users *users; /* held; NULL: nobody is asked */
        struct login_known {
                bool yes;
                uint8_t digest[DIGEST_SIZE];
        } * known;           /* by index of the user */
        struct list pending; /* checks that the desk has */
};

void login_book_init(struct login_book *b);
void login_book_done(struct login_book *b);

/* Another reading of the file; takes the reference over. What the old one knew is forgotten. */
void login_book_use(struct login_book *b, struct users *users);

/*
 * May the request go on? Takes the session from the user's name where Weir-Session names none.
 *
 * False: it was refused; or its password is being checked, and exchange_begin or a refusal follows.
 */
bool login_admit(struct exchange *ex);

/* Passwords have been checked: what waited for that goes on, or is refused. */
void login_take_checked(struct worker *w);

/* The exchange ends. */
void login_leave(struct exchange *ex);

#endif
