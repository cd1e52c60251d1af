/* info_test.c - what a task sees of a GPU's memory is its budget */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "guard/calls/device.h"
#include "guard/calls/driver_abi.h"
#include "guard/calls/state.h"

static void the_driver_shows_the_limit_as_the_size(void **state)
{
	(void)state;
	size_t total;
	unsigned int total_v1;
	assert_int_equal(cuDeviceTotalMem_v2(&total, 0), CUDA_SUCCESS);
	assert_int_equal(total, 64 * MIB);
	assert_int_equal(cuDeviceTotalMem(&total_v1, 0), CUDA_SUCCESS);
	/* The first version's 32 bits have no room for the stand-in's 16 GiB. */
	assert_true(total_v1 <= 64 * MIB);
}

static void the_driver_shows_as_free_what_the_task_may_still_take(void **state)
{
	(void)state;
	size_t free;
	size_t total;
	unsigned int free_v1;
	unsigned int total_v1;
	CUdeviceptr pointer;
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(16 * MIB)), CUDA_SUCCESS);
	assert_int_equal(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
	assert_int_equal(free, 48 * MIB);
	assert_int_equal(total, 64 * MIB);
	assert_int_equal(cuMemGetInfo(&free_v1, &total_v1), CUDA_SUCCESS);
	assert_int_equal(free_v1, 48 * MIB);
	assert_int_equal(total_v1, 64 * MIB);
}

static void all_that_is_shown_as_free_can_be_had(void **state)
{
	(void)state;
	size_t free;
	size_t total;
	CUdeviceptr pointer;
	assert_int_equal(cuMemAlloc_v2(&pointer, 1), CUDA_SUCCESS);
	assert_int_equal(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
	assert_int_equal(free, 62 * MIB);
	assert_int_equal(cuMemAlloc_v2(&pointer, free), CUDA_SUCCESS);
}

static void what_the_gpu_has_is_less_than_the_limit_and_shown(void **state)
{
	struct fixture *fixture = *state;
	size_t free;
	size_t total;
	fixture_limit(fixture, 0, 1000 * GIB);
	assert_int_equal(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
	assert_int_equal(free, 16 * GIB);
	assert_int_equal(total, 16 * GIB);
}

static void without_a_limit_everything_is_as_it_is(void **state)
{
	struct fixture *fixture = *state;
	size_t free;
	size_t total;
	CUdeviceptr pointer;
	fixture_limit(fixture, 0, SEGMENT_NO_LIMIT);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(4 * GIB)), CUDA_SUCCESS);
	assert_int_equal(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
	assert_int_equal(free, 12 * GIB);
	assert_int_equal(total, 16 * GIB);
	assert_int_equal(fixture_used(fixture, 0), 4 * GIB);
}

static void a_gpu_that_is_not_the_tasks_has_its_size_and_nothing_free(void **state)
{
	struct fixture *fixture = *state;
	size_t free;
	size_t total;
	fixture_limit(fixture, 0, 0);
	assert_int_equal(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
	assert_int_equal(free, 0);
	assert_int_equal(total, 16 * GIB);
}

static void nvml_shows_the_budget(void **state)
{
	(void)state;
	nvmlDevice_t device;
	nvmlMemory_t memory;
	nvmlMemory_v2_t memory_v2;
	CUdeviceptr pointer;
	void *nvml = dlopen(GUARD_BUILD "/test/libnvidia-ml.so.1", RTLD_NOW);
	__typeof__(&nvmlDeviceGetHandleByIndex_v2) by_index;
	*(void **)&by_index = dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2");
	assert_int_equal(by_index(0, &device), NVML_SUCCESS);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(16 * MIB)), CUDA_SUCCESS);
	assert_int_equal(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
	assert_int_equal(memory.total, 64 * MIB);
	assert_int_equal(memory.free, 48 * MIB);
	assert_int_equal(memory.used, 16 * MIB);
	assert_int_equal(nvmlDeviceGetMemoryInfo_v2(device, &memory_v2), NVML_SUCCESS);
	assert_int_equal(memory_v2.total, 64 * MIB);
	assert_int_equal(memory_v2.free, 48 * MIB);
	assert_int_equal(memory_v2.used, 16 * MIB);
	assert_int_equal(memory_v2.reserved, 0);
	dlclose(nvml);
}

static void nvml_leaves_gpus_of_others_as_they_are(void **state)
{
	struct fixture *fixture = *state;
	nvmlDevice_t device;
	nvmlMemory_t memory;
	void *nvml = dlopen(GUARD_BUILD "/test/libnvidia-ml.so.1", RTLD_NOW);
	__typeof__(&nvmlDeviceGetHandleByUUID) by_uuid;
	*(void **)&by_uuid = dlsym(nvml, "nvmlDeviceGetHandleByUUID");
	assert_int_equal(by_uuid("GPU-57000000-0000-0000-0000-000000000003", &device),
	                 NVML_SUCCESS);
	assert_int_equal(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
	assert_int_equal(memory.total, 16 * GIB);
	struct watch_gpu gpu;
	assert_false(watch_gpu(&fixture->watch, 2, &gpu));
	dlclose(nvml);
}

static void budgets_follow_the_gpu_and_not_its_number(void **state)
{
	struct fixture *fixture = *state;
	CUcontext context;
	CUdeviceptr pointer;
	size_t total;
	fixture_limit(fixture, 1, 8 * MIB);
	setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
	device_reset();
	assert_int_equal(cuDeviceTotalMem_v2(&total, 0), CUDA_SUCCESS);
	assert_int_equal(total, 8 * MIB);
	assert_int_equal(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(10 * MIB)), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(8 * MIB)), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 1), 8 * MIB);
	assert_int_equal(fixture_used(fixture, 0), 0);
	assert_int_equal(cuCtxDestroy_v2(context), CUDA_SUCCESS);
	unsetenv("CUDA_VISIBLE_DEVICES");
}

