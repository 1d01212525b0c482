#include "proxy/login.h"

#include <event2/http.h>
#include <event2/http_struct.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/random.h>

#include "base/secret.h"
#include "base/xalloc.h"
#include "proxy/client.h"
#include "proxy/exchange_state.h"
#include "proxy/login_desk.h"
#include "proxy/worker.h"
#include "runtime/log.h"

/* ---- the book ---- */

void login_book_init(struct login_book *b)
{
        *b = (struct login_book){.users = NULL};
        list_init(&b->pending);
}

void login_book_done(struct login_book *b)
{
        users_unref(b->users);
        free(b->known);
}

void login_book_use(struct login_book *b, struct users *users)
{
        users_unref(b->users);
        free(b->known);
        b->users = users;
        b->known = users ? xcalloc(users_count(users) + 1, sizeof *b->known) : NULL;
}

/* ---- digests and sources ---- */

/* A key of this process alone: its memory is of no use to those who would guess at leisure. */
static struct span own_key(void)
{
        static _Thread_local uint8_t key[32];
        static _Thread_local bool made;
        if (!made && getrandom(key, sizeof key, 0) != sizeof key)
                abort();
        made = true;
        return (struct span){(const char *)key, sizeof key};
}

static void digest_of(const struct credentials *c, uint8_t ret[DIGEST_SIZE])
{
        const struct span texts[] = {own_key(), span_of(c->name), span_of(c->password)};
        digest_bytes(texts, sizeof texts / sizeof texts[0], ret);
}

static bool same(const uint8_t a[DIGEST_SIZE], const uint8_t b[DIGEST_SIZE])
{
        return secret_equal((struct span){(const char *)a, DIGEST_SIZE},
                            (struct span){(const char *)b, DIGEST_SIZE});
}

/* Whose failures are counted together: an address; of IPv6 the first half, which is what one gets
 * of a network; all local sockets. */
static void source_of(const struct client *c, uint8_t ret[THROTTLE_KEY_SIZE])
{
        static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
        const struct sockaddr_in *in = (const struct sockaddr_in *)&c->peer;
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&c->peer;
        memset(ret, 0, THROTTLE_KEY_SIZE);
        if (c->peer.ss_family == AF_INET) {
                memcpy(ret, mapped, sizeof mapped);
                memcpy(ret + sizeof mapped, &in->sin_addr, sizeof in->sin_addr);
        } else if (c->peer.ss_family == AF_INET6) {
                bool is_v4 = IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
                memcpy(ret, &in6->sin6_addr, is_v4 ? 16 : 8);
        }
}

/* ---- verdicts ---- */

static void refuse(struct exchange *ex, int status, const char *text, usec_t retry_after)
{
        exchange_refuse(ex, OUTCOME_DENIED,
                        &(struct reply_refusal){.status = status,
                                                .error = "http_request_denied",
                                                .detail = "",
                                                .text = text,
                                                .retry_after = retry_after});
}

static void ask_for_name(struct exchange *ex)
{
        refuse(ex, 407, "This proxy asks for a user name and password (clients.users).", 0);
}

/* False where it was refused. */
static bool take_session(struct exchange *ex)
{
        const struct credentials *c = &ex->credentials;
        if (!c->session || steering_offer_session(&ex->message.steering, span_of(c->session)))
                return true;
        exchange_refuse(ex, OUTCOME_REFUSED,
                        &(struct reply_refusal){
                            .status = 400,
                            .error = "http_request_error",
                            .detail = "",
                            .text = "The session in the proxy's user name is not 1 to 128 visible "
                                    "ASCII characters.",
                        });
        return false;
}

/* The password was right, going by `users`. What goes through a tunnel that is opened here comes
 * from the same user. */
static bool let_in(struct exchange *ex, const struct users *users,
                   const uint8_t digest[DIGEST_SIZE])
{
        struct client *c = ex->client;
        ex->user = ex->credentials.name;
        memcpy(c->login, digest, DIGEST_SIZE);
        c->login_serial = users_serial(users);
        if (ex->message.connect) {
                free(c->user);
                c->user = xstrdup(ex->user);
        }
        return take_session(ex);
}

/* ---- what is known already ---- */

static bool is_known(const struct exchange *ex, size_t user, const uint8_t digest[DIGEST_SIZE])
{
        const struct login_known *known = ex->worker->logins.known;
        return user != USERS_NOBODY && known[user].yes && same(known[user].digest, digest);
}

/* The same connection has brought it before. */
static bool was_let_in(const struct exchange *ex, const uint8_t digest[DIGEST_SIZE])
{
        const struct client *c = ex->client;
        return c->login_serial == users_serial(ex->worker->logins.users) && same(c->login, digest);
}

