/* mutex.h - a lock within one process, which a forked child can reinitialize
 *
 * The C library's mutexes would need a newer version than some containers have, and must not
 * be touched in a forked child of a program with threads. */
#ifndef GUARD_BUDGET_MUTEX_H
#define GUARD_BUDGET_MUTEX_H

#include <stdatomic.h>
#include <stdint.h>

#include "guard/budget/system.h"

/* 0: free, 1: held, 2: held and somebody may wait. Zero-initialised is free. */
struct mutex {
	_Atomic(uint32_t) word;
};

static inline void mutex_lock(struct mutex *mutex)
{
	uint32_t free = 0;
	if (atomic_compare_exchange_strong_explicit(&mutex->word, &free, 1, memory_order_acquire,
	                                            memory_order_relaxed))
		return;
	while (atomic_exchange_explicit(&mutex->word, 2, memory_order_acquire) != 0)
		system_wait(&mutex->word, 2, 1000);
}

static inline void mutex_unlock(struct mutex *mutex)
{
	if (atomic_exchange_explicit(&mutex->word, 0, memory_order_release) == 2)
		system_wake(&mutex->word);
}

#endif
