/* guard_runtime.c - a CUDA program with the runtime linked statically, to try the guard on
 *
 *	guard_runtime fill   takes memory until it is refused, and goes on
 *	guard_runtime ways   allocates 64 MiB by each way, and says what that counts
 *	guard_runtime pages  what the driver takes for allocations of some sizes
 *
 * What it finds is one JSON object on standard output. Built by nvcc. */
#include <cuda_runtime_api.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

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
	cudaGetDeviceProperties(&properties, 0);
	cudaMemGetInfo(&free_before, &total);
	size_t count = 0;
	cudaError_t error = cudaSuccess;
	while (count < MOST && (error = cudaMalloc(&held[count], 256 * MIB)) == cudaSuccess)
		count++;
	cudaGetLastError();
	/* So long that nvidia-smi sees it. */
	sleep(2);
	for (size_t i = count / 2; i < count; i++)
		cudaFree(held[i]);
	void *pointer = NULL;
	bool goes_on = cudaMalloc(&pointer, 256 * MIB) == cudaSuccess &&
	               cudaMemset(pointer, 1, 256 * MIB) == cudaSuccess &&
	               cudaDeviceSynchronize() == cudaSuccess;
	printf("{\"shown_mib\": %zu, \"total_mib\": %zu, \"free_mib\": %zu, "
	       "\"taken_mib\": %zu, \"said\": \"%s\", \"goes_on\": %s}\n",
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

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	if (strcmp(mode, "fill") == 0)
		return fill();
	if (strcmp(mode, "ways") == 0)
		return ways();
	if (strcmp(mode, "pages") == 0)
		return pages();
	fprintf(stderr, "guard_runtime: see the top of its source\n");
	return 2;
}
