/* shared.h - bytes that never change and that many hold */
#ifndef WIRE_TEXT_SHARED_H
#define WIRE_TEXT_SHARED_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/text.h"

/* Whoever keeps a pointer holds a reference; the last to drop it frees. Holding and
 * dropping are safe from any thread, and so is reading. */
struct shared {
	atomic_uint holders;
	bool is_lasting; /* exists anyway, however many hold it: costs nobody anything */
	size_t size;
	char data[];
};

/* A copy of the bytes, held once. */
struct shared *shared_new(const void *data, size_t size);
/* Room for `size` bytes that the caller fills before anyone else sees it. */
struct shared *shared_reserve(size_t size);
/* A copy that the program keeps for as long as it runs, such as a page. */
struct shared *shared_lasting(const void *data, size_t size);
struct shared *shared_hold(struct shared *shared);
void shared_drop(struct shared *shared);

static inline struct text shared_text(const struct shared *shared)
{
	return (struct text){ shared->data, shared->size };
}

#endif
