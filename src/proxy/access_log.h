/* proxy/access_log.h - one JSON line for each request that has ended. */
#ifndef WEIR_PROXY_ACCESS_LOG_H
#define WEIR_PROXY_ACCESS_LOG_H

#include <stddef.h>

#include "base/span.h"
#include "base/usec.h"
#include "core/answer_class.h"
#include "core/outcome.h"
#include "runtime/sink.h"

struct access_entry {
        usec_t real; /* wall clock at the arrival */
        const char *client;
        const char *user; /* NULL: nobody is asked for a name */
        struct span method;
        const char
            *url; /* as the client sent it; values of the query that look secret are hidden */
        const char *scope; /* NULL: none was found */
        const char *class; /* NULL: there was no answer */
        int status;        /* as the client saw it; 0: it saw none */
        unsigned attempts;
        usec_t queued, duration;
        struct {
                usec_t connect, first_byte, total; /* of the last attempt */
                const char *address;               /* "" none */
                const char *endpoint;              /* "POOL/NAME", "direct"; NULL: never sent */
                const char *exit; /* the address that the host saw; "" or NULL: not known */
        } upstream;
        size_t bytes_in, bytes_out; /* of the bodies */
        enum outcome outcome;
};

void access_log_write(struct sink *sink, const struct access_entry *entry);

#endif
