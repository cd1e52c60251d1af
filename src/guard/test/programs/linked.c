/* linked.c - a program that is linked to the driver
 *
 *	guard_linked MIB [MIB]
 * allocates MIB MiB and exits with the driver's answer. With a second number, if the
 * first succeeded, it then executes itself again with that. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../standin/standin.h"

/* Before main, as programs with initializers do. */
static CUcontext context;
__attribute__((constructor)) static void begin(void)
{
	if (cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS)
		cuCtxSetCurrent(context);
}

int main(int argc, char **argv)
{
	CUdeviceptr pointer;
	if (argc < 2 || context == NULL)
		return 100;
	CUresult result = cuMemAlloc_v2(&pointer, (size_t)strtol(argv[1], NULL, 10) << 20);
	if (result != CUDA_SUCCESS || argc < 3)
		return result;
	execl("/proc/self/exe", argv[0], argv[2], (char *)NULL);
	return 101;
}
