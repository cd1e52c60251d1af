/* guard_probe.c - a CUDA program with the runtime linked statically, to try the guard on
 *
 *	guard_probe fill            takes memory until it is refused, and goes on
 *	guard_probe ways            allocates 64 MiB by each way, and says what that counts
 *	guard_probe pages           what the driver takes for allocations of some sizes
 *	guard_probe times COUNT     the time of so many allocations and frees
 *	guard_probe hold MIB SECONDS
 *	guard_probe work SECONDS    computes, and says how fast
 *	guard_probe greedy SECONDS  the same, while it tries to take everything
 *
 * What it finds is one JSON object on standard output. Built by nvcc. */
#include <cuda_runtime_api.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

/* Multiplies and adds so many times, in each of its threads. */
static const char spin_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry spin(.param .u64 p_out, .param .u32 p_rounds)\n{\n"
    "  .reg .pred more;\n  .reg .f32 value;\n"
    "  .reg .b32 round, rounds, thread, block, size;\n  .reg .b64 out, offset;\n"
    "  ld.param.u64 out, [p_out];\n  ld.param.u32 rounds, [p_rounds];\n"
    "  cvta.to.global.u64 out, out;\n"
    "  mov.u32 thread, %tid.x;\n  mov.u32 block, %ctaid.x;\n  mov.u32 size, %ntid.x;\n"
    "  mad.lo.u32 thread, block, size, thread;\n"
    "  cvt.rn.f32.u32 value, thread;\n  mov.u32 round, 0;\n"
    "again:\n"
    "  fma.rn.f32 value, value, 0f3F800008, 0f3F000000;\n"
    "  add.u32 round, round, 1;\n  setp.lt.u32 more, round, rounds;\n  @more bra again;\n"
    "  mul.wide.u32 offset, thread, 4;\n  add.u64 out, out, offset;\n"
    "  st.global.f32 [out], value;\n  ret;\n}\n";
enum { BLOCKS = 1024, THREADS = 256 };

static cudaKernel_t load_kernel(void)
{
	cudaLibrary_t library;
	cudaKernel_t kernel = NULL;
	if (cudaLibraryLoadData(&library, spin_ptx, NULL, NULL, 0, NULL, NULL, 0) == cudaSuccess)
		(void)cudaLibraryGetKernel(&kernel, library, "spin");
	return kernel;
}

static cudaError_t launch(cudaKernel_t kernel, float *out, unsigned int rounds)
{
	void *arguments[] = { &out, &rounds };
	struct dim3 blocks = { BLOCKS, 1, 1 };
	struct dim3 threads = { THREADS, 1, 1 };
	return cudaLaunchKernel((const void *)kernel, blocks, threads, arguments, 0, NULL);
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static size_t free_bytes(void)
{
	size_t free_now = 0;
	size_t total = 0;
	cudaMemGetInfo(&free_now, &total);
	return free_now;
}

static int fill(void)
{
	enum { MOST = 4096 };
	static void *held[MOST];
	static struct cudaDeviceProp properties;
	size_t free_before = 0;
	size_t total = 0;
	cudaFree(0);
	cudaKernel_t kernel = load_kernel();
	cudaGetDeviceProperties(&properties, 0);
	cudaMemGetInfo(&free_before, &total);
	size_t count = 0;
	cudaError_t error = cudaSuccess;
	while (count < MOST && (error = cudaMalloc(&held[count], 256 * MIB)) == cudaSuccess)
		count++;
	cudaGetLastError();
	for (size_t i = count / 2; i < count; i++)
		cudaFree(held[i]);
	void *pointer;
	float *out;
	bool goes_on = cudaMalloc(&pointer, 256 * MIB) == cudaSuccess &&
	               cudaMalloc((void **)&out, BLOCKS * THREADS * sizeof *out) == cudaSuccess &&
	               launch(kernel, out, 100) == cudaSuccess &&
	               cudaDeviceSynchronize() == cudaSuccess;
	printf("{\"properties_mib\": %zu, \"total_mib\": %zu, \"free_mib\": %zu, "
	       "\"taken_mib\": %zu, \"refused_with\": \"%s\", \"goes_on\": %s}\n",
	       properties.totalGlobalMem / MIB, total / MIB, free_before / MIB, count * 256,
	       cudaGetErrorName(error), goes_on ? "true" : "false");
	return 0;
}

/* What is allocated, in each of the ways. */
static struct {
	void *pointer;
	size_t pitch;
	cudaArray_t array;
	cudaMipmappedArray_t mipmap;
	cudaGraph_t graph;
	cudaGraphExec_t ready;
} made;
static const struct cudaChannelFormatDesc one_float = { 32, 0, 0, 0, cudaChannelFormatKindFloat };

static cudaError_t make_plain(void)
{
	return cudaMalloc(&made.pointer, 64 * MIB);
}
static cudaError_t make_pitch(void)
{
	return cudaMallocPitch(&made.pointer, &made.pitch, 1024, 64 * 1024);
}
static cudaError_t make_managed(void)
{
	return cudaMallocManaged(&made.pointer, 64 * MIB, cudaMemAttachGlobal);
}
static cudaError_t make_async(void)
{
	return cudaMallocAsync(&made.pointer, 64 * MIB, NULL);
}
static cudaError_t make_array(void)
{
	return cudaMallocArray(&made.array, &one_float, 4096, 4096, 0);
}
static cudaError_t make_array_3d(void)
{
	struct cudaExtent extent = { 256, 256, 256 };
	return cudaMalloc3DArray(&made.array, &one_float, extent, 0);
}
static cudaError_t make_mipmap(void)
{
	struct cudaExtent extent = { 4096, 4096, 0 };
	return cudaMallocMipmappedArray(&made.mipmap, &one_float, extent, 2, 0);
}
static cudaError_t make_graph(void)
{
	struct cudaMemAllocNodeParams parameters = { 0 };
	cudaGraphNode_t taken;
	cudaGraphNode_t given;
	parameters.poolProps.allocType = cudaMemAllocationTypePinned;
	parameters.poolProps.location.type = cudaMemLocationTypeDevice;
	parameters.bytesize = 64 * MIB;
	cudaGraphCreate(&made.graph, 0);
	cudaError_t error = cudaGraphAddMemAllocNode(&taken, made.graph, NULL, 0, &parameters);
	if (error == cudaSuccess)
		error = cudaGraphAddMemFreeNode(&given, made.graph, &taken, 1, parameters.dptr);
	if (error == cudaSuccess)
		error = cudaGraphInstantiate(&made.ready, made.graph, 0);
	if (error == cudaSuccess)
		error = cudaGraphLaunch(made.ready, NULL);
	cudaStreamSynchronize(NULL);
	return error;
}
static void end_pointer(void)
{
	cudaFree(made.pointer);
}
static void end_async(void)
{
	cudaFreeAsync(made.pointer, NULL);
}
static void end_array(void)
{
	cudaFreeArray(made.array);
}
static void end_mipmap(void)
{
	cudaFreeMipmappedArray(made.mipmap);
}
static void end_graph(void)
{
	cudaGraphExecDestroy(made.ready);
	cudaGraphDestroy(made.graph);
	cudaDeviceGraphMemTrim(0);
}

/* What free memory falls by when each way allocates 64 MiB, and what stays gone after
 * freeing it. Under the guard these are its books. */
static int ways(void)
{
	const struct {
		const char *name;
		cudaError_t (*make)(void);
		void (*end)(void);
	} all[] = { { "cudaMalloc", make_plain, end_pointer },
		    { "cudaMallocPitch", make_pitch, end_pointer },
		    { "cudaMallocManaged", make_managed, end_pointer },
		    { "cudaMallocAsync", make_async, end_async },
		    { "cudaMallocArray", make_array, end_array },
		    { "cudaMalloc3DArray", make_array_3d, end_array },
		    { "cudaMallocMipmappedArray", make_mipmap, end_mipmap },
		    { "graph", make_graph, end_graph } };
	cudaFree(0);
	printf("{");
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		cudaDeviceSynchronize();
		size_t before = free_bytes();
		cudaError_t error = all[i].make();
		long held = (long)before - (long)free_bytes();
		if (error == cudaSuccess)
			all[i].end();
		cudaDeviceSynchronize();
		long left = (long)before - (long)free_bytes();
		printf("%s\"%s\": {\"error\": \"%s\", \"held_mib\": %ld, \"left_mib\": %ld}",
		       i > 0 ? ", " : "", all[i].name, cudaGetErrorName(error), held / (long)MIB,
		       left / (long)MIB);
		cudaGetLastError();
	}
	printf("}\n");
	return 0;
}

/* Without the guard: what the driver takes for one of 64 equal allocations, in KiB. */
static int pages(void)
{
	const size_t sizes[] = { 512,     4096,    65536,       MIB / 2, MIB - 1,     MIB,
		                 MIB + 1, 3 * MIB / 2, 2 * MIB, 2 * MIB + 1, 3 * MIB, 5 * MIB };
	void *held[64];
	cudaFree(0);
	printf("{");
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t before = free_bytes();
		for (int j = 0; j < 64; j++) {
			held[j] = NULL;
			(void)cudaMalloc(&held[j], sizes[i]);
		}
		printf("%s\"%zu\": %.1f", i > 0 ? ", " : "", sizes[i],
		       (double)(before - free_bytes()) / 64 / 1024);
		for (int j = 0; j < 64; j++)
			cudaFree(held[j]);
	}
	printf("}\n");
	return 0;
}

