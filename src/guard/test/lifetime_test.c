/* lifetime_test.c - how long memory stays charged: pools, mappings, graphs, contexts */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "fixture.h"
#include "guard/budget/process.h"
#include "guard/calls/driver_abi.h"

static CUmemGenericAllocationHandle make_physical(int64_t bytes)
{
	CUmemAllocationProp properties = { .type = 1,
		                           .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	CUmemGenericAllocationHandle handle;
	assert_int_equal(cuMemCreate(&handle, (size_t)bytes, &properties, 0), CUDA_SUCCESS);
	return handle;
}

static void memory_that_is_mapped_stays_charged_without_its_handle(void **state)
{
	struct fixture *fixture = *state;
	CUmemGenericAllocationHandle handle = make_physical(8 * MIB);
	CUdeviceptr address = 0x10000000000;
	assert_int_equal(cuMemMap(address, (size_t)(8 * MIB), 0, handle, 0), CUDA_SUCCESS);
	assert_int_equal(cuMemRelease(handle), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 8 * MIB);
	assert_int_equal(cuMemUnmap(address, (size_t)(8 * MIB)), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
}

static void a_range_of_several_mappings_is_given_back_at_once(void **state)
{
	struct fixture *fixture = *state;
	CUdeviceptr address = 0x10000000000;
	for (CUdeviceptr i = 0; i < 4; i++) {
		CUmemGenericAllocationHandle handle = make_physical(2 * MIB);
		CUdeviceptr at = address + i * (CUdeviceptr)(2 * MIB);
		assert_int_equal(cuMemMap(at, (size_t)(2 * MIB), 0, handle, 0), CUDA_SUCCESS);
		assert_int_equal(cuMemRelease(handle), CUDA_SUCCESS);
	}
	assert_int_equal(fixture_used(fixture, 0), 8 * MIB);
	assert_int_equal(cuMemUnmap(address, (size_t)(8 * MIB)), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
}

static void memory_that_is_mapped_twice_is_charged_once(void **state)
{
	struct fixture *fixture = *state;
	CUmemGenericAllocationHandle handle = make_physical(2 * MIB);
	CUdeviceptr first = 0x10000000000;
	CUdeviceptr second = 0x20000000000;
	assert_int_equal(cuMemMap(first, (size_t)(2 * MIB), 0, handle, 0), CUDA_SUCCESS);
	assert_int_equal(cuMemMap(second, (size_t)(2 * MIB), 0, handle, 0), CUDA_SUCCESS);
	assert_int_equal(cuMemRelease(handle), CUDA_SUCCESS);
	assert_int_equal(cuMemUnmap(first, (size_t)(2 * MIB)), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 2 * MIB);
	assert_int_equal(cuMemUnmap(second, (size_t)(2 * MIB)), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
}

static void a_handle_that_is_retained_keeps_the_memory(void **state)
{
	struct fixture *fixture = *state;
	CUmemGenericAllocationHandle handle = make_physical(2 * MIB);
	CUmemGenericAllocationHandle again;
	CUdeviceptr address = 0x10000000000;
	assert_int_equal(cuMemMap(address, (size_t)(2 * MIB), 0, handle, 0), CUDA_SUCCESS);
	assert_int_equal(cuMemRelease(handle), CUDA_SUCCESS);
	assert_int_equal(cuMemRetainAllocationHandle(&again, (void *)address), CUDA_SUCCESS);
	assert_int_equal(cuMemUnmap(address, (size_t)(2 * MIB)), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 2 * MIB);
	assert_int_equal(cuMemRelease(again), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
}

static void what_a_pool_holds_is_charged_until_it_gives_it_back(void **state)
{
	struct fixture *fixture = *state;
	CUdeviceptr pointer;
	assert_int_equal(cuMemAllocAsync(&pointer, (size_t)(10 * MIB), NULL), CUDA_SUCCESS);
	/* The stand-in's pools take memory in pieces of 32 MiB. */
	assert_int_equal(fixture_used(fixture, 0), 32 * MIB);
	assert_int_equal(cuMemFreeAsync(pointer, NULL), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 32 * MIB);
	assert_int_equal(cuStreamSynchronize(NULL), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
}

static CUmemoryPool make_pool(uint64_t keep_bytes)
{
	CUmemPoolProps properties = { .allocType = 1,
		                      .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	CUmemoryPool pool;
	assert_int_equal(cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
	assert_int_equal(
	    DRIVER(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_bytes),
	    CUDA_SUCCESS);
	return pool;
}

static void what_a_pool_keeps_is_used_again_without_a_new_charge(void **state)
{
	struct fixture *fixture = *state;
	CUmemoryPool pool = make_pool(UINT64_C(1) << 40);
	CUdeviceptr pointer;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(cuMemAllocFromPoolAsync(&pointer, (size_t)(40 * MIB), pool, NULL),
		                 CUDA_SUCCESS);
		assert_int_equal(fixture_used(fixture, 0), 64 * MIB);
		assert_int_equal(cuMemFreeAsync(pointer, NULL), CUDA_SUCCESS);
		assert_int_equal(cuStreamSynchronize(NULL), CUDA_SUCCESS);
		assert_int_equal(fixture_used(fixture, 0), 64 * MIB);
	}
	assert_int_equal(cuMemPoolTrimTo(pool, (size_t)(32 * MIB)), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 32 * MIB);
	assert_int_equal(cuMemPoolDestroy(pool), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
}

static void what_pools_hold_idle_is_taken_back_before_anything_is_refused(void **state)
{
	struct fixture *fixture = *state;
	CUmemoryPool pool = make_pool(UINT64_C(1) << 40);
	CUdeviceptr pointer;
	assert_int_equal(cuMemAllocFromPoolAsync(&pointer, (size_t)(60 * MIB), pool, NULL),
	                 CUDA_SUCCESS);
	assert_int_equal(cuMemFreeAsync(pointer, NULL), CUDA_SUCCESS);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(64 * MIB)), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 64 * MIB);
	assert_int_equal(fixture_refusals(fixture, 0), 0);
	assert_int_equal(cuMemFree_v2(pointer), CUDA_SUCCESS);
	assert_int_equal(cuMemPoolDestroy(pool), CUDA_SUCCESS);
}

static void a_pool_whose_pieces_are_over_the_limit_is_refused(void **state)
{
	struct fixture *fixture = *state;
	CUdeviceptr pointer;
	fixture_limit(fixture, 0, 48 * MIB);
	/* 40 MiB would fit, but two pieces of 32 MiB do not. */
	assert_int_equal(cuMemAllocAsync(&pointer, (size_t)(40 * MIB), NULL),
	                 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuStreamSynchronize(NULL), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
	assert_int_equal(fixture_refusals(fixture, 0), 1);
	assert_int_equal(DRIVER(standin_used)(0), 0);
	assert_int_equal(cuMemAllocAsync(&pointer, (size_t)(30 * MIB), NULL), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 32 * MIB);
}

static void a_pool_that_takes_more_than_was_expected_is_refused(void **state)
{
	struct fixture *fixture = *state;
	CUdeviceptr pointer;
	setenv("STANDIN_PIECE", "83886080", 1);
	assert_int_equal(cuMemAllocAsync(&pointer, (size_t)(40 * MIB), NULL),
	                 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuStreamSynchronize(NULL), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
	assert_int_equal(fixture_refusals(fixture, 0), 1);
	assert_int_equal(DRIVER(standin_used)(0), 0);
	unsetenv("STANDIN_PIECE");
}

static void a_destroyed_pool_is_charged_for_what_is_still_in_use(void **state)
{
	struct fixture *fixture = *state;
	CUmemoryPool pool = make_pool(0);
	CUdeviceptr pointer;
	assert_int_equal(cuMemAllocFromPoolAsync(&pointer, (size_t)(10 * MIB), pool, NULL),
	                 CUDA_SUCCESS);
	assert_int_equal(cuMemPoolDestroy(pool), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 10 * MIB);
	assert_int_equal(cuMemFreeAsync(pointer, NULL), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
}

static void a_stream_of_another_device_takes_from_that_device(void **state)
{
	struct fixture *fixture = *state;
	CUstream stream;
	CUdeviceptr pointer;
	assert_int_equal(DRIVER(cuCtxSetCurrent)(fixture->contexts[1]), CUDA_SUCCESS);
	assert_int_equal(DRIVER(cuStreamCreate)(&stream, 0), CUDA_SUCCESS);
	assert_int_equal(DRIVER(cuCtxSetCurrent)(fixture->contexts[0]), CUDA_SUCCESS);
	assert_int_equal(cuMemAllocAsync(&pointer, (size_t)(8 * MIB), stream), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
	assert_int_equal(fixture_used(fixture, 1), 32 * MIB);
	assert_int_equal(cuMemFreeAsync(pointer, stream), CUDA_SUCCESS);
	assert_int_equal(cuStreamSynchronize(stream), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 1), 0);
}

static void memory_of_a_graph_counts_once_it_was_launched(void **state)
{
	struct fixture *fixture = *state;
	CUstream stream;
	CUdeviceptr pointer;
	assert_int_equal(DRIVER(cuStreamCreate)(&stream, 0), CUDA_SUCCESS);
	DRIVER(standin_capture)(stream, 1);
	assert_int_equal(cuMemAllocAsync(&pointer, (size_t)(65 * MIB), stream),
	                 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAllocAsync(&pointer, (size_t)(20 * MIB), stream), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
	DRIVER(standin_capture)(stream, 0);
	DRIVER(standin_launch_graph)(20 * MIB);
	assert_int_equal(cuStreamSynchronize(stream), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 20 * MIB);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(40 * MIB)), CUDA_SUCCESS);
	assert_int_equal(cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 40 * MIB);
}

static void a_node_that_can_never_fit_is_refused(void **state)
{
	struct fixture *fixture = *state;
	CUgraphNode node;
	CUDA_MEM_ALLOC_NODE_PARAMS alloc = {
		.poolProps = { .allocType = 1, .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
		.bytesize = (size_t)(65 * MIB),
	};
	CUgraphNodeParams parameters = { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .of.alloc = alloc };
	for (int round = 0; round < 2; round++) {
		CUresult expected = round == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
		assert_int_equal(cuGraphAddMemAllocNode(&node, NULL, NULL, 0, &alloc), expected);
		assert_int_equal(cuGraphAddNode(&node, NULL, NULL, 0, &parameters), expected);
		assert_int_equal(cuGraphAddNode_v2(&node, NULL, NULL, NULL, 0, &parameters),
		                 expected);
		assert_int_equal(cuGraphAddNode_v3(&node, NULL, NULL, NULL, 0, &parameters),
		                 expected);
		alloc.bytesize = parameters.of.alloc.bytesize = (size_t)(64 * MIB);
	}
	assert_int_equal(fixture_refusals(fixture, 0), 4);
	assert_int_equal(fixture_used(fixture, 0), 0);
}

static void allocations_end_with_their_context(void **state)
{
	struct fixture *fixture = *state;
	CUcontext contexts[4];
	CUdeviceptr pointer;
	CUarray array;
	CUDA_ARRAY_DESCRIPTOR shape = { 1024, 1024, 0x20, 1 };
	assert_int_equal(cuCtxCreate(&contexts[0], 0, 0), CUDA_SUCCESS);
	assert_int_equal(cuCtxCreate_v2(&contexts[1], 0, 0), CUDA_SUCCESS);
	assert_int_equal(cuCtxCreate_v3(&contexts[2], NULL, 0, 0, 0), CUDA_SUCCESS);
	assert_int_equal(cuCtxCreate_v4(&contexts[3], NULL, 0, 0), CUDA_SUCCESS);
	for (int i = 3; i >= 0; i--) {
		assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(8 * MIB)), CUDA_SUCCESS);
		assert_int_equal(cuArrayCreate_v2(&array, &shape), CUDA_SUCCESS);
		assert_int_equal(fixture_used(fixture, 0), 12 * MIB);
		assert_int_equal(i % 2 ? cuCtxDestroy(contexts[i]) : cuCtxDestroy_v2(contexts[i]),
		                 CUDA_SUCCESS);
		assert_int_equal(fixture_used(fixture, 0), 0);
	}
}

static void allocations_end_when_the_primary_context_does(void **state)
{
	struct fixture *fixture = *state;
	CUdeviceptr pointer;
	CUcontext context;
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(8 * MIB)), CUDA_SUCCESS);
	assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
	assert_int_equal(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 8 * MIB);
	assert_int_equal(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
	assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(8 * MIB)), CUDA_SUCCESS);
	assert_int_equal(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
}

static void a_context_counts_as_nvml_measures_it(void **state)
{
	struct fixture *fixture = *state;
	setenv("STANDIN_CONTEXT", "20971520", 1);
	CUcontext context;
	assert_int_equal(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
	assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 20 * MIB);
	CUdeviceptr pointer;
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(46 * MIB)), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(44 * MIB)), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 64 * MIB);
	assert_int_equal(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
}

/* NVML gives managed memory to no process: what is beside it must be seen all the same. */
static void managed_memory_hides_nothing_that_is_measured(void **state)
{
	struct fixture *fixture = *state;
	CUcontext context;
	CUdeviceptr managed;
	struct watch_gpu gpu;
	assert_int_equal(cuMemAllocManaged(&managed, (size_t)(30 * MIB), 1), CUDA_SUCCESS);
	assert_true(watch_gpu(&fixture->watch, 0, &gpu));
	assert_int_equal(gpu.hidden_bytes, 30 * MIB);
	setenv("STANDIN_CONTEXT", "20971520", 1);
	assert_int_equal(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 50 * MIB);
	assert_int_equal(cuCtxDestroy_v2(context), CUDA_SUCCESS);
	assert_int_equal(DRIVER(cuCtxSetCurrent)(fixture->contexts[0]), CUDA_SUCCESS);
	assert_int_equal(cuMemFree_v2(managed), CUDA_SUCCESS);
	assert_true(watch_gpu(&fixture->watch, 0, &gpu));
	assert_int_equal(gpu.hidden_bytes, 0);
}

static void a_context_that_does_not_fit_is_refused(void **state)
{
	struct fixture *fixture = *state;
	uint8_t uuid[16];
	struct error error;
	CUcontext context;
	DRIVER(standin_uuid)(0, uuid);
	assert_int_equal(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
	assert_true(watch_set_limit(&fixture->watch, uuid, 64 * MIB, 65 * MIB, &error));
	assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuCtxCreate_v2(&context, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(fixture_refusals(fixture, 0), 2);
	assert_int_equal(fixture_used(fixture, 0), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_begin, fixture_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(memory_that_is_mapped_stays_charged_without_its_handle),
		TEST(a_range_of_several_mappings_is_given_back_at_once),
		TEST(memory_that_is_mapped_twice_is_charged_once),
		TEST(a_handle_that_is_retained_keeps_the_memory),
		TEST(what_a_pool_holds_is_charged_until_it_gives_it_back),
		TEST(what_a_pool_keeps_is_used_again_without_a_new_charge),
		TEST(what_pools_hold_idle_is_taken_back_before_anything_is_refused),
		TEST(a_pool_whose_pieces_are_over_the_limit_is_refused),
		TEST(a_pool_that_takes_more_than_was_expected_is_refused),
		TEST(a_destroyed_pool_is_charged_for_what_is_still_in_use),
		TEST(a_stream_of_another_device_takes_from_that_device),
		TEST(memory_of_a_graph_counts_once_it_was_launched),
		TEST(a_node_that_can_never_fit_is_refused),
		TEST(allocations_end_with_their_context),
		TEST(allocations_end_when_the_primary_context_does),
		TEST(a_context_counts_as_nvml_measures_it),
		TEST(managed_memory_hides_nothing_that_is_measured),
		TEST(a_context_that_does_not_fit_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