static void a_gpu_that_is_not_listed_gets_what_others_get(void **state)
{
	struct fixture *fixture = *state;
	CUcontext context;
	CUdeviceptr pointer;
	setenv("STANDIN_GPUS", "4", 1);
	assert_int_equal(cuCtxCreate_v2(&context, 0, 2), CUDA_ERROR_OUT_OF_MEMORY);
	struct error error;
	assert_true(watch_set_others(&fixture->watch, 4 * MIB, 0, &error));
	assert_int_equal(cuCtxCreate_v2(&context, 0, 3), CUDA_SUCCESS);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(4 * MIB)), CUDA_SUCCESS);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)MIB), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(fixture_used(fixture, 3), 4 * MIB);
	assert_int_equal(cuCtxDestroy_v2(context), CUDA_SUCCESS);
	unsetenv("STANDIN_GPUS");
}

static void without_a_segment_the_guard_stands_aside(void **state)
{
	(void)state;
	size_t total;
	CUdeviceptr pointer;
	state_attach(NULL, NULL);
	assert_int_equal(cuDeviceTotalMem_v2(&total, 0), CUDA_SUCCESS);
	assert_int_equal(total, 16 * GIB);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(4 * GIB)), CUDA_SUCCESS);
	assert_int_equal(cuMemFree_v2(pointer), CUDA_SUCCESS);
}

static void without_a_segment_the_limits_hold_in_each_program(void **state)
{
	(void)state;
	CUdeviceptr pointer;
	size_t total;
	device_reset();
	state_attach("/no/such/file", "nonsense,GPU-57000000-0000-0000-0000-000000000000=32M,"
	                              "GPU-57000000-0000-0000-0000-000000000001=,others=8M");
	assert_int_equal(cuDeviceTotalMem_v2(&total, 0), CUDA_SUCCESS);
	assert_int_equal(total, 32 * MIB);
	/* What makes no sense is as if it were not there. */
	assert_int_equal(cuDeviceTotalMem_v2(&total, 1), CUDA_SUCCESS);
	assert_int_equal(total, 8 * MIB);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(20 * MIB)), CUDA_SUCCESS);
	pid_t child = fork();
	if (child == 0) {
		CUcontext context;
		alarm(60);
		if (cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
		    DRIVER(cuCtxSetCurrent)(context) != CUDA_SUCCESS)
			_exit(1);
		if (cuMemAlloc_v2(&pointer, (size_t)(14 * MIB)) != CUDA_ERROR_OUT_OF_MEMORY)
			_exit(2);
		_exit(cuMemAlloc_v2(&pointer, (size_t)(12 * MIB)) == CUDA_SUCCESS ? 0 : 3);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_begin, fixture_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_driver_shows_the_limit_as_the_size),
		TEST(the_driver_shows_as_free_what_the_task_may_still_take),
		TEST(all_that_is_shown_as_free_can_be_had),
		TEST(what_the_gpu_has_is_less_than_the_limit_and_shown),
		TEST(without_a_limit_everything_is_as_it_is),
		TEST(a_gpu_that_is_not_the_tasks_has_its_size_and_nothing_free),
		TEST(nvml_shows_the_budget),
		TEST(nvml_leaves_gpus_of_others_as_they_are),
		TEST(budgets_follow_the_gpu_and_not_its_number),
		TEST(a_gpu_that_is_not_listed_gets_what_others_get),
		TEST(without_a_segment_the_guard_stands_aside),
		TEST(without_a_segment_the_limits_hold_in_each_program),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