/* Allocations of 4 KiB with a thousand of them held, of 4 MiB with one, and of 4 KiB
 * from a pool. */
static int times(int count)
{
	static void *held[1000];
	void *pointer;
	cudaFree(0);
	double began = now();
	for (int i = 0; i < count; i++) {
		cudaFree(held[i % 1000]);
		cudaMalloc(&held[i % 1000], 4096);
	}
	double small_s = now() - began;
	for (int i = 0; i < 1000; i++)
		cudaFree(held[i]);
	int large = count / 50;
	began = now();
	for (int i = 0; i < large; i++) {
		cudaMalloc(&pointer, 4 * MIB);
		cudaFree(pointer);
	}
	double large_s = now() - began;
	began = now();
	for (int i = 0; i < count; i++) {
		cudaMallocAsync(&pointer, 4096, NULL);
		cudaFreeAsync(pointer, NULL);
	}
	double pool_s = now() - began;
	cudaDeviceSynchronize();
	printf("{\"small_ns\": %.1f, \"large_ns\": %.1f, \"pool_ns\": %.1f}\n", small_s / count * 1e9,
	       large_s / large * 1e9, pool_s / count * 1e9);
	return 0;
}

static int hold(int mib, int seconds)
{
	void *pointer;
	cudaError_t error = cudaMalloc(&pointer, (size_t)mib * MIB);
	printf("{\"error\": \"%s\", \"pid\": %d}\n", cudaGetErrorName(error), (int)getpid());
	fflush(stdout);
	sleep((unsigned int)seconds);
	return 0;
}

