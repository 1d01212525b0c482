/* egress/attempt_lookup.c - finds the host's address for a proxy that is to be told addresses, so
 * that the guard can look at it: libcurl would look it up by itself, and show it to nobody. */
#include "egress/attempt.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

#include "egress/guard.h"

/*
 * libcurl is made to believe that it connects directly. It looks up the name for that, asks for a
 * socket for each address, and gets none. What it knows of the name then is kept in its cache, but
 * an address that has passed the guard is handed to the proxy as such all the same.
 */
void attempt_lookup_begin(struct attempt *a)
{
        curl_easy_setopt(a->easy, CURLOPT_PROXY, "");
        curl_easy_setopt(a->easy, CURLOPT_CONNECT_ONLY, 1L);
        a->lookup.on = true;
        a->lookup.address[0] = '\0';
}

void attempt_lookup_see(struct attempt *a, const struct sockaddr *sa)
{
        char text[INET6_ADDRSTRLEN];
        bool v6 = sa->sa_family == AF_INET6;
        const void *address =
            v6 ? (const void *)&((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr
               : &((const struct sockaddr_in *)(const void *)sa)->sin_addr;
        if (!guard_allows(a->deny, a->allow, sa))
                a->denied = true;
        else if (!a->lookup.address[0] && inet_ntop(sa->sa_family, address, text, sizeof text))
                snprintf(a->lookup.address, sizeof a->lookup.address,
                         v6 ? "::[%s]:" : "::%s:", text);
}

enum upstream_error attempt_lookup_end(struct attempt *a, CURLcode code)
{
        a->lookup.on = false;
        curl_easy_setopt(a->easy, CURLOPT_PROXY, a->set.proxy);
        curl_easy_setopt(a->easy, CURLOPT_CONNECT_ONLY, a->set.dial ? 1L : 0L);
        if (!a->lookup.address[0]) {
                if (a->denied)
                        return UPSTREAM_DESTINATION_IP_PROHIBITED;
                return code == CURLE_OPERATION_TIMEDOUT ? UPSTREAM_DNS_TIMEOUT : UPSTREAM_DNS_ERROR;
        }
        a->lookup.node = (struct curl_slist){a->lookup.address, NULL};
        curl_easy_setopt(a->easy, CURLOPT_CONNECT_TO, &a->lookup.node);
        a->lookup.pinned = true;
        return UPSTREAM_OK;
}

void attempt_lookup_forget(struct attempt *a)
{
        if (a->lookup.pinned)
                curl_easy_setopt(a->easy, CURLOPT_CONNECT_TO, NULL);
        a->lookup.pinned = false;
}
