/* shared.c - bytes that never change and that many hold */
#include "wire/text/shared.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

struct shared *shared_reserve(size_t size)
{
	struct shared *shared = memory_alloc(sizeof(*shared) + size);
	atomic_init(&shared->holders, 1);
	shared->is_lasting = false;
	shared->size = size;
	return shared;
}

struct shared *shared_new(const void *data, size_t size)
{
	struct shared *shared = shared_reserve(size);
	if (size > 0)
		memcpy(shared->data, data, size);
	return shared;
}

struct shared *shared_lasting(const void *data, size_t size)
{
	struct shared *shared = shared_new(data, size);
	shared->is_lasting = true;
	return shared;
}

struct shared *shared_hold(struct shared *shared)
{
	unsigned before = atomic_fetch_add_explicit(&shared->holders, 1, memory_order_relaxed);
	INVARIANT(before > 0);
	return shared;
}

void shared_drop(struct shared *shared)
{
	if (!shared)
		return;
	unsigned before = atomic_fetch_sub_explicit(&shared->holders, 1, memory_order_acq_rel);
	INVARIANT(before > 0);
	if (before == 1)
		free(shared);
}
