/* attack_test.c - memory that a task takes by other ways than by allocating it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fixture.h"
#include "guard/calls/driver_abi.h"
#include "guard/calls/overhead.h"
#include "guard/calls/stash.h"

static const CUmemAllocationProp on_gpu = { .type = 1,
	                                    .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };

static int64_t hidden(struct fixture *fixture)
{
	struct watch_gpu gpu;
	assert_true(watch_gpu(&fixture->watch, 0, &gpu));
	return gpu.hidden_bytes;
}

/* Makes memory, exports it, and lets go of the handle. */
static int stash_away(size_t bytes, CUresult *result)
{
	CUmemGenericAllocationHandle handle;
	int file = -1;
	*result = cuMemCreate(&handle, bytes, &on_gpu, 0);
	if (*result != CUDA_SUCCESS)
		return -1;
	assert_int_equal(cuMemExportToShareableHandle(&file, handle, 1, 0), CUDA_SUCCESS);
	assert_int_equal(cuMemRelease(handle), CUDA_SUCCESS);
	return file;
}

static void memory_behind_a_descriptor_stays_charged_until_it_is_closed(void **state)
{
	struct fixture *fixture = *state;
	CUresult result;
	CUdeviceptr pointer;
	int first = stash_away((size_t)(40 * MIB), &result);
	assert_int_equal(result, CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 40 * MIB);
	assert_int_equal(hidden(fixture), 40 * MIB);
	assert_int_equal(stash_away((size_t)(40 * MIB), &result), -1);
	assert_int_equal(result, CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(40 * MIB)), CUDA_ERROR_OUT_OF_MEMORY);
	/* A copy of the descriptor, and one on its way to somebody, hold it as well. */
	int copy = dup(first);
	close(first);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(40 * MIB)), CUDA_ERROR_OUT_OF_MEMORY);
	close(copy);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(40 * MIB)), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 40 * MIB);
	assert_int_equal(hidden(fixture), 0);
	assert_int_equal(cuMemFree_v2(pointer), CUDA_SUCCESS);
}

static void a_descriptor_on_its_way_between_processes_holds_memory(void **state)
{
	struct fixture *fixture = *state;
	CUresult result;
	int ends[2];
	int file = stash_away((size_t)(40 * MIB), &result);
	char byte = 0;
	struct iovec part = { &byte, 1 };
	char room[CMSG_SPACE(sizeof(int))] = { 0 };
	struct msghdr message = { .msg_iov = &part,
		                  .msg_iovlen = 1,
		                  .msg_control = room,
		                  .msg_controllen = sizeof room };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	*header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
		                    .cmsg_type = SCM_RIGHTS,
		                    .cmsg_len = CMSG_LEN(sizeof(int)) };
	memcpy(CMSG_DATA(header), &file, sizeof file);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(sendmsg(ends[0], &message, 0), 1);
	close(file);
	stash_sweep();
	assert_int_equal(fixture_used(fixture, 0), 40 * MIB);
	close(ends[0]);
	close(ends[1]);
	stash_sweep();
	assert_int_equal(fixture_used(fixture, 0), 0);
}

