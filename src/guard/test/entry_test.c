/* entry_test.c - every way to allocate, over and under the limit */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "guard/calls/driver_abi.h"

static CUmemoryPool own_pool;

static CUresult take_plain_v1(int64_t bytes, uint64_t *handle)
{
	CUdeviceptr_v1 pointer = 0;
	CUresult result = cuMemAlloc(&pointer, (unsigned int)bytes);
	*handle = pointer;
	return result;
}

static CUresult give_plain_v1(uint64_t handle)
{
	return cuMemFree((CUdeviceptr_v1)handle);
}

static CUresult take_pitch_v1(int64_t bytes, uint64_t *handle)
{
	CUdeviceptr_v1 pointer = 0;
	unsigned int pitch;
	CUresult result = cuMemAllocPitch(&pointer, &pitch, 1024, (unsigned int)(bytes / 1024), 4);
	*handle = pointer;
	return result;
}

static CUresult take_plain(int64_t bytes, uint64_t *handle)
{
	return cuMemAlloc_v2((CUdeviceptr *)handle, (size_t)bytes);
}

static CUresult give_plain(uint64_t handle)
{
	return cuMemFree_v2(handle);
}

static CUresult take_pitch(int64_t bytes, uint64_t *handle)
{
	size_t pitch;
	return cuMemAllocPitch_v2((CUdeviceptr *)handle, &pitch, 1024, (size_t)bytes / 1024, 4);
}

static CUresult take_managed(int64_t bytes, uint64_t *handle)
{
	return cuMemAllocManaged((CUdeviceptr *)handle, (size_t)bytes, 1);
}

static CUresult take_async(int64_t bytes, uint64_t *handle)
{
	return cuMemAllocAsync((CUdeviceptr *)handle, (size_t)bytes, NULL);
}

static CUresult give_async(uint64_t handle)
{
	CUresult result = cuMemFreeAsync(handle, NULL);
	cuStreamSynchronize(NULL);
	return result;
}

static CUresult take_async_per_thread(int64_t bytes, uint64_t *handle)
{
	return cuMemAllocAsync_ptsz((CUdeviceptr *)handle, (size_t)bytes, NULL);
}

static CUresult give_async_per_thread(uint64_t handle)
{
	CUresult result = cuMemFreeAsync_ptsz(handle, NULL);
	cuStreamSynchronize_ptsz(NULL);
	return result;
}

