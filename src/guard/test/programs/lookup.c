/* lookup.c - a program that finds the driver by the route it is told, as strangers do
 *
 *	guard_lookup ROUTE MIB
 * allocates MIB MiB on the first device and exits with the driver's answer; with 100 and
 * more if a step before that fails. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../standin/standin.h"

enum { NO_DRIVER = 100, NO_SYMBOL, NO_CONTEXT, WRONG };

static void *driver;
static const char *route;

static int is(const char *name)
{
	return strcmp(route, name) == 0;
}

/* By a name and a version of CUDA. */
static void *by_version(const char *name, int version, uint64_t flags)
{
	void *address = NULL;
	int status = -1;
	if (is("proc_address")) {
		CUresult (*find)(const char *, void **, int, uint64_t);
		*(void **)&find = dlsym(driver, "cuGetProcAddress");
		return find(name, &address, version, flags) == CUDA_SUCCESS ? address : NULL;
	}
	CUresult (*find)(const char *, void **, int, uint64_t, int *);
	*(void **)&find = dlsym(driver, "cuGetProcAddress_v2");
	if (is("proc_address_of_itself")) {
		void *again = NULL;
		find("cuGetProcAddress", &again, 12000, 0, &status);
		if (again != *(void **)&find)
			exit(WRONG);
	}
	return find(name, &address, version, flags, &status) == CUDA_SUCCESS && status == 0
	           ? address
	           : NULL;
}

static void *lookup_look_up(const char *symbol)
{
	if (is("dlvsym"))
		return dlvsym(driver, symbol, "LIBCUDA_1");
	if (is("default"))
		return dlsym(RTLD_DEFAULT, symbol);
	return dlsym(driver, symbol);
}

static void *find_allocate(void)
{
	if (is("proc_address") || is("proc_address_v2") || is("proc_address_of_itself") ||
	    is("private"))
		return by_version("cuMemAlloc", 13000, 0);
	return lookup_look_up("cuMemAlloc_v2");
}

/* The routes to functions whose arguments are others. */
static int lookup_allocate(size_t bytes)
{
	CUdeviceptr pointer;
	if (is("first_version")) {
		CUdeviceptr_v1 small;
		CUresult (*take)(CUdeviceptr_v1 *, unsigned int);
		*(void **)&take = by_version("cuMemAlloc", 3000, 0);
		return take == NULL ? NO_SYMBOL : take(&small, (unsigned int)bytes);
	}
	if (is("stream_per_thread")) {
		CUresult (*take)(CUdeviceptr *, size_t, CUstream);
		*(void **)&take = by_version("cuMemAllocAsync", 12000,
		                             CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
		return take == NULL ? NO_SYMBOL : take(&pointer, bytes, NULL);
	}
	CUresult (*take)(CUdeviceptr *, size_t);
	*(void **)&take = find_allocate();
	return take == NULL ? NO_SYMBOL : take(&pointer, bytes);
}

/* What must be as without the guard. */
static int check_the_rest(void)
{
	void *unknown = dlsym(driver, "cuNoSuchFunction");
	if (unknown != NULL || dlerror() == NULL)
		return WRONG;
	/* Launching goes straight to the driver. */
	Dl_info info;
	if (dladdr(dlsym(driver, "cuLaunchKernel"), &info) == 0 ||
	    strstr(info.dli_fname, "libcuda") == NULL)
		return WRONG;
	/* Who asks for the next one of a name is seen as himself. */
	void *next = dlsym(RTLD_NEXT, "getenv");
	if (next == NULL || dladdr(next, &info) == 0 || strstr(info.dli_fname, "libc.so") == NULL)
		return WRONG;
	return dlvsym(driver, "cuMemAlloc_v2", "NO_SUCH_VERSION") == NULL ? 0 : WRONG;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return WRONG;
	route = argv[1];
	if (dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") != NULL)
		return WRONG; /* there is no driver yet */
	driver = dlopen("libcuda.so.1", RTLD_NOW | (is("default") ? RTLD_GLOBAL : RTLD_LOCAL));
	if (driver != NULL && is("opened_again")) {
		(void)lookup_look_up("cuMemAlloc_v2");
		dlclose(driver);
		driver = dlopen("libcuda.so.1", RTLD_NOW);
	}
	if (driver == NULL)
		return NO_DRIVER;
	CUcontext context;
	__typeof__(&cuDevicePrimaryCtxRetain) retain;
	__typeof__(&cuCtxSetCurrent) set_current;
	*(void **)&retain = lookup_look_up("cuDevicePrimaryCtxRetain");
	*(void **)&set_current = lookup_look_up("cuCtxSetCurrent");
	if (retain == NULL || set_current == NULL)
		return NO_SYMBOL;
	if (retain(&context, 0) != CUDA_SUCCESS || set_current(context) != CUDA_SUCCESS)
		return NO_CONTEXT;
	int status = lookup_allocate((size_t)strtol(argv[2], NULL, 10) << 20);
	int rest = check_the_rest();
	return rest != 0 ? rest : status;
}