static void a_module_far_over_the_limit_is_unloaded(void **state)
{
	struct fixture *fixture = *state;
	CUmodule modules[3];
	assert_int_equal(cuModuleLoadData(&modules[0], "100 kernel=0"), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 100 * MIB);
	/* A full budget and some modules on top are nothing unusual; more than that is. */
	assert_int_equal(cuModuleLoadData(&modules[1], "300"), CUDA_SUCCESS);
	assert_int_equal(cuModuleLoadData(&modules[2], "300"), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(fixture_used(fixture, 0), 400 * MIB);
	assert_int_equal(DRIVER(standin_used)(0), 400 * MIB);
	assert_int_equal(cuModuleUnload(modules[0]), CUDA_SUCCESS);
	assert_int_equal(cuModuleUnload(modules[1]), CUDA_SUCCESS);
}

static void a_managed_variable_is_charged_until_its_module_goes(void **state)
{
	struct fixture *fixture = *state;
	CUmodule modules[2];
	CUdeviceptr pointer;
	size_t bytes;
	for (int i = 0; i < 2; i++)
		assert_int_equal(cuModuleLoadData(&modules[i], "0 kernel=0 managed=40"),
		                 CUDA_SUCCESS);
	assert_int_equal(cuModuleGetGlobal_v2(&pointer, &bytes, modules[0], "big"), CUDA_SUCCESS);
	assert_int_equal(cuModuleGetGlobal_v2(NULL, NULL, modules[0], "big"), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 40 * MIB);
	assert_int_equal(hidden(fixture), 40 * MIB);
	assert_int_equal(cuModuleGetGlobal_v2(&pointer, &bytes, modules[1], "big"),
	                 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuModuleUnload(modules[0]), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
	assert_int_equal(hidden(fixture), 0);
	assert_int_equal(cuModuleGetGlobal_v2(&pointer, &bytes, modules[1], "big"), CUDA_SUCCESS);
	assert_int_equal(cuModuleUnload(modules[1]), CUDA_SUCCESS);
}

static void a_kernel_whose_stacks_do_not_fit_is_not_handed_out(void **state)
{
	struct fixture *fixture = *state;
	CUmodule module;
	CUfunction function;
	CUkernel kernel;
	CUdeviceptr pointer;
	assert_int_equal(cuModuleLoadData(&module, "0 kernel=122880"), CUDA_SUCCESS);
	assert_int_equal(cuModuleGetFunction(&function, module, "kernel"),
	                 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuLibraryGetKernel(&kernel, (CUlibrary)(void *)module, "kernel"),
	                 CUDA_ERROR_OUT_OF_MEMORY);
	/* What fits is charged at once, since it is taken with the launch. */
	fixture_limit(fixture, 0, 40 * GIB);
	assert_int_equal(cuModuleGetFunction(&function, module, "kernel"), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), INT64_C(122880) * STANDIN_THREADS);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(12 * GIB)), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuModuleGetFunction(&function, module, "kernel"), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), INT64_C(122880) * STANDIN_THREADS);
	assert_int_equal(DRIVER(cuModuleUnload)(module), CUDA_SUCCESS);
}

static void a_heap_for_kernels_counts_when_it_is_asked_for(void **state)
{
	struct fixture *fixture = *state;
	CUdeviceptr pointer;
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, (size_t)(80 * MIB)),
	                 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, (size_t)(40 * MIB)),
	                 CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 32 * MIB);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(40 * MIB)), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, (size_t)(8 * MIB)), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
}

/* A graph of that many nodes that allocate; each is freed before the next where `in_turn`. */
static CUgraph graph_of(int nodes, size_t bytes, bool in_turn)
{
	CUgraph graph;
	CUgraphNode node;
	assert_int_equal(DRIVER(cuGraphCreate)(&graph, 0), CUDA_SUCCESS);
	for (int i = 0; i < nodes; i++) {
		CUDA_MEM_ALLOC_NODE_PARAMS parameters = { .bytesize = bytes };
		parameters.poolProps.location = on_gpu.location;
		assert_int_equal(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &parameters),
		                 CUDA_SUCCESS);
		if (in_turn)
			assert_int_equal(
			    DRIVER(cuGraphAddMemFreeNode)(&node, graph, NULL, 0, parameters.dptr),
			    CUDA_SUCCESS);
	}
	return graph;
}

