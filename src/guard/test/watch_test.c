/* watch_test.c - the agent's side: budgets, processes, measurements */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "guard/budget/budget.h"
#include "guard/budget/system.h"
#include "guard/calls/driver_abi.h"
#include "guard/calls/state.h"

static void a_segment_is_for_its_owner_and_made_once(void **state)
{
	struct fixture *fixture = *state;
	struct watch watch;
	struct error error;
	struct stat status;
	assert_int_equal(stat(fixture->path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_false(watch_create(&watch, fixture->path, &error));
	assert_int_equal(error.code, ERROR_CONFLICT);
	assert_non_null(strstr(error.text, fixture->path));
	assert_false(watch_open(&watch, "/dev/null", &error));
	assert_int_equal(error.code, ERROR_NOT_FOUND);
}

static void who_watches_sees_limits_peaks_and_refusals(void **state)
{
	struct fixture *fixture = *state;
	CUdeviceptr pointer;
	struct watch_gpu gpu;
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(32 * MIB)), CUDA_SUCCESS);
	assert_int_equal(cuMemFree_v2(pointer), CUDA_SUCCESS);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(80 * MIB)), CUDA_ERROR_OUT_OF_MEMORY);
	assert_true(watch_gpu(&fixture->watch, 0, &gpu));
	assert_int_equal(gpu.limit_bytes, 64 * MIB);
	assert_int_equal(gpu.used_bytes, 0);
	assert_int_equal(gpu.peak_bytes, 32 * MIB);
	assert_int_equal(gpu.refusals, 1);
	assert_int_equal(gpu.last_refused_bytes, 80 * MIB);
	assert_false(watch_gpu(&fixture->watch, 2, &gpu));
}

static void a_process_under_the_guard_is_told_from_one_that_is_not(void **state)
{
	struct fixture *fixture = *state;
	assert_true(watch_is_guarded(&fixture->watch, getpid()));
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	/* It has not used a GPU: whatever it did there, the guard was not asked. */
	assert_false(watch_is_guarded(&fixture->watch, child));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_false(watch_is_guarded(&fixture->watch, child));
	assert_int_equal(watch_process_count(&fixture->watch), 1);
}

static void what_was_measured_counts_beside_what_was_charged(void **state)
{
	struct fixture *fixture = *state;
	CUdeviceptr pointer;
	uint8_t uuid[16];
	DRIVER(standin_uuid)(0, uuid);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(32 * MIB)), CUDA_SUCCESS);
	assert_true(watch_measured(&fixture->watch, getpid(), uuid, 50 * MIB));
	assert_int_equal(fixture_used(fixture, 0), 50 * MIB);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(16 * MIB)), CUDA_ERROR_OUT_OF_MEMORY);
	/* Less than was charged: what is charged stays. */
	assert_true(watch_measured(&fixture->watch, getpid(), uuid, 10 * MIB));
	assert_int_equal(fixture_used(fixture, 0), 32 * MIB);
	assert_false(watch_measured(&fixture->watch, 1, uuid, 10 * MIB));
	uuid[3] = 99;
	assert_false(watch_measured(&fixture->watch, getpid(), uuid, 10 * MIB));
}

static void a_process_in_a_container_goes_when_it_is_not_among_the_living(void **state)
{
	struct fixture *fixture = *state;
	struct process_identity elsewhere = { .owner = process_owner(1, 77), .namespace_id = 42 };
	struct member member;
	CUdeviceptr pointer;
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(8 * MIB)), CUDA_SUCCESS);
	assert_true(budget_join(&member, state_segment(), elsewhere));
	assert_true(budget_take(&member, 0, 16 * MIB));
	assert_int_equal(fixture_used(fixture, 0), 24 * MIB);
	int64_t live[] = { getpid(), 1 };
	watch_reap(&fixture->watch, live, 2);
	assert_int_equal(fixture_used(fixture, 0), 8 * MIB);
	assert_true(watch_is_guarded(&fixture->watch, getpid()));
}