/* The same is being checked for the same address: once will do. */
static struct login_check *find_pending(const struct exchange *ex,
                                        const uint8_t digest[DIGEST_SIZE])
{
        const struct login_book *b = &ex->worker->logins;
        list_foreach (it, &b->pending) {
                struct login_check *c = LIST_ENTRY_OF(it, struct login_check, pending);
                if (c->users == b->users && same(c->digest, digest) &&
                    strcmp(c->address, ex->client->address) == 0)
                        return c;
        }
        return NULL;
}

static struct login_check *check_new(struct exchange *ex, size_t user,
                                     const uint8_t digest[DIGEST_SIZE])
{
        struct login_check *c = xcalloc(1, sizeof *c);
        c->worker = ex->worker->index;
        c->users = users_ref(ex->worker->logins.users);
        c->user = user;
        c->password = xstrdup(ex->credentials.password);
        source_of(ex->client, c->source);
        list_init(&c->link);
        list_init(&c->pending);
        list_init(&c->waiters);
        memcpy(c->digest, digest, DIGEST_SIZE);
        strcpy(c->address, ex->client->address);
        return c;
}

static bool wait_for_check(struct exchange *ex, size_t user, const uint8_t digest[DIGEST_SIZE])
{
        struct login_check *c = find_pending(ex, digest);
        if (!c) {
                c = check_new(ex, user, digest);
                if (!login_desk_ask(ex->worker->shared->logins, c)) {
                        login_check_free(c);
                        refuse(ex, 503, "Too many passwords wait to be checked.", USEC_PER_SEC);
                        return false;
                }
                list_append(&ex->worker->logins.pending, &c->pending);
        }
        list_append(&c->waiters, &ex->login_link);
        return false;
}

static bool check(struct exchange *ex)
{
        const struct users *users = ex->worker->logins.users;
        uint8_t digest[DIGEST_SIZE], source[THROTTLE_KEY_SIZE];
        digest_of(&ex->credentials, digest);
        if (was_let_in(ex, digest))
                return let_in(ex, users, digest);
        /* Before the book is asked: else it could be asked as often as one likes. */
        source_of(ex->client, source);
        usec_t wait = login_desk_wait(ex->worker->shared->logins, source);
        if (wait > 0) {
                refuse(ex, 429, "Too many wrong passwords came from your address.", wait);
                return false;
        }
        size_t user = users_find(users, ex->credentials.name);
        if (is_known(ex, user, digest))
                return let_in(ex, users, digest);
        return wait_for_check(ex, user, digest);
}

/* ---- the way in ---- */

/* The one field of that name; NULL: there is none, or more than one. */
static const char *field_of(const struct evhttp_request *req)
{
        const struct evkeyval *kv;
        const char *found = NULL;
        TAILQ_FOREACH(kv, req->input_headers, next)
        {
                if (strcasecmp(kv->key, "Proxy-Authorization") != 0)
                        continue;
                if (found)
                        return NULL;
                found = kv->value;
        }
        return found;
}

bool login_admit(struct exchange *ex)
{
        struct client *c = ex->client;
        if (c->intercept) {
                ex->user = c->user;
                return true;
        }
        const char *field = field_of(ex->req);
        bool given = field && credentials_read(field, &ex->credentials);
        if (!ex->worker->logins.users)
                return !given || take_session(ex);
        if (!given) {
                ask_for_name(ex);
                return false;
        }
        return check(ex);
}

static void note_checked(struct worker *w, const struct login_check *c)
{
        metrics_add(w->metrics, METRIC_LOGINS, c->good, 1);
        if (!c->good)
                log_warn("wrong user name or password from %s", c->address);
        else if (c->users == w->logins.users) {
                struct login_known *known = &w->logins.known[c->user];
                known->yes = true;
                memcpy(known->digest, c->digest, DIGEST_SIZE);
        }
}

static void end_wait(struct exchange *ex, const struct login_check *c)
{
        list_remove(&ex->login_link);
        if (!c->good)
                ask_for_name(ex);
        else if (let_in(ex, c->users, c->digest))
                exchange_begin(ex);
}

void login_take_checked(struct worker *w)
{
        for (struct login_check *c; (c = login_desk_next(w->shared->logins, w->index));) {
                list_remove(&c->pending);
                note_checked(w, c);
                while (!list_empty(&c->waiters))
                        end_wait(LIST_ENTRY_OF(c->waiters.next, struct exchange, login_link), c);
                login_check_free(c);
        }
}

void login_leave(struct exchange *ex)
{
        list_remove(&ex->login_link);
        credentials_done(&ex->credentials);
}
