/* runtime/safe_url.h - a URL as it may be logged and shown. */
#ifndef WEIR_RUNTIME_SAFE_URL_H
#define WEIR_RUNTIME_SAFE_URL_H

/* Values of query parameters with names such as key, token or password are replaced, and a user
 * name with its password; bytes that are not visible ASCII are percent-encoded. Of what is safe
 * already it changes nothing. The caller frees it. */
char *safe_url(const char *url);

#endif
