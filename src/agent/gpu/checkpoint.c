/* checkpoint.c - moves the GPU memory of processes to host memory and back, by the driver */
#include "agent/gpu/checkpoint.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"

#define LOCK_TIMEOUT_MS 10000

/* As in cuda.h: a process runs, is kept from using CUDA, has its memory on the host, or is lost. */
enum { STATE_RUNNING, STATE_LOCKED, STATE_CHECKPOINTED, STATE_FAILED };
struct lock_arguments {
	unsigned timeout_ms, reserved;
	uint64_t reserved_too[7];
};

struct checkpoint_driver {
	void *library;
	int (*init)(unsigned flags);
	int (*get_state)(int pid, int *state);
	int (*lock)(int pid, struct lock_arguments *arguments);
	int (*checkpoint)(int pid, void *arguments);
	int (*restore)(int pid, void *arguments);
	int (*unlock)(int pid, void *arguments);
};

/* A process that uses CUDA. */
struct checkpoint_process {
	const struct checkpoint_driver *driver;
	int pid, state;
	bool back;
	int error; /* of the last call that failed, or 0 */
	pthread_t thread;
};

static bool checkpoint_symbol(const struct checkpoint_driver *driver, const char *name, void *to)
{
	void *found = dlsym(driver->library, name);

	*(void **)to = found;
	return found != NULL;
}

static bool checkpoint_open(struct checkpoint_driver *driver, const char *library,
                            struct error *reason)
{
	const char *name = library ? library : "libcuda.so.1";

	driver->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!driver->library)
		return error_set(reason, ERROR_UNAVAILABLE, "there is no CUDA driver: %s",
		                 dlerror());
	bool found =
	    checkpoint_symbol(driver, "cuInit", (void *)&driver->init) &&
	    checkpoint_symbol(driver, "cuCheckpointProcessGetState", (void *)&driver->get_state) &&
	    checkpoint_symbol(driver, "cuCheckpointProcessLock", (void *)&driver->lock) &&
	    checkpoint_symbol(driver, "cuCheckpointProcessCheckpoint",
	                      (void *)&driver->checkpoint) &&
	    checkpoint_symbol(driver, "cuCheckpointProcessRestore", (void *)&driver->restore) &&
	    checkpoint_symbol(driver, "cuCheckpointProcessUnlock", (void *)&driver->unlock);
	if (!found || !driver->init)
		return error_set(reason, ERROR_UNAVAILABLE,
		                 "the CUDA driver cannot suspend processes: it is older than "
		                 "version 570");
	int result = driver->init(0);
	return result == 0 || error_set(reason, ERROR_UNAVAILABLE,
	                                "the CUDA driver does not start: error %d", result);
}

/* Those of the processes that use CUDA. */
static size_t list_processes(const struct checkpoint_driver *driver, const pid_t *pids,
                             size_t count, struct checkpoint_process *processes)
{
	size_t found = 0;

	INVARIANT(driver->get_state != NULL);
	for (size_t i = 0; i < count; i++) {
		struct checkpoint_process *process = &processes[found];
		*process = (struct checkpoint_process){ .driver = driver, .pid = (int)pids[i] };
		found += driver->get_state((int)pids[i], &process->state) == 0;
	}
	return found;
}

static bool any_in(const struct checkpoint_process *processes, size_t count, int state)
{
	for (size_t i = 0; i < count; i++)
		if (processes[i].state == state)
			return true;
	return false;
}

static void look_again(struct checkpoint_process *process)
{
	int state = STATE_FAILED;

	process->state =
	    process->driver->get_state(process->pid, &state) == 0 ? state : STATE_FAILED;
}

static void *move_one(void *context)
{
	struct checkpoint_process *process = context;
	const struct checkpoint_driver *driver = process->driver;

	if (!process->back && process->state == STATE_LOCKED)
		process->error = driver->checkpoint(process->pid, NULL);
	else if (process->back && process->state == STATE_CHECKPOINTED)
		process->error = driver->restore(process->pid, NULL);
	look_again(process);
	return NULL;
}

