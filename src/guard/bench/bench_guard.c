/* bench_guard.c - what the guard adds to an allocation, against the stand-in driver
 *
 * The same loop through the guard and straight to the stand-in, whose own work is the
 * same in both: the difference is the guard. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../test/standin/standin.h"
#include "base/clock.h"
#include "guard/budget/watch.h"
#include "guard/calls/driver_abi.h"
#include "guard/calls/state.h"

enum { ROUNDS = 1000000, REPEATS = 5 };

struct functions {
	__typeof__(&cuMemAlloc_v2) take;
	__typeof__(&cuMemFree_v2) give;
	__typeof__(&cuMemAllocAsync) take_async;
	__typeof__(&cuMemFreeAsync) give_async;
	__typeof__(&cuStreamSynchronize) synchronize;
};

static double now_ns(void)
{
	return (double)clock_ns(CLOCK_MONOTONIC);
}

/* Nanoseconds of one allocation with its free, of one from a pool, and of one wait. */
struct costs {
	double plain, pool, wait;
};

static struct costs guard_measure(const struct functions *functions)
{
	struct costs costs;
	CUdeviceptr pointer;
	double began = now_ns();
	for (int i = 0; i < ROUNDS; i++) {
		functions->take(&pointer, 4096);
		functions->give(pointer);
	}
	costs.plain = (now_ns() - began) / ROUNDS;
	began = now_ns();
	for (int i = 0; i < ROUNDS; i++) {
		functions->take_async(&pointer, 4096, NULL);
		functions->give_async(pointer, NULL);
	}
	costs.pool = (now_ns() - began) / ROUNDS;
	functions->synchronize(NULL);
	functions->synchronize(NULL);
	began = now_ns();
	for (int i = 0; i < ROUNDS; i++)
		functions->synchronize(NULL);
	costs.wait = (now_ns() - began) / ROUNDS;
	return costs;
}

/* The best of some: what disturbs a measurement only ever adds to it. */
static struct costs measure_best(const struct functions *functions)
{
	struct costs best = guard_measure(functions);
	for (int i = 1; i < REPEATS; i++) {
		struct costs costs = guard_measure(functions);
		best.plain = costs.plain < best.plain ? costs.plain : best.plain;
		best.pool = costs.pool < best.pool ? costs.pool : best.pool;
		best.wait = costs.wait < best.wait ? costs.wait : best.wait;
	}
	return best;
}

/* A task of its own, with the first device's context current. */
static void *guard_begin(char path[64])
{
	struct watch watch;
	struct error error;
	void *driver = dlopen(GUARD_BUILD "/test/libcuda.so.1", RTLD_NOW);
	snprintf(path, 64, "/dev/shm/gpu-guard-bench-%ld", (long)getpid());
	if (driver == NULL || !watch_create(&watch, path, &error) ||
	    !watch_set_others(&watch, INT64_C(1) << 30, 0, &error))
		return NULL;
	state_attach(path, NULL);
	unlink(path);
	CUcontext context;
	__typeof__(&cuCtxSetCurrent) set_current;
	*(void **)&set_current = dlsym(driver, "cuCtxSetCurrent");
	if (cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
	    set_current(context) != CUDA_SUCCESS)
		return NULL;
	return driver;
}

int main(int argc, char **argv)
{
	char path[64];
	void *driver = guard_begin(path);
	if (driver == NULL) {
		fprintf(stderr, "bench_guard: the stand-in driver cannot be used\n");
		return 1;
	}
	struct functions real;
	*(void **)&real.take = dlsym(driver, "cuMemAlloc_v2");
	*(void **)&real.give = dlsym(driver, "cuMemFree_v2");
	*(void **)&real.take_async = dlsym(driver, "cuMemAllocAsync");
	*(void **)&real.give_async = dlsym(driver, "cuMemFreeAsync");
	*(void **)&real.synchronize = dlsym(driver, "cuStreamSynchronize");
	struct functions guarded = { cuMemAlloc_v2, cuMemFree_v2, cuMemAllocAsync, cuMemFreeAsync,
		                     cuStreamSynchronize };
	struct costs without = measure_best(&real);
	struct costs with = measure_best(&guarded);
	printf("%-28s %12s %12s %12s\n", "nanoseconds", "stand-in", "guarded", "difference");
	printf("%-28s %12.0f %12.0f %12.0f\n", "allocation and free", without.plain, with.plain,
	       with.plain - without.plain);
	printf("%-28s %12.0f %12.0f %12.0f\n", "the same from a pool", without.pool, with.pool,
	       with.pool - without.pool);
	printf("%-28s %12.0f %12.0f %12.0f\n", "waiting for the GPU", without.wait, with.wait,
	       with.wait - without.wait);
	if (argc < 2)
		return 0;
	FILE *out = fopen(argv[1], "w");
	if (out == NULL)
		return 1;
	fprintf(out,
	        "{\"guard_allocation_ns\": %.1f, \"guard_pool_allocation_ns\": %.1f, "
	        "\"guard_synchronize_ns\": %.1f}\n",
	        with.plain - without.plain, with.pool - without.pool, with.wait - without.wait);
	return fclose(out) != 0;
}
