/* runtime/public_suffix.h - which part of a host name somebody has registered. */
#ifndef WEIR_RUNTIME_PUBLIC_SUFFIX_H
#define WEIR_RUNTIME_PUBLIC_SUFFIX_H

/*
 * The registrable domain of a host by the public suffix list: "example.co.uk" for
 * "www.example.co.uk". The host itself where it has none: an address, a name of one label, a name
 * that is a public suffix ("co.uk", "github.io"). A dot at the end is dropped.
 *
 * host  lower-case ASCII, without brackets and port
 *
 * The list is the newer one of the system's and that which libpsl was built with; it is read once.
 * Any thread may call this. The caller frees the result.
 */
char *public_suffix_domain(const char *host);

#endif