static void the_nodes_of_a_graph_are_added_up(void **state)
{
	struct fixture *fixture = *state;
	CUgraphExec exec;
	CUgraphExec second;
	assert_int_equal(
	    cuGraphInstantiateWithFlags(&exec, graph_of(6, (size_t)(20 * MIB), false), 0),
	    CUDA_ERROR_OUT_OF_MEMORY);
	/* One after the other they fit, as often as the graph is launched. */
	assert_int_equal(
	    cuGraphInstantiateWithFlags(&exec, graph_of(6, (size_t)(40 * MIB), true), 0),
	    CUDA_SUCCESS);
	for (int i = 0; i < 5; i++)
		assert_int_equal(cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 40 * MIB);
	assert_int_equal(cuGraphExecDestroy(exec), CUDA_SUCCESS);
	/* What one graph leaves in use, another cannot have. */
	assert_int_equal(
	    cuGraphInstantiateWithFlags(&exec, graph_of(1, (size_t)(40 * MIB), false), 0),
	    CUDA_SUCCESS);
	assert_int_equal(
	    cuGraphInstantiateWithFlags(&second, graph_of(1, (size_t)(40 * MIB), false), 0),
	    CUDA_SUCCESS);
	assert_int_equal(cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
	assert_int_equal(cuGraphLaunch(second, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(DRIVER(standin_used)(0), 40 * MIB);
}

static void what_a_captured_stream_allocates_is_added_up(void **state)
{
	(void)state;
	CUstream stream;
	CUgraph graph;
	CUgraphExec exec;
	CUdeviceptr pointer;
	assert_int_equal(DRIVER(cuStreamCreate)(&stream, 0), CUDA_SUCCESS);
	assert_int_equal(DRIVER(cuStreamBeginCapture_v2)(stream, 0), CUDA_SUCCESS);
	for (int i = 0; i < 4; i++)
		assert_int_equal(cuMemAllocAsync(&pointer, (size_t)(20 * MIB), stream),
		                 CUDA_SUCCESS);
	assert_int_equal(DRIVER(cuStreamEndCapture)(stream, &graph), CUDA_SUCCESS);
	assert_int_equal(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

static void a_narrow_array_counts_with_what_it_really_takes(void **state)
{
	struct fixture *fixture = *state;
	CUarray array;
	CUarray second;
	const CUDA_ARRAY_DESCRIPTOR narrow = { 1, 640 * 1024, 1, 1 };
	assert_int_equal(cuArrayCreate_v2(&array, &narrow), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 40 * MIB);
	assert_int_equal(cuArrayCreate_v2(&second, &narrow), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(DRIVER(standin_used)(0), 40 * MIB);
	assert_int_equal(cuArrayDestroy(array), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
}

static void memory_of_the_hosts_pool_is_not_the_gpus(void **state)
{
	struct fixture *fixture = *state;
	CUmemoryPool pool;
	CUdeviceptr pointer;
	CUmemLocation host = { CU_MEM_LOCATION_TYPE_HOST, 0 };
	assert_int_equal(cuMemGetDefaultMemPool(&pool, &host, 1), CUDA_SUCCESS);
	assert_int_equal(cuMemAllocFromPoolAsync(&pointer, (size_t)(100 * MIB), pool, NULL),
	                 CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
	assert_int_equal(cuMemFreeAsync(pointer, NULL), CUDA_SUCCESS);
}

static void the_process_list_shows_the_tasks_own_alone(void **state)
{
	(void)state;
	nvmlDevice_t device;
	nvmlProcessInfo_t processes[8];
	unsigned int count = 8;
	CUdeviceptr pointer;
	void *nvml = dlopen(GUARD_BUILD "/test/libnvidia-ml.so.1", RTLD_NOW);
	__typeof__(&nvmlDeviceGetHandleByIndex_v2) by_index;
	*(void **)&by_index = dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2");
	assert_int_equal(by_index(0, &device), NVML_SUCCESS);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(16 * MIB)), CUDA_SUCCESS);
	assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes),
	                 NVML_SUCCESS);
	assert_int_equal(count, 1);
	assert_int_equal(processes[0].pid, getpid());
	assert_int_equal(processes[0].usedGpuMemory, 16 * MIB);
	count = 0;
	assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL),
	                 NVML_ERROR_INSUFFICIENT_SIZE);
	assert_int_equal(count, 1);
	assert_int_equal(cuMemFree_v2(pointer), CUDA_SUCCESS);
	dlclose(nvml);
}

/* By a driver of its own, as a library that was loaded apart has it. */
static void what_grew_behind_the_guards_back_is_measured_before_much_more_is_given(void **state)
{
	struct fixture *fixture = *state;
	CUdeviceptr pointer;
	fixture_limit(fixture, 0, 8 * GIB);
	assert_int_equal(DRIVER(cuMemAlloc_v2)(&pointer, (size_t)(4 * GIB)), CUDA_SUCCESS);
	int granted = 0;
	while (granted < 8 && cuMemAlloc_v2(&pointer, (size_t)(1 * GIB)) == CUDA_SUCCESS)
		granted++;
	assert_int_equal(granted, 4);
	assert_int_equal(fixture_used(fixture, 0), 8 * GIB);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_begin, fixture_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(memory_behind_a_descriptor_stays_charged_until_it_is_closed),
		TEST(a_descriptor_on_its_way_between_processes_holds_memory),
		TEST(a_module_far_over_the_limit_is_unloaded),
		TEST(a_managed_variable_is_charged_until_its_module_goes),
		TEST(a_kernel_whose_stacks_do_not_fit_is_not_handed_out),
		TEST(a_heap_for_kernels_counts_when_it_is_asked_for),
		TEST(the_nodes_of_a_graph_are_added_up),
		TEST(what_a_captured_stream_allocates_is_added_up),
		TEST(a_narrow_array_counts_with_what_it_really_takes),
		TEST(memory_of_the_hosts_pool_is_not_the_gpus),
		TEST(the_process_list_shows_the_tasks_own_alone),
		TEST(what_grew_behind_the_guards_back_is_measured_before_much_more_is_given),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
