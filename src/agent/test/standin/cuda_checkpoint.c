/* cuda_checkpoint.c - a stand-in for the CUDA driver's calls that checkpoint processes. The
 * environment variable CUDA_STANDIN names a call that fails: lock, checkpoint, restore. Process 1
 * does not use CUDA. What state a process is in is forgotten when the program ends, unless
 * CUDA_STANDIN_STATE names a directory: there is a file for each process that uses CUDA. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROCESSES 100

enum { RUNNING, LOCKED, CHECKPOINTED, FAILED };

static int states[PROCESSES];

static int fails(const char *call)
{
	const char *failing = getenv("CUDA_STANDIN");

	return failing && strcmp(failing, call) == 0;
}

static FILE *state_file(int pid, const char *mode)
{
	const char *directory = getenv("CUDA_STANDIN_STATE");
	char path[4200];

	if (!directory)
		return NULL;
	snprintf(path, sizeof(path), "%s/%d", directory, pid);
	return fopen(path, mode);
}

/* -1: it does not use CUDA. */
static int process_state(int pid)
{
	int state = -1;

	if (!getenv("CUDA_STANDIN_STATE"))
		return pid <= 1 || pid >= PROCESSES ? -1 : states[pid];
	FILE *file = state_file(pid, "r");
	if (file && fscanf(file, "%d", &state) != 1)
		state = -1;
	if (file)
		fclose(file);
	return state;
}

static int change(int pid, int from, int to)
{
	if (process_state(pid) != from)
		return 1;
	if (!getenv("CUDA_STANDIN_STATE")) {
		states[pid] = to;
		return 0;
	}
	FILE *file = state_file(pid, "r+");
	if (!file)
		return 1;
	fprintf(file, "%d", to);
	return fclose(file) == 0 ? 0 : 1;
}

int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
	return (int)flags;
}

int cuCheckpointProcessGetState(int pid, int *state);
int cuCheckpointProcessGetState(int pid, int *state)
{
	int now = process_state(pid);

	if (now < 0)
		return 1;
	*state = now;
	return 0;
}

int cuCheckpointProcessLock(int pid, void *arguments);
int cuCheckpointProcessLock(int pid, void *arguments)
{
	(void)arguments;
	return fails("lock") ? 801 : change(pid, RUNNING, LOCKED);
}

int cuCheckpointProcessCheckpoint(int pid, void *arguments);
int cuCheckpointProcessCheckpoint(int pid, void *arguments)
{
	(void)arguments;
	return fails("checkpoint") ? 304 : change(pid, LOCKED, CHECKPOINTED);
}

/* One that is not restored is of no use any more. */
int cuCheckpointProcessRestore(int pid, void *arguments);
int cuCheckpointProcessRestore(int pid, void *arguments)
{
	(void)arguments;
	if (!fails("restore"))
		return change(pid, CHECKPOINTED, LOCKED);
	return change(pid, CHECKPOINTED, FAILED) ? 1 : 2;
}

int cuCheckpointProcessUnlock(int pid, void *arguments);
int cuCheckpointProcessUnlock(int pid, void *arguments)
{
	(void)arguments;
	return change(pid, LOCKED, RUNNING);
}
