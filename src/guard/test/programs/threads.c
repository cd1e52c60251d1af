/* threads.c - threads that allocate and free by all ways, for the thread sanitizer
 *
 * The guard is part of the program, instrumented like it. Exits with 0 if the counters return
 * to zero; the sanitizer aborts it if it sees a race. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../budget/budget.h"
#include "../../calls/state.h"
#include "../../calls/track.h"
#include "../standin/standin.h"

#define MIB ((size_t)1 << 20)
enum { THREADS = 4, ROUNDS = 400 };

static void *driver;
static CUcontext contexts[2];
static _Atomic(int) wrong;

/* The result is one of those that may be. */
static int fine(CUresult result)
{
	if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY)
		atomic_store(&wrong, 1);
	return result == CUDA_SUCCESS;
}

static void by_all_ways(size_t bytes, CUdevice device, CUdeviceptr address, CUmemoryPool pool)
{
	CUdeviceptr pointers[4];
	CUmemGenericAllocationHandle handle;
	CUarray array;
	CUipcMemHandle exported;
	size_t free;
	size_t total;
	CUmemAllocationProp properties = { .type = 1,
		                           .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } };
	CUDA_ARRAY_DESCRIPTOR shape = { 1024, bytes / 4096, 0x20, 1 };
	int plain = fine(cuMemAlloc_v2(&pointers[0], bytes));
	int managed = fine(cuMemAllocManaged(&pointers[1], bytes, 1));
	int async = fine(cuMemAllocAsync(&pointers[2], bytes, NULL));
	int pooled = fine(cuMemAllocFromPoolAsync(&pointers[3], bytes, pool, NULL));
	int arrays = fine(cuArrayCreate_v2(&array, &shape));
	if (plain)
		fine(cuIpcGetMemHandle(&exported, pointers[0]));
	if (fine(cuMemCreate(&handle, 2 * MIB, &properties, 0))) {
		int mapped = fine(cuMemMap(address, 2 * MIB, 0, handle, 0));
		fine(cuMemRelease(handle));
		if (mapped)
			fine(cuMemUnmap(address, 2 * MIB));
	}
	fine(cuMemGetInfo_v2(&free, &total));
	if (arrays)
		fine(cuArrayDestroy(array));
	if (pooled)
		fine(cuMemFreeAsync(pointers[3], NULL));
	if (async)
		fine(cuMemFreeAsync(pointers[2], NULL));
	if (managed)
		fine(cuMemFree_v2(pointers[1]));
	if (plain)
		fine(cuMemFree_v2(pointers[0]));
	fine(cuStreamSynchronize(NULL));
}

static void *threads_work(void *data)
{
	size_t number = (size_t)(uintptr_t)data;
	__typeof__(&cuCtxSetCurrent) set_current;
	*(void **)&set_current = dlsym(driver, "cuCtxSetCurrent");
	CUmemPoolProps properties = { .allocType = 1,
		                      .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	CUmemoryPool pool;
	fine(cuMemPoolCreate(&pool, &properties));
	for (size_t round = 0; round < ROUNDS; round++) {
		CUdevice device = (CUdevice)((round + number) % 2);
		set_current(contexts[device]);
		by_all_ways((1 + (round * 7 + number) % 5) * MIB, device,
		            (CUdeviceptr)(number + 1) << 40, pool);
	}
	fine(cuMemPoolDestroy(pool));
	return NULL;
}

int main(int argc, char **argv)
{
	(void)argc;
	char path[4096];
	ssize_t size = readlink("/proc/self/exe", path, sizeof path - 64);
	char *slash = size > 0 ? memrchr(path, '/', (size_t)size) : NULL;
	if (slash == NULL)
		return 90;
	strcpy(slash, "/libcuda.so.1");
	driver = dlopen(path, RTLD_NOW);
	snprintf(path, sizeof path, "/dev/shm/gpu-guard-threads-%ld", (long)getpid());
	FILE *file = fopen(path, "w+");
	if (driver == NULL || file == NULL || ftruncate(fileno(file), sizeof(struct segment)) != 0)
		return 91;
	struct segment *segment =
	    mmap(NULL, sizeof *segment, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
	segment_init(segment);
	segment_set(&segment->others_limit_bytes, (int64_t)(48 * MIB));
	state_attach(path, NULL);
	unlink(path);
	for (int device = 0; device < 2; device++)
		fine(cuDevicePrimaryCtxRetain(&contexts[device], device));
	pthread_t threads[THREADS];
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, threads_work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	fine(cuStreamSynchronize(NULL));
	for (uint32_t gpu = 0; gpu < 2; gpu++) {
		if (segment_get(&segment->gpus[gpu].used_bytes) != 0 ||
		    segment_get(&segment->gpus[gpu].refusals) == 0)
			fprintf(stderr, "%s: GPU %u: %ld bytes used in the end, %ld refusals\n",
			        argv[0], gpu, (long)segment_get(&segment->gpus[gpu].used_bytes),
			        (long)segment_get(&segment->gpus[gpu].refusals)),
			    atomic_store(&wrong, 2);
	}
	return atomic_load(&wrong) != 0 || track_count() != 0;
}
