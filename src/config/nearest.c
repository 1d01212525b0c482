#include "config/nearest.h"

#define LONGEST 64

/* Insertions, deletions, replacements and swaps of neighbours that make `b` of `a`. */
static size_t distance(struct span a, struct span b)
{
        size_t rows[3][LONGEST + 1];
        size_t *before = rows[0], *last = rows[1], *this = rows[2];
        for (size_t j = 0; j <= b.len; j++)
                last[j] = j;
        for (size_t i = 1; i <= a.len; i++) {
                this[0] = i;
                for (size_t j = 1; j <= b.len; j++) {
                        size_t best = last[j - 1] + (a.ptr[i - 1] != b.ptr[j - 1]);
                        if (last[j] + 1 < best)
                                best = last[j] + 1;
                        if (this[j - 1] + 1 < best)
                                best = this[j - 1] + 1;
                        if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] &&
                            a.ptr[i - 2] == b.ptr[j - 1] && before[j - 2] + 1 < best)
                                best = before[j - 2] + 1;
                        this[j] = best;
                }
                size_t *spare = before;
                before = last;
                last = this;
                this = spare;
        }
        return last[b.len];
}

void nearest_init(struct nearest *n, struct span word)
{
        size_t most = word.len < 4 ? 1 : word.len < 8 ? 2 : 3;
        *n = (struct nearest){.word = word, .least = most + 1};
}

void nearest_consider(struct nearest *n, struct span candidate)
{
        if (n->word.len == 0 || n->word.len > LONGEST || candidate.len > LONGEST)
                return;
        size_t d = distance(n->word, candidate);
        if (d < n->least) {
                n->least = d;
                n->best = candidate;
        }
}
