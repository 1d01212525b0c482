#include "proxy/request_scope.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "core/scope_key.h"
#include "runtime/digest.h"
#include "runtime/public_suffix.h"

/* The values of all fields of that name, as if they were one; NULL: there is none. */
static char *values_of(const struct fields *fields, struct span name, size_t *ret_len)
{
        static const char between[] = ", ";
        size_t len = 0, count = 0;
        struct span value;
        for (size_t i = 0; fields_find(fields, i, name, &value, &i); i++, count++)
                len += value.len + strlen(between);
        if (count == 0)
                return NULL;
        char *all = xmalloc(len), *end = all;
        for (size_t i = 0; fields_find(fields, i, name, &value, &i); i++) {
                if (end > all)
                        end = mempcpy(end, between, strlen(between));
                end = mempcpy(end, value.ptr, value.len);
        }
        *ret_len = (size_t)(end - all);
        return all;
}

static struct span digest_of(const struct fields *fields, struct span name,
                             char text[DIGEST_TEXT_SIZE])
{
        size_t len;
        char *values = values_of(fields, name, &len);
        if (!values)
                return (struct span){NULL, 0};
        digest_text((struct span){values, len}, text);
        free(values);
        return span_of(text);
}

char *request_scope_key(const struct request_scope *r)
{
        char texts[SCOPE_MAX_PARTS][DIGEST_TEXT_SIZE], *domain = NULL;
        struct span digests[SCOPE_MAX_PARTS];
        size_t headers = 0;
        for (size_t i = 0; i < r->policy->scope_count; i++) {
                const struct scope_part *part = &r->policy->scope[i];
                if (part->kind == SCOPE_DOMAIN)
                        domain = public_suffix_domain(r->host);
                if (part->kind != SCOPE_HEADER)
                        continue;
                digests[headers] = digest_of(r->fields, part->name, texts[headers]);
                headers++;
        }
        struct scope_subject subject = {
            .host = span_of(r->host),
            .port = r->port,
            .domain = span_of(domain),
            .rule = span_of(r->policy->name),
            .client = r->client,
            .session = r->session,
            .pool = span_of(r->policy->pool ? r->policy->pool->name : NULL),
            .path = r->target,
            .header_digests = digests,
        };
        char *key = scope_key_new(r->policy->scope, r->policy->scope_count, &subject);
        free(domain);
        return key;
}
