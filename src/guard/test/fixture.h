/* fixture.h - a task for tests: a segment with budgets, the guard, the stand-in driver */
#ifndef GUARD_TEST_FIXTURE_H
#define GUARD_TEST_FIXTURE_H

#include <dlfcn.h>
#include <stdint.h>

#include "guard/budget/watch.h"
#include "standin/standin.h"

#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)

/* The guard is part of the test program, and called by the driver's names. The task
 * has 64 MiB on each of two GPUs, and the first is current. */
struct fixture {
	struct watch watch;
	char path[64];
	struct standin_state *standin; /* what all processes together have taken */
	CUcontext contexts[2];
};

/* A function of the stand-in driver that the guard does not stand in for. */
extern void *fixture_driver;
#define DRIVER(name) ((__typeof__(&(name)))dlsym(fixture_driver, #name))

/* Set-up and tear-down of a test. The tear-down checks nothing. */
int fixture_begin(void **state);
int fixture_end(void **state);

/* Makes both devices' contexts, in a forked child too. */
void fixture_contexts(struct fixture *fixture);

/* Ends what the guard does in this process for the task. */
void fixture_end_task(struct fixture *fixture);

void fixture_limit(struct fixture *fixture, int gpu, int64_t bytes);

/* The memory charged on a GPU, by its number on the machine. */
int64_t fixture_used(struct fixture *fixture, int gpu);
int64_t fixture_peak(struct fixture *fixture, int gpu);
int64_t fixture_refusals(struct fixture *fixture, int gpu);

#endif
