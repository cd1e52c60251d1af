/* guard_driver.c - a program that finds the CUDA driver by dlopen, to try the guard on
 *
 *	guard_driver fill SECONDS    takes memory to the last page, holds it for so long, and
 *	                             goes on with half of it
 *	guard_driver times COUNT     the time of so many allocations and frees
 *	guard_driver start           makes a context, allocates 1 MiB, and ends
 *	guard_driver work SECONDS    computes, and says how fast
 *	guard_driver greedy SECONDS  the same, while another thread asks for everything
 *
 * What it finds is one JSON object on standard output. Needs nothing of CUDA to build. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

/* The driver's functions, by their names there. */
#define FUNCTIONS(X)                                                                               \
	X(cuInit, (unsigned int))                                                                  \
	X(cuDeviceTotalMem_v2, (size_t *, int))                                                    \
	X(cuDevicePrimaryCtxRetain, (void **, int))                                                \
	X(cuCtxSetCurrent, (void *))                                                               \
	X(cuCtxSynchronize, (void))                                                                \
	X(cuMemGetInfo_v2, (size_t *, size_t *))                                                   \
	X(cuMemAlloc_v2, (unsigned long long *, size_t))                                           \
	X(cuMemFree_v2, (unsigned long long))                                                      \
	X(cuMemAllocAsync, (unsigned long long *, size_t, void *))                                 \
	X(cuMemFreeAsync, (unsigned long long, void *))                                            \
	X(cuModuleLoadData, (void **, const void *))                                               \
	X(cuModuleGetFunction, (void **, void *, const char *))                                    \
	X(cuLaunchKernel, (void *, unsigned int, unsigned int, unsigned int, unsigned int,         \
	                   unsigned int, unsigned int, unsigned int, void *, void **, void **))    \
	X(cuGetErrorName, (int, const char **))
#define DECLARE(name, arguments) int(*name) arguments;
static struct {
	FUNCTIONS(DECLARE)
} driver;

static void *context;
static void *kernel;
static unsigned long long out;
enum { BLOCKS = 1024, THREADS = 256 };

/* Multiplies and adds so many times, in each of its threads. */
static const char spin_ptx[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
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

static void must(int result, const char *what)
{
	const char *name = NULL;
	if (result == 0)
		return;
	if (driver.cuGetErrorName != NULL)
		driver.cuGetErrorName(result, &name);
	fprintf(stderr, "guard_driver: %s: %d %s\n", what, result, name != NULL ? name : "");
	exit(1);
}

static void find_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) {
		fprintf(stderr, "guard_driver: %s\n", dlerror());
		exit(1);
	}
