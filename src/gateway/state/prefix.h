/* prefix.h - which slots have seen the beginning of a prompt before */
#ifndef GATEWAY_STATE_PREFIX_H
#define GATEWAY_STATE_PREFIX_H

#include <stdint.h>

/* For the slots of one model: the blocks that were sent to each, as many as it is expected to
 * hold, the least recently sent ones forgotten first. A block is a hash of everything up to its
 * end, so whoever has one has had those before it. What a server has forgotten meanwhile is not
 * known here, and costs a choice that is no better than another.
 *
 * A table has the slots of each block as bits, so that a prompt is looked up once for 64 slots. */
struct prefixes;

struct prefixes *prefixes_new(int blocks_each);
void prefixes_free(struct prefixes *prefixes);

/* A slot comes: the number by which it is known here, from 0 on; those of slots that went are
 * given again. */
int prefixes_add(struct prefixes *prefixes);
/* The slot goes. */
void prefixes_remove(struct prefixes *prefixes, int slot);
/* The blocks, in their order, were sent to the slot. */
void prefixes_note(struct prefixes *prefixes, int slot, const uint64_t *blocks, int count);
/* For each slot by its number, how many of the blocks, from the first on, it has. Holds until the
 * next call. */
const int *prefixes_match(struct prefixes *prefixes, const uint64_t *blocks, int count);

#endif
