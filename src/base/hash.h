/* base/hash.h - uthash with memory from xalloc: tables whose links live inside the elements. */
#ifndef WEIR_BASE_HASH_H
#define WEIR_BASE_HASH_H

#include <stdlib.h>

#include "base/xalloc.h"

#define uthash_malloc(size) xmalloc(size)
#define uthash_free(p, size) free(p)
#define uthash_fatal(text) abort()
#include <uthash.h>

#endif
