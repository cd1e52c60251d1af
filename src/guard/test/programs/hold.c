/* hold.c - a task that shares a GPU
 *
 *	guard_hold [bare] [MIB...] [wait]
 * allocates each of these, says what the driver answered, and lives on until its input ends,
 * or for good. A bare one first gets rid of what is preloaded, by a system call
 * of its own: programs that are started in another way keep it. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../standin/standin.h"

int main(int argc, char **argv)
{
	CUcontext context = NULL;
	CUdeviceptr pointer;
	size_t free_bytes = 0;
	size_t total_bytes = 0;
	char byte;
	if (argc > 1 && strcmp(argv[1], "bare") == 0 && unsetenv("LD_PRELOAD") == 0)
		syscall(SYS_execve, "/proc/self/exe", argv + 1, environ);
	CUresult result = cuInit(0);
	if (result == CUDA_SUCCESS)
		result = cuDevicePrimaryCtxRetain(&context, 0);
	if (result == CUDA_SUCCESS)
		result = cuCtxSetCurrent(context);
	printf("context %d\n", (int)result);
	cuMemGetInfo_v2(&free_bytes, &total_bytes);
	printf("total %zu\n", total_bytes >> 20);
	for (int i = 0; i < argc; i++)
		if (strtol(argv[i], NULL, 10) > 0)
			printf(
			    "%s %d\n", argv[i],
			    (int)cuMemAlloc_v2(&pointer, (size_t)strtol(argv[i], NULL, 10) << 20));
	fflush(stdout);
	if (strcmp(argv[argc - 1], "wait") == 0)
		pause();
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