/* Launches kernels of a fraction of a millisecond, one after the other. The first two
 * seconds do not count. */
static int work(int seconds, bool greedy)
{
	float *out;
	cudaFree(0);
	cudaKernel_t kernel = load_kernel();
	if (cudaMalloc((void **)&out, BLOCKS * THREADS * sizeof *out) != cudaSuccess)
		return 1;
	long launches = 0;
	long refused = 0;
	double begin = now() + 2;
	double end = begin + seconds;
	for (double at = now(); at < end; at = now()) {
		if (launch(kernel, out, 20000) != cudaSuccess)
			return 2;
		for (int i = 0; greedy && i < 10; i++) {
			void *pointer;
			if (cudaMalloc(&pointer, 1024 * MIB) != cudaSuccess) {
				cudaGetLastError();
				refused++;
			}
		}
		if (cudaDeviceSynchronize() != cudaSuccess)
			return 3;
		launches += at >= begin;
	}
	printf("{\"launches_per_s\": %.1f, \"refused\": %ld}\n", (double)launches / seconds, refused);
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int number = argc > 2 ? atoi(argv[2]) : 0;
	if (strcmp(mode, "fill") == 0)
		return fill();
	if (strcmp(mode, "ways") == 0)
		return ways();
	if (strcmp(mode, "pages") == 0)
		return pages();
	if (strcmp(mode, "times") == 0 && number > 0)
		return times(number);
	if (strcmp(mode, "hold") == 0 && argc > 3)
		return hold(number, atoi(argv[3]));
	if (strcmp(mode, "work") == 0 || strcmp(mode, "greedy") == 0)
		return work(number, mode[0] == 'g');
	fprintf(stderr, "guard_probe: see the top of its source\n");
	return 2;
}
