/* fixture.c - a task for tests: a segment with budgets, the guard, the stand-in driver */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guard/budget/process.h"
#include "guard/calls/charge.h"
#include "guard/calls/context.h"
#include "guard/calls/device.h"
#include "guard/calls/overhead.h"
#include "guard/calls/pool.h"
#include "guard/calls/state.h"
#include "guard/calls/track.h"

void *fixture_driver;

/* The stand-in keeps the file that it has opened first. */
static struct standin_state *shared_state(void)
{
	static struct standin_state *shared;
	char path[64];
	if (shared != NULL)
		return shared;
	snprintf(path, sizeof path, "/dev/shm/gpu-guard-test-state-%ld", (long)getpid());
	int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(file >= 0);
	assert_int_equal(ftruncate(file, sizeof *shared), 0);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	assert_true(shared != MAP_FAILED);
	close(file);
	setenv("STANDIN_STATE", path, 1);
	/* Opened by the stand-in with its first allocation. */
	fixture_driver = dlopen(GUARD_BUILD "/test/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	assert_non_null(fixture_driver);
	assert_non_null(dlopen(GUARD_BUILD "/test/libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL));
	CUcontext context;
	CUdeviceptr pointer;
	state_attach(NULL, NULL);
	assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
	assert_int_equal(DRIVER(cuCtxSetCurrent)(context), CUDA_SUCCESS);
	assert_int_equal(cuMemAlloc_v2(&pointer, 1), CUDA_SUCCESS);
	assert_int_equal(cuMemFree_v2(pointer), CUDA_SUCCESS);
	assert_int_equal(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
	unlink(path);
	return shared;
}

void fixture_limit(struct fixture *fixture, int gpu, int64_t bytes)
{
	uint8_t uuid[16];
	struct error error;
	DRIVER(standin_uuid)(gpu, uuid);
	assert_true(watch_set_limit(&fixture->watch, uuid, bytes, 0, &error));
}

void fixture_contexts(struct fixture *fixture)
{
	for (int device = 0; device < 2; device++) {
		assert_int_equal(cuDevicePrimaryCtxRetain(&fixture->contexts[device], device),
		                 CUDA_SUCCESS);
	}
	assert_int_equal(DRIVER(cuCtxSetCurrent)(fixture->contexts[0]), CUDA_SUCCESS);
}

int fixture_begin(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);
	struct error error;
	static int number;
	fixture->standin = shared_state();
	/* Wherever the test runs, the stand-in for NVML knows it by its own id. */
	overhead_namespace = process_self().namespace_id;
	memset(fixture->standin->users, 0, sizeof fixture->standin->users);
	for (int gpu = 0; gpu < STANDIN_GPUS_MAX; gpu++) {
		atomic_store(&fixture->standin->used_bytes[gpu], 0);
		atomic_store(&fixture->standin->peak_bytes[gpu], 0);
	}
	unsetenv("STANDIN_CONTEXT");
	unsetenv("STANDIN_MEMORY");
	unsetenv("CUDA_VISIBLE_DEVICES");
	snprintf(fixture->path, sizeof fixture->path, "/dev/shm/gpu-guard-test-%ld-%d",
	         (long)getpid(), number++);
	if (!watch_create(&fixture->watch, fixture->path, &error))
		fail_msg("%s", error.text);
	fixture_limit(fixture, 0, 64 * MIB);
	fixture_limit(fixture, 1, 64 * MIB);
	state_attach(fixture->path, NULL);
	fixture_contexts(fixture);
	*state = fixture;
	return 0;
}

void fixture_end_task(struct fixture *fixture)
{
	(void)fixture;
	for (int device = 0; device < 2; device++)
		(void)cuDevicePrimaryCtxReset_v2(device);
	state_attach(NULL, NULL);
	track_reset();
	pool_reset();
	charge_reset();
	context_reset();
	device_reset();
	overhead_reset();
}

int fixture_end(void **state)
{
	struct fixture *fixture = *state;
	fixture_end_task(fixture);
	unlink(fixture->path);
	watch_close(&fixture->watch);
	free(fixture);
	return 0;
}

static struct watch_gpu fixture_lookup(struct fixture *fixture, int gpu)
{
	uint8_t uuid[16];
	struct watch_gpu found;
	DRIVER(standin_uuid)(gpu, uuid);
	for (uint32_t number = 0; watch_gpu(&fixture->watch, number, &found); number++) {
		if (memcmp(found.uuid, uuid, 16) == 0)
			return found;
	}
	fail_msg("GPU %d is not listed", gpu);
	return found;
}

int64_t fixture_used(struct fixture *fixture, int gpu)
{
	return fixture_lookup(fixture, gpu).used_bytes;
}

int64_t fixture_peak(struct fixture *fixture, int gpu)
{
	return fixture_lookup(fixture, gpu).peak_bytes;
}

int64_t fixture_refusals(struct fixture *fixture, int gpu)
{
	return fixture_lookup(fixture, gpu).refusals;
}