static void the_memory_of_one_who_is_gone_can_be_had_by_others(void **state)
{
	struct fixture *fixture = *state;
	struct process_identity elsewhere = { .owner = process_owner(1, 77), .namespace_id = 42 };
	struct member member;
	CUdeviceptr pointer;
	assert_true(budget_join(&member, state_segment(), elsewhere));
	assert_true(budget_take(&member, 0, 60 * MIB));
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(8 * MIB)), CUDA_ERROR_OUT_OF_MEMORY);
	watch_reap(&fixture->watch, NULL, 0);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(8 * MIB)), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 8 * MIB);
}

static void a_watcher_that_comes_back_sees_the_same(void **state)
{
	struct fixture *fixture = *state;
	CUdeviceptr pointer;
	struct error error;
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(8 * MIB)), CUDA_SUCCESS);
	watch_close(&fixture->watch);
	assert_true(watch_open(&fixture->watch, fixture->path, &error));
	assert_int_equal(fixture_used(fixture, 0), 8 * MIB);
	assert_true(watch_is_guarded(&fixture->watch, getpid()));
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(8 * MIB)), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 16 * MIB);
}

static void who_watches_waits_for_nobody(void **state)
{
	struct fixture *fixture = *state;
	uint8_t uuid[16];
	DRIVER(standin_uuid)(0, uuid);
	/* A task that keeps its lock for ever. */
	lock_take(state_member());
	assert_true(watch_measured(&fixture->watch, getpid(), uuid, 50 * MIB));
	watch_reap(&fixture->watch, NULL, 0);
	fixture_limit(fixture, 0, 40 * MIB);
	assert_int_equal(fixture_used(fixture, 0), 50 * MIB);
	assert_int_equal(fixture_peak(fixture, 0), 50 * MIB);
	lock_give(state_member());
}

static void a_segment_that_a_task_has_cut_short_is_none(void **state)
{
	struct fixture *fixture = *state;
	struct watch_gpu gpu;
	struct error error;
	uint8_t uuid[16];
	DRIVER(standin_uuid)(0, uuid);
	/* The guard in this process lets go of it, or it would be the one that suffers. */
	fixture_end_task(fixture);
	assert_int_equal(truncate(fixture->path, 10), 0);
	assert_false(watch_gpu(&fixture->watch, 0, &gpu));
	assert_int_equal(watch_process_count(&fixture->watch), 0);
	assert_false(watch_is_guarded(&fixture->watch, getpid()));
	assert_false(watch_measured(&fixture->watch, getpid(), uuid, 50 * MIB));
	watch_reap(&fixture->watch, NULL, 0);
	assert_int_equal(truncate(fixture->path, sizeof(struct segment)), 0);
	assert_false(watch_open(&(struct watch){ 0 }, fixture->path, &error));
	assert_int_equal(error.code, ERROR_NOT_FOUND);
}

static void limits_that_make_no_sense_are_refused(void **state)
{
	struct fixture *fixture = *state;
	struct error error;
	struct watch watch;
	char path[80];
	uint8_t uuid[16] = { 9 };
	snprintf(path, sizeof path, "%s-other", fixture->path);
	assert_true(watch_create(&watch, path, &error));
	unlink(path);
	assert_false(watch_set_limit(&watch, uuid, -1, 0, &error));
	assert_int_equal(error.code, ERROR_INVALID);
	assert_false(watch_set_others(&watch, 1, -1, &error));
	assert_int_equal(error.code, ERROR_INVALID);
	for (uint8_t i = 0; i < SEGMENT_GPUS_MAX; i++) {
		uuid[1] = i;
		assert_true(watch_set_limit(&watch, uuid, 1, 0, &error));
	}
	uuid[1] = 200;
	assert_false(watch_set_limit(&watch, uuid, 1, 0, &error));
	assert_int_equal(error.code, ERROR_FULL);
	watch_close(&watch);
}