static CUmemoryPool pool(void)
{
	CUmemPoolProps properties = { .allocType = 1,
		                      .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	if (own_pool == NULL)
		assert_int_equal(cuMemPoolCreate(&own_pool, &properties), CUDA_SUCCESS);
	return own_pool;
}

static CUresult take_from_pool(int64_t bytes, uint64_t *handle)
{
	return cuMemAllocFromPoolAsync((CUdeviceptr *)handle, (size_t)bytes, pool(), NULL);
}

static CUresult give_from_pool(uint64_t handle)
{
	CUresult result = cuMemFreeAsync(handle, NULL);
	cuEventSynchronize(NULL);
	return result;
}

static CUresult take_from_pool_per_thread(int64_t bytes, uint64_t *handle)
{
	return cuMemAllocFromPoolAsync_ptsz((CUdeviceptr *)handle, (size_t)bytes, pool(), NULL);
}

static CUresult give_and_wait(uint64_t handle)
{
	CUresult result = cuMemFreeAsync(handle, NULL);
	cuCtxSynchronize();
	cuCtxSynchronize_v2(NULL);
	return result;
}

static CUresult take_physical(int64_t bytes, uint64_t *handle)
{
	CUmemAllocationProp properties = { .type = 1,
		                           .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	return cuMemCreate((CUmemGenericAllocationHandle *)handle, (size_t)bytes, &properties, 0);
}

static CUresult give_physical(uint64_t handle)
{
	return cuMemRelease(handle);
}

static CUresult take_array_v1(int64_t bytes, uint64_t *handle)
{
	CUDA_ARRAY_DESCRIPTOR_v1 shape = { 1024, (unsigned int)(bytes / 4096), 0x20, 1 };
	return cuArrayCreate((CUarray *)handle, &shape);
}

static CUresult take_array(int64_t bytes, uint64_t *handle)
{
	CUDA_ARRAY_DESCRIPTOR shape = { 1024, (size_t)bytes / 4096, 0x20, 1 };
	return cuArrayCreate_v2((CUarray *)handle, &shape);
}

static CUresult take_array_3d_v1(int64_t bytes, uint64_t *handle)
{
	CUDA_ARRAY3D_DESCRIPTOR_v1 shape = { 256, 256, (unsigned int)(bytes / 262144), 1, 4, 0 };
	return cuArray3DCreate((CUarray *)handle, &shape);
}

static CUresult take_array_3d(int64_t bytes, uint64_t *handle)
{
	CUDA_ARRAY3D_DESCRIPTOR shape = { 256, 256, (size_t)bytes / 262144, 1, 4, 0 };
	return cuArray3DCreate_v2((CUarray *)handle, &shape);
}

static CUresult give_array(uint64_t handle)
{
	return cuArrayDestroy((CUarray)(uintptr_t)handle);
}

static CUresult take_mipmap(int64_t bytes, uint64_t *handle)
{
	CUDA_ARRAY3D_DESCRIPTOR shape = { 1024, (size_t)bytes / 4096, 0, 0x20, 1, 0 };
	return cuMipmappedArrayCreate((CUmipmappedArray *)handle, &shape, 1);
}

static CUresult give_mipmap(uint64_t handle)
{
	return cuMipmappedArrayDestroy((CUmipmappedArray)(uintptr_t)handle);
}

static CUresult take_external(int64_t bytes, uint64_t *handle)
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC descriptor = { .type = 1,
		                                        .size = (unsigned long long)bytes };
	return cuImportExternalMemory((CUexternalMemory *)handle, &descriptor);
}

static CUresult give_external(uint64_t handle)
{
	return cuDestroyExternalMemory((CUexternalMemory)(uintptr_t)handle);
}

/* What a process of another task exports. */
static CUipcMemHandle foreign(int64_t bytes)
{
	static uint64_t number = 1;
	uint64_t words[3] = { 1, number++, (uint64_t)bytes };
	CUipcMemHandle handle = { { 0 } };
	memcpy(&handle, words, sizeof words);
	return handle;
}

static CUresult take_import_v1(int64_t bytes, uint64_t *handle)
{
	return cuIpcOpenMemHandle((CUdeviceptr *)handle, foreign(bytes), 1);
}

static CUresult take_import(int64_t bytes, uint64_t *handle)
{
	return cuIpcOpenMemHandle_v2((CUdeviceptr *)handle, foreign(bytes), 1);
}

static CUresult give_import(uint64_t handle)
{
	return cuIpcCloseMemHandle(handle);
}

/* The first versions, whose pointers have 32 bits, come first: addresses grow. */
static const struct way {
	const char *name;
	CUresult (*take)(int64_t bytes, uint64_t *handle);
	CUresult (*give)(uint64_t handle);
	/* The driver has to be asked before it can be refused: for the size, of arrays by one that
	 * takes no memory. */
	bool asks_first;
} ways[] = {
	{ "cuMemAlloc", take_plain_v1, give_plain_v1, false },
	{ "cuMemAllocPitch", take_pitch_v1, give_plain_v1, false },
	{ "cuMemAlloc_v2", take_plain, give_plain, false },
	{ "cuMemAllocPitch_v2", take_pitch, give_plain, false },
	{ "cuMemAllocManaged", take_managed, give_plain, false },
	{ "cuMemAllocAsync", take_async, give_async, false },
	{ "cuMemAllocAsync, freed by cuMemFree_v2", take_async, give_plain, false },
	{ "cuMemAllocAsync_ptsz", take_async_per_thread, give_async_per_thread, false },
	{ "cuMemAllocFromPoolAsync", take_from_pool, give_from_pool, false },
	{ "cuMemAllocFromPoolAsync_ptsz", take_from_pool_per_thread, give_and_wait, false },
	{ "cuMemCreate", take_physical, give_physical, false },
	{ "cuArrayCreate", take_array_v1, give_array, true },
	{ "cuArrayCreate_v2", take_array, give_array, true },
	{ "cuArray3DCreate", take_array_3d_v1, give_array, true },
	{ "cuArray3DCreate_v2", take_array_3d, give_array, true },
	{ "cuMipmappedArrayCreate", take_mipmap, give_mipmap, true },
	{ "cuImportExternalMemory", take_external, give_external, false },
	{ "cuIpcOpenMemHandle", take_import_v1, give_import, true },
	{ "cuIpcOpenMemHandle_v2", take_import, give_import, true },
};
enum { WAYS = sizeof ways / sizeof *ways };

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			fail_msg("%s: %s", way->name, #condition);                                 \
	} while (0)

static int end_with_pool(void **state)
{
	if (own_pool != NULL)
		cuMemPoolDestroy(own_pool);
	own_pool = NULL;
	return fixture_end(state);
}

static void each_entry_point_gives_what_is_within_the_limit(void **state)
{
	struct fixture *fixture = *state;
	for (const struct way *way = ways; way < ways + WAYS; way++) {
		uint64_t handle = 0;
		CHECK(way->take(64 * MIB, &handle) == CUDA_SUCCESS);
		CHECK(fixture_used(fixture, 0) == 64 * MIB);
		CHECK(way->give(handle) == CUDA_SUCCESS);
		CHECK(fixture_used(fixture, 0) == 0);
		CHECK(fixture_refusals(fixture, 0) == 0);
		CHECK(DRIVER(standin_used)(0) == 0);
	}
}

static void each_entry_point_refuses_what_is_over_the_limit(void **state)
{
	struct fixture *fixture = *state;
	int64_t refusals = 0;
	for (const struct way *way = ways; way < ways + WAYS; way++) {
		uint64_t held = 0;
		uint64_t handle = 0;
		CHECK(way->take(32 * MIB, &held) == CUDA_SUCCESS);
		int64_t calls = DRIVER(standin_calls)();
		CHECK(way->take(33 * MIB, &handle) == CUDA_ERROR_OUT_OF_MEMORY);
		CHECK(way->asks_first || DRIVER(standin_calls)() == calls);
		CHECK(fixture_used(fixture, 0) == 32 * MIB);
		CHECK(fixture_refusals(fixture, 0) == ++refusals);
		CHECK(way->take(32 * MIB, &handle) == CUDA_SUCCESS);
		CHECK(way->give(handle) == CUDA_SUCCESS);
		CHECK(way->give(held) == CUDA_SUCCESS);
		CHECK(fixture_used(fixture, 0) == 0);
	}
	assert_int_equal(fixture_peak(fixture, 0), 64 * MIB);
	assert_true(atomic_load(&fixture->standin->peak_bytes[0]) <= 64 * MIB);
}

static void each_entry_point_is_refused_where_the_task_has_no_memory(void **state)
{
	struct fixture *fixture = *state;
	fixture_limit(fixture, 0, 0);
	for (const struct way *way = ways; way < ways + WAYS; way++) {
		uint64_t handle = 0;
		CHECK(way->take(1 * MIB, &handle) == CUDA_ERROR_OUT_OF_MEMORY);
		CHECK(fixture_used(fixture, 0) == 0);
	}
}

static void what_the_driver_refuses_is_not_charged(void **state)
{
	struct fixture *fixture = *state;
	fixture_limit(fixture, 0, SEGMENT_NO_LIMIT);
	setenv("STANDIN_MEMORY", "1048576", 1);
	for (const struct way *way = ways; way < ways + WAYS; way++) {
		uint64_t handle = 0;
		if (way->asks_first)
			continue;
		CHECK(way->take(8 * MIB, &handle) == CUDA_ERROR_OUT_OF_MEMORY);
		CHECK(fixture_used(fixture, 0) == 0);
		CHECK(fixture_refusals(fixture, 0) == 0);
	}
}

static void freeing_in_vain_gives_nothing_back(void **state)
{
	struct fixture *fixture = *state;
	uint64_t handle;
	assert_int_equal(take_plain(32 * MIB, &handle), CUDA_SUCCESS);
	for (const struct way *way = ways; way < ways + WAYS; way++) {
		if (way->give != give_external)
			CHECK(way->give(0x123456) != CUDA_SUCCESS);
		CHECK(fixture_used(fixture, 0) == 32 * MIB);
	}
	assert_int_equal(give_plain(handle), CUDA_SUCCESS);
	assert_int_not_equal(give_plain(handle), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
}

static void sizes_count_as_the_driver_takes_them(void **state)
{
	struct fixture *fixture = *state;
	const struct {
		int64_t asked, counted;
	} sizes[] = { { 1, 512 },           { 513, 1024 },        { MIB, MIB },
		      { MIB + 1, 2 * MIB }, { 2 * MIB, 2 * MIB }, { 3 * MIB, 4 * MIB } };
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		uint64_t handle;
		assert_int_equal(take_plain(sizes[i].asked, &handle), CUDA_SUCCESS);
		assert_int_equal(fixture_used(fixture, 0), sizes[i].counted);
		assert_int_equal(give_plain(handle), CUDA_SUCCESS);
	}
}

static void sizes_beyond_all_numbers_are_refused(void **state)
{
	struct fixture *fixture = *state;
	CUdeviceptr pointer;
	size_t pitch;
	CUarray array;
	CUDA_ARRAY3D_DESCRIPTOR shape = { SIZE_MAX / 2, SIZE_MAX / 2, SIZE_MAX / 2, 0x20, 4, 0 };
	assert_int_equal(cuMemAlloc_v2(&pointer, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAllocPitch_v2(&pointer, &pitch, SIZE_MAX, SIZE_MAX, 4),
	                 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAllocAsync(&pointer, SIZE_MAX, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuArray3DCreate_v2(&array, &shape), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(fixture_used(fixture, 0), 0);
}

static void a_row_that_the_driver_makes_wider_counts_in_full(void **state)
{
	struct fixture *fixture = *state;
	CUdeviceptr pointer;
	size_t pitch;
	/* 40 MiB as asked for, 80 MiB with rows of 512 bytes. */
	assert_int_equal(cuMemAllocPitch_v2(&pointer, &pitch, 256, (size_t)(40 * MIB / 256), 4),
	                 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(fixture_used(fixture, 0), 0);
	assert_int_equal(fixture_refusals(fixture, 0), 1);
	assert_int_equal(DRIVER(standin_used)(0), 0);
	assert_int_equal(cuMemAllocPitch_v2(&pointer, &pitch, 256, (size_t)(20 * MIB / 256), 4),
	                 CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 40 * MIB);
}

static void sparse_arrays_and_memory_of_the_host_do_not_count(void **state)
{
	struct fixture *fixture = *state;
	CUarray array;
	CUDA_ARRAY3D_DESCRIPTOR shape = { 4096, 4096, 64, 0x20, 4, CUDA_ARRAY3D_SPARSE };
	assert_int_equal(cuArray3DCreate_v2(&array, &shape), CUDA_SUCCESS);
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp properties = { .type = 1,
		                           .location = { CU_MEM_LOCATION_TYPE_HOST, 0 } };
	assert_int_equal(cuMemCreate(&handle, (size_t)(256 * MIB), &properties, 0), CUDA_SUCCESS);
	CUmemPoolProps pool_properties = { .allocType = 1,
		                           .location = { CU_MEM_LOCATION_TYPE_HOST, 0 } };
	CUmemoryPool host;
	CUdeviceptr pointer;
	assert_int_equal(cuMemPoolCreate(&host, &pool_properties), CUDA_SUCCESS);
	assert_int_equal(cuMemAllocFromPoolAsync(&pointer, (size_t)(256 * MIB), host, NULL),
	                 CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
	assert_int_equal(cuMemFreeAsync(pointer, NULL), CUDA_SUCCESS);
	assert_int_equal(cuMemPoolDestroy(host), CUDA_SUCCESS);
	assert_int_equal(cuMemRelease(handle), CUDA_SUCCESS);
	assert_int_equal(cuArrayDestroy(array), CUDA_SUCCESS);
}

static void a_mipmapped_array_counts_all_its_levels(void **state)
{
	struct fixture *fixture = *state;
	CUDA_ARRAY3D_DESCRIPTOR shape = { 1024, 1024, 0, 0x20, 1, 0 };
	CUmipmappedArray array;
	assert_int_equal(cuMipmappedArrayCreate(&array, &shape, 2), CUDA_SUCCESS);
	/* 4 MiB and 1 MiB, in pages of 2 MiB. */
	assert_int_equal(fixture_used(fixture, 0), 6 * MIB);
}

static void the_limits_of_two_gpus_are_apart(void **state)
{
	struct fixture *fixture = *state;
	uint64_t first;
	uint64_t second;
	fixture_limit(fixture, 1, 16 * MIB);
	assert_int_equal(take_plain(64 * MIB, &first), CUDA_SUCCESS);
	assert_int_equal(DRIVER(cuCtxSetCurrent)(fixture->contexts[1]), CUDA_SUCCESS);
	assert_int_equal(take_plain(17 * MIB, &second), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(take_plain(16 * MIB, &second), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 64 * MIB);
	assert_int_equal(fixture_used(fixture, 1), 16 * MIB);
	/* Freed from the other device's context, it goes back to where it came from. */
	assert_int_equal(give_plain(first), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
	assert_int_equal(fixture_used(fixture, 1), 16 * MIB);
	assert_int_equal(fixture_refusals(fixture, 0), 0);
	assert_int_equal(fixture_refusals(fixture, 1), 1);
}

static void a_limit_that_is_lowered_refuses_and_takes_nothing_away(void **state)
{
	struct fixture *fixture = *state;
	uint64_t handle;
	uint64_t more;
	assert_int_equal(take_plain(48 * MIB, &handle), CUDA_SUCCESS);
	fixture_limit(fixture, 0, 32 * MIB);
	assert_int_equal(take_plain(2 * MIB, &more), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(fixture_used(fixture, 0), 48 * MIB);
	assert_int_equal(give_plain(handle), CUDA_SUCCESS);
	assert_int_equal(take_plain(2 * MIB, &more), CUDA_SUCCESS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_begin, end_with_pool)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_entry_point_gives_what_is_within_the_limit),
		TEST(each_entry_point_refuses_what_is_over_the_limit),
		TEST(each_entry_point_is_refused_where_the_task_has_no_memory),
		TEST(what_the_driver_refuses_is_not_charged),
		TEST(freeing_in_vain_gives_nothing_back),
		TEST(sizes_count_as_the_driver_takes_them),
		TEST(sizes_beyond_all_numbers_are_refused),
		TEST(a_row_that_the_driver_makes_wider_counts_in_full),
		TEST(sparse_arrays_and_memory_of_the_host_do_not_count),
		TEST(a_mipmapped_array_counts_all_its_levels),
		TEST(the_limits_of_two_gpus_are_apart),
		TEST(a_limit_that_is_lowered_refuses_and_takes_nothing_away),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