#define FIND(name, arguments)                                                                      \
	*(void **)&driver.name = dlsym(library, #name);                                            \
	must(driver.name == NULL, #name " is missing");
	FUNCTIONS(FIND)
}

static void begin(void)
{
	find_driver();
	must(driver.cuInit(0), "cuInit");
	must(driver.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	must(driver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

static int launch(unsigned int rounds)
{
	void *arguments[] = { &out, &rounds };
	return driver.cuLaunchKernel(kernel, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL);
}

static void load_kernel(void)
{
	void *module;
	must(driver.cuModuleLoadData(&module, spin_ptx), "cuModuleLoadData");
	must(driver.cuModuleGetFunction(&kernel, module, "spin"), "cuModuleGetFunction");
	must(driver.cuMemAlloc_v2(&out, BLOCKS * THREADS * sizeof(float)), "cuMemAlloc");
	must(launch(1), "cuLaunchKernel");
	must(driver.cuCtxSynchronize(), "cuCtxSynchronize");
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int fill(unsigned int seconds)
{
	enum { MOST = 4096 };
	static unsigned long long held[MOST];
	size_t free_before = 0;
	size_t total = 0;
	size_t device_total = 0;
	begin();
	load_kernel();
	/* Long enough for the guard to measure what the kernel takes. */
	sleep(3);
	must(driver.cuDeviceTotalMem_v2(&device_total, 0), "cuDeviceTotalMem");
	must(driver.cuMemGetInfo_v2(&free_before, &total), "cuMemGetInfo");
	size_t count = 0;
	size_t taken_mib = 0;
	int result = 0;
	for (size_t piece_mib = 256; piece_mib >= 2; piece_mib /= 2) {
		while (count < MOST &&
		       (result = driver.cuMemAlloc_v2(&held[count], piece_mib * MIB)) == 0) {
			count++;
			taken_mib += piece_mib;
		}
	}
	const char *name = "";
	driver.cuGetErrorName(result, &name);
	sleep(seconds);
	for (size_t i = 0; i < count / 2; i++)
		must(driver.cuMemFree_v2(held[i]), "cuMemFree");
	bool goes_on = driver.cuMemAlloc_v2(&held[0], 256 * MIB) == 0 && launch(100) == 0 &&
	               driver.cuCtxSynchronize() == 0;
	printf("{\"shown_mib\": %zu, \"total_mib\": %zu, \"free_mib\": %zu, \"taken_mib\": %zu, "
	       "\"said\": \"%s\", \"goes_on\": %s}\n",
	       device_total / MIB, total / MIB, free_before / MIB, taken_mib, name,
	       goes_on ? "true" : "false");
	return 0;
}

/* Allocations of 4 KiB with a thousand of them held, of 4 MiB with one, and of 4 KiB
 * from a pool; each with its free. */
static int times(int count)
{
	static unsigned long long held[1000];
	unsigned long long pointer;
	begin();
	double began = now();
	for (int i = 0; i < count; i++) {
		if (held[i % 1000] != 0)
			must(driver.cuMemFree_v2(held[i % 1000]), "cuMemFree");
		must(driver.cuMemAlloc_v2(&held[i % 1000], 4096), "cuMemAlloc");
	}
	double small_s = now() - began;
	int large = count / 50;
	began = now();
	for (int i = 0; i < large; i++) {
		must(driver.cuMemAlloc_v2(&pointer, 4 * MIB), "cuMemAlloc");
		must(driver.cuMemFree_v2(pointer), "cuMemFree");
	}
	double large_s = now() - began;
	must(driver.cuMemAllocAsync(&pointer, 4096, NULL), "cuMemAllocAsync");
	began = now();
	for (int i = 0; i < count; i++) {
		unsigned long long other;
		must(driver.cuMemAllocAsync(&other, 4096, NULL), "cuMemAllocAsync");
		must(driver.cuMemFreeAsync(other, NULL), "cuMemFreeAsync");
	}
	double pool_s = now() - began;
	must(driver.cuCtxSynchronize(), "cuCtxSynchronize");
	printf("{\"small_ns\": %.0f, \"large_ns\": %.0f, \"pool_ns\": %.0f}\n",
	       small_s / count * 1e9, large_s / large * 1e9, pool_s / count * 1e9);
	return 0;
}

static int start(void)
{
	unsigned long long pointer;
	begin();
	must(driver.cuMemAlloc_v2(&pointer, MIB), "cuMemAlloc");
	printf("{}\n");
	return 0;
}

/* Asks for everything, again and again, from the beginning to the end. */
static _Atomic(bool) stop;
static _Atomic(long) refused;
static _Atomic(long) granted_mib;

static void *ask(void *nothing)
{
	unsigned long long pointer;
	must(driver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
	while (!atomic_load(&stop)) {
		if (driver.cuMemAlloc_v2(&pointer, 1024 * MIB) == 0)
			atomic_fetch_add(&granted_mib, 1024);
		else
			atomic_fetch_add(&refused, 1);
	}
	return nothing;
}

/* Launches kernels of a fraction of a millisecond, one after the other. The first two
 * seconds do not count. */
static int work(int seconds, bool greedy)
{
	pthread_t greed;
	begin();
	load_kernel();
	if (greedy)
		must(pthread_create(&greed, NULL, ask, NULL), "pthread_create");
	long launches = 0;
	double from = now() + 2;
	double end = from + seconds;
	for (double at = now(); at < end; at = now()) {
		must(launch(20000), "cuLaunchKernel");
		must(driver.cuCtxSynchronize(), "cuCtxSynchronize");
		launches += at >= from;
	}
	atomic_store(&stop, true);
	if (greedy)
		pthread_join(greed, NULL);
	printf("{\"launches_per_s\": %.1f, \"granted_mib\": %ld, \"refused\": %ld}\n",
	       (double)launches / seconds, atomic_load(&granted_mib), atomic_load(&refused));
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int number = argc > 2 ? atoi(argv[2]) : 0;
	if (strcmp(mode, "fill") == 0 && number >= 0)
		return fill((unsigned int)number);
	if (strcmp(mode, "times") == 0 && number > 0)
		return times(number);
	if (strcmp(mode, "start") == 0)
		return start();
	if (strcmp(mode, "work") == 0 || strcmp(mode, "greedy") == 0)
		return work(number, mode[0] == 'g');
	fprintf(stderr, "guard_driver: see the top of its source\n");
	return 2;
}
