/* admin/door.h - who may come in: what a request's fields must say. */
#ifndef WEIR_ADMIN_DOOR_H
#define WEIR_ADMIN_DOOR_H

#include <stdbool.h>

/*
 * Is the value of Host an address, or localhost? A web page can have its own name lead here (DNS
 * rebinding), but no address, and then read what is told.
 *
 * host  NULL: there is none, as HTTP/1.0 allows it and no browser does it
 */
bool door_host_is_safe(const char *host);

/* Is `authorization` "Bearer TOKEN" (RFC 6750, 2.1)? Takes the same time wherever it differs. NULL:
 * there is none. */
bool door_token_fits(const char *authorization, const char *token);

/*
 * May this request change something? A browser names the page that sends it: it must be one of
 * ours. What is no browser sends neither field.
 *
 * origin, site  the values of Origin and Sec-Fetch-Site; NULL: there is none
 */
bool door_origin_is_ours(const char *origin, const char *site, const char *host);

#endif