static void a_limit_that_was_changed_is_put_right(void **state)
{
	struct fixture *fixture = *state;
	struct watch_gpu gpu;

	assert_true(watch_gpu(&fixture->watch, 0, &gpu));
	assert_false(watch_restore_limit(&fixture->watch, gpu.uuid, gpu.limit_bytes));
	fixture_limit(fixture, 0, 0);
	assert_true(watch_restore_limit(&fixture->watch, gpu.uuid, gpu.limit_bytes));
	assert_false(watch_restore_limit(&fixture->watch, gpu.uuid, gpu.limit_bytes));
	uint8_t unlisted[16] = { 9 };
	assert_false(watch_restore_limit(&fixture->watch, unlisted, MIB));
}

static void a_task_that_runs_gets_no_budget_on_another_gpu(void **state)
{
	struct fixture *fixture = *state;
	struct error error;
	uint8_t uuid[16] = { 9 };
	assert_false(watch_set_limit(&fixture->watch, uuid, MIB, 0, &error));
	assert_int_equal(error.code, ERROR_CONFLICT);
	fixture_limit(fixture, 0, 8 * MIB);
	CUdeviceptr pointer;
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(10 * MIB)), CUDA_ERROR_OUT_OF_MEMORY);
}

static void a_segment_can_be_given_to_who_runs_the_task(void **state)
{
	struct fixture *fixture = *state;
	struct error error;
	struct stat status;
	assert_true(watch_give(&fixture->watch, getuid(), getgid(), &error));
	if (getuid() != 0)
		return;
	assert_true(watch_give(&fixture->watch, 65534, 65534, &error));
	assert_int_equal(stat(fixture->path, &status), 0);
	assert_int_equal(status.st_uid, 65534);
}

static void what_a_task_put_in_the_place_of_its_segment_is_not_opened(void **state)
{
	struct fixture *fixture = *state;
	struct watch watch;
	struct error error;
	char other[80];
	snprintf(other, sizeof other, "%s-other", fixture->path);
	assert_int_equal(link(fixture->path, other), 0);
	assert_false(watch_open(&watch, fixture->path, &error));
	assert_int_equal(unlink(fixture->path), 0);
	assert_int_equal(symlink(other, fixture->path), 0);
	assert_false(watch_open(&watch, fixture->path, &error));
	assert_int_equal(unlink(fixture->path), 0);
	assert_int_equal(mkfifo(fixture->path, 0600), 0);
	assert_false(watch_open(&watch, fixture->path, &error));
	assert_int_equal(unlink(fixture->path), 0);
	assert_int_equal(rename(other, fixture->path), 0);
	assert_true(watch_open(&watch, fixture->path, &error));
	watch_close(&watch);
}

static struct watch_gpu first_gpu(struct fixture *fixture)
{
	struct watch_gpu gpu;
	assert_true(watch_gpu(&fixture->watch, 0, &gpu));
	return gpu;
}

static void requests_for_which_the_gpu_has_no_room_are_counted_apart_from_refusals(void **state)
{
	struct fixture *fixture = *state;
	CUdeviceptr pointer;
	CUmemGenericAllocationHandle handle;
	CUarray array;
	const CUmemAllocationProp on_gpu = { .type = 1,
		                             .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	const CUDA_ARRAY_DESCRIPTOR shape = { 8192, 5120, 1, 1 };
	setenv("STANDIN_MEMORY", "33554432", 1);
	int64_t before_ms = system_boot_ms();
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(40 * MIB)), CUDA_ERROR_OUT_OF_MEMORY);
	struct watch_gpu gpu = first_gpu(fixture);
	assert_int_equal(gpu.failures, 1);
	assert_int_equal(gpu.last_failed_bytes, 40 * MIB);
	assert_in_range(gpu.last_failed_ms, before_ms, system_boot_ms());
	assert_int_equal(cuMemAllocAsync(&pointer, (size_t)(40 * MIB), NULL),
	                 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemCreate(&handle, (size_t)(40 * MIB), &on_gpu, 0),
	                 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuArrayCreate_v2(&array, &shape), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(first_gpu(fixture).failures, 4);
	/* What is beyond the limit is refused, whether there is room for it or not. */
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(80 * MIB)), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(8 * MIB)), CUDA_SUCCESS);
	assert_int_equal(cuMemAlloc_v2(&pointer, 0), CUDA_ERROR_INVALID_VALUE);
	gpu = first_gpu(fixture);
	assert_int_equal(gpu.failures, 4);
	assert_int_equal(gpu.refusals, 1);
	assert_int_equal(gpu.used_bytes, 8 * MIB);
}

