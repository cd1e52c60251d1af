/* prefix.h - which slot has seen the beginning of a prompt before */
#ifndef GATEWAY_STATE_PREFIX_H
#define GATEWAY_STATE_PREFIX_H

#include <stdint.h>

/* A table of fixed size from (block, slot) to when that was last sent there. The oldest of a set
 * gives way: what a server has forgotten meanwhile is not known here, and costs a choice that is
 * no better than another. */
struct prefixes;

struct prefixes *prefixes_new(int sets);
void prefixes_free(struct prefixes *prefixes);

/* The blocks were sent to the slot. */
void prefixes_note(struct prefixes *prefixes, int64_t slot_id, const uint64_t *blocks, int count);
/* How many of the blocks, from the first on, were sent to the slot before. */
int prefixes_match(const struct prefixes *prefixes, int64_t slot_id, const uint64_t *blocks,
                   int count);

#endif
