/* runtime/digest.h - a short text that stands for a secret, so that it can be stored and shown. */
#ifndef WEIR_RUNTIME_DIGEST_H
#define WEIR_RUNTIME_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

#define DIGEST_TEXT_SIZE 17

/*
 * The first 64 bits of the SHA-256 of `secret` in hexadecimal digits, and a NUL. The same in every
 * process and on every machine, as what was learned under it is to be found again: who can guess
 * the secret can check the guess.
 */
void digest_text(struct span secret, char ret[DIGEST_TEXT_SIZE]);

#define DIGEST_SIZE 32

/* The SHA-256 of several texts, each with its length before it. */
void digest_bytes(const struct span *texts, size_t count, uint8_t ret[DIGEST_SIZE]);

#endif
