/* checkpoint_program.c - gpu-checkpoint: suspends or resumes processes, apart from the agent, which
 * must not wait for the driver */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/gpu/checkpoint.h"
#include "base/memory.h"

#define EXIT_USAGE 2

static void print_usage(FILE *file)
{
	fputs("usage: gpu-checkpoint suspend|resume PID...\n"
	      "Moves the GPU memory of processes to host memory, or back.\n"
	      "CUDA_DRIVER_LIBRARY: the driver, where it is not libcuda.so.1\n"
	      "Exit status: 0 done, 3 refused and nothing changed, 4 a process was lost\n",
	      file);
}

static int checkpoint_usage(void)
{
	print_usage(stderr);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	bool back = argc > 1 && strcmp(argv[1], "resume") == 0;
	struct error reason = { 0 };

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		print_usage(stdout);
		return 0;
	}
	if (argc < 3 || (!back && strcmp(argv[1], "suspend") != 0))
		return checkpoint_usage();
	size_t count = (size_t)argc - 2;
	pid_t *pids = memory_alloc(count * sizeof(*pids));
	for (size_t i = 0; i < count; i++) {
		pids[i] = (pid_t)atol(argv[i + 2]);
		if (pids[i] <= 0) {
			free(pids);
			return checkpoint_usage();
		}
	}
	const char *library = getenv("CUDA_DRIVER_LIBRARY");
	enum checkpoint_result result =
	    (back ? checkpoint_resume : checkpoint_suspend)(library, pids, count, &reason);
	if (result != CHECKPOINT_DONE)
		fprintf(stderr, "%s\n", reason.text);
	free(pids);
	return (int)result;
}