static void what_it_imported_is_in_the_accounting_until_it_is_closed(void **state)
{
	struct fixture *fixture = *state;
	struct watch *watch = &fixture->watch;
	CUdeviceptr pointer;
	CUdeviceptr opened;
	CUipcMemHandle ipc;
	CUmemGenericAllocationHandle handle;
	CUmemGenericAllocationHandle imported;
	CUmemoryPool pool;
	unsigned char fabric[64];
	const CUmemAllocationProp on_gpu = { .type = 1,
		                             .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)MIB), CUDA_SUCCESS);
	assert_int_equal(cuIpcGetMemHandle(&ipc, pointer), CUDA_SUCCESS);
	assert_int_equal(cuMemCreate(&handle, (size_t)(2 * MIB), &on_gpu, 0), CUDA_SUCCESS);
	assert_int_equal(cuMemExportToShareableHandle(fabric, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0),
	                 CUDA_SUCCESS);
	assert_int_equal(watch_imports(watch), 0);
	assert_int_equal(cuIpcOpenMemHandle_v2(&opened, ipc, 1), CUDA_SUCCESS);
	assert_int_equal(watch_imports(watch), 1);
	assert_int_equal(
	    cuMemImportFromShareableHandle(&imported, fabric, CU_MEM_HANDLE_TYPE_FABRIC),
	    CUDA_SUCCESS);
	assert_int_equal(watch_imports(watch), 2);
	assert_int_equal(cuMemPoolImportFromShareableHandle(&pool, fabric, 1, 0), CUDA_SUCCESS);
	assert_int_equal(watch_imports(watch), 3);
	assert_int_equal(cuMemPoolDestroy(pool), CUDA_SUCCESS);
	assert_int_equal(cuMemRelease(imported), CUDA_SUCCESS);
	assert_int_equal(cuIpcCloseMemHandle(opened), CUDA_SUCCESS);
	assert_int_equal(watch_imports(watch), 0);
	assert_int_equal(cuMemRelease(handle), CUDA_SUCCESS);
	assert_int_equal(cuMemFree_v2(pointer), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_begin, fixture_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_segment_is_for_its_owner_and_made_once),
		TEST(who_watches_sees_limits_peaks_and_refusals),
		TEST(a_process_under_the_guard_is_told_from_one_that_is_not),
		TEST(what_was_measured_counts_beside_what_was_charged),
		TEST(a_process_in_a_container_goes_when_it_is_not_among_the_living),
		TEST(the_memory_of_one_who_is_gone_can_be_had_by_others),
		TEST(a_watcher_that_comes_back_sees_the_same),
		TEST(who_watches_waits_for_nobody),
		TEST(a_segment_that_a_task_has_cut_short_is_none),
		TEST(limits_that_make_no_sense_are_refused),
		TEST(a_limit_that_was_changed_is_put_right),
		TEST(a_task_that_runs_gets_no_budget_on_another_gpu),
		TEST(a_segment_can_be_given_to_who_runs_the_task),
		TEST(what_a_task_put_in_the_place_of_its_segment_is_not_opened),
		TEST(requests_for_which_the_gpu_has_no_room_are_counted_apart_from_refusals),
		TEST(what_it_imported_is_in_the_accounting_until_it_is_closed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
