/* cuda_checkpoint.c - a stand-in for the CUDA driver's calls that checkpoint processes. The
 * environment variable CUDA_STANDIN names a call that fails: lock, checkpoint, restore. Process 1
 * does not use CUDA. */
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

static int change(int pid, int from, int to)
{
	if (pid < 0 || pid >= PROCESSES || states[pid] != from)
		return 1;
	states[pid] = to;
	return 0;
}

int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
	return (int)flags;
}

int cuCheckpointProcessGetState(int pid, int *state);
int cuCheckpointProcessGetState(int pid, int *state)
{
	if (pid <= 1 || pid >= PROCESSES)
		return 1;
	*state = states[pid];
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