/* The copies overlap. The first error, or 0. */
static int move_all(struct checkpoint_process *processes, size_t count, bool back)
{
	int error = 0;

	for (size_t i = 0; i < count; i++) {
		processes[i].back = back;
		processes[i].error = 0;
		if (pthread_create(&processes[i].thread, NULL, move_one, &processes[i]) != 0)
			panic("no thread can be started");
	}
	for (size_t i = 0; i < count; i++) {
		pthread_join(processes[i].thread, NULL);
		error = error ? error : processes[i].error;
	}
	return error;
}

static int unlock_all(struct checkpoint_process *processes, size_t count)
{
	int error = 0;

	for (size_t i = 0; i < count; i++) {
		if (processes[i].state == STATE_LOCKED) {
			int result = processes[i].driver->unlock(processes[i].pid, NULL);
			error = error ? error : result;
		}
		look_again(&processes[i]);
	}
	return error;
}

static int lock_all(struct checkpoint_process *processes, size_t count)
{
	struct lock_arguments arguments = { .timeout_ms = LOCK_TIMEOUT_MS };
	int error = 0;

	for (size_t i = 0; i < count && error == 0; i++) {
		if (processes[i].state == STATE_RUNNING)
			error = processes[i].driver->lock(processes[i].pid, &arguments);
		look_again(&processes[i]);
	}
	return error;
}

/* Undoes what was done; those that do not run again are lost. */
static enum checkpoint_result go_back(struct checkpoint_process *processes, size_t count)
{
	if (any_in(processes, count, STATE_CHECKPOINTED))
		move_all(processes, count, true);
	unlock_all(processes, count);
	for (size_t i = 0; i < count; i++)
		if (processes[i].state != STATE_RUNNING)
			return CHECKPOINT_LOST;
	return CHECKPOINT_REFUSED;
}

static enum checkpoint_result suspend_all(struct checkpoint_process *processes, size_t count,
                                          struct error *reason)
{
	int error = lock_all(processes, count);

	if (error != 0) {
		error_set(reason, ERROR_CONFLICT,
		          "the CUDA driver does not lock its processes: error %d%s", error,
		          error == 801 ? " (clients of MPS cannot be suspended)" : "");
		return go_back(processes, count);
	}
	error = move_all(processes, count, false);
	if (error == 0 && !any_in(processes, count, STATE_FAILED))
		return CHECKPOINT_DONE;
	error_set(reason, ERROR_CONFLICT,
	          "the CUDA driver does not move its memory to the host: error %d%s", error,
	          error == 304 ? " (too little host memory)" : "");
	return go_back(processes, count);
}

static enum checkpoint_result resume_all(struct checkpoint_process *processes, size_t count,
                                         struct error *reason)
{
	int error = move_all(processes, count, true);
	int unlocked = error == 0 ? unlock_all(processes, count) : 0;

	if (error == 0 && unlocked == 0 && !any_in(processes, count, STATE_FAILED))
		return CHECKPOINT_DONE;
	error_set(reason, ERROR_CONFLICT,
	          "the CUDA driver does not move its memory back to the GPU: error %d",
	          error ? error : unlocked);
	return CHECKPOINT_LOST; /* a restore that fails keeps memory, and its process is of no use
	                         */
}

static enum checkpoint_result checkpoint_move(const char *library, const pid_t *pids, size_t count,
                                              bool back, struct error *reason)
{
	struct checkpoint_driver driver = { 0 };
	enum checkpoint_result result = CHECKPOINT_REFUSED;

	if (!checkpoint_open(&driver, library, reason))
		return CHECKPOINT_REFUSED;
	struct checkpoint_process *processes = memory_alloc((count + 1) * sizeof(*processes));
	size_t found = list_processes(&driver, pids, count, processes);
	if (found == 0) {
		error_set(reason, ERROR_CONFLICT, "none of its processes uses CUDA");
	} else if (any_in(processes, found, STATE_FAILED)) {
		error_set(reason, ERROR_CONFLICT,
		          "the CUDA driver has destroyed one of its processes");
		result = CHECKPOINT_LOST;
	} else {
		result = (back ? resume_all : suspend_all)(processes, found, reason);
	}
	free(processes);
	return result;
}

enum checkpoint_result checkpoint_suspend(const char *library, const pid_t *pids, size_t count,
                                          struct error *reason)
{
	return checkpoint_move(library, pids, count, false, reason);
}

enum checkpoint_result checkpoint_resume(const char *library, const pid_t *pids, size_t count,
                                         struct error *reason)
{
	return checkpoint_move(library, pids, count, true, reason);
}
