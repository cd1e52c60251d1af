/* mps.c - daemons of MPS, which divide a GPU's compute among the tasks that share it */
#include "agent/workload/mps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/host/file.h"
#include "agent/workload/folder.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/number.h"

#define IDLE_MS 5000
#define PATIENCE_MS INT64_C(5000) /* for a control program */
#define POLL_NS 2000000
#define LOG_TAIL ((size_t)1 << 20)

/* The directory of one daemon is BASE/GPU-SHARER-TOKEN, with `pipe` and `log` in it. */
struct daemon {
	uint32_t gpu;  /* hash of its UUID */
	char uuid[96]; /* "": started by an earlier agent, and not asked for yet */
	int64_t sharer;
	char *directory, *pipe;
	bool in_use;
	int64_t idle_since_ms; /* 0: it is in use */
	size_t log_size;       /* of its server's log, as of the last look */
};

struct mps {
	char *program, *base;
	int64_t memory_mib;
	struct daemon *daemons;
	size_t count, capacity;
};

static uint32_t hash_of(const char *text)
{
	return (uint32_t)(hash_bytes(text, strlen(text)) & UINT32_MAX);
}

static struct daemon *daemon_add(struct mps *mps, const char *name, int64_t sharer, uint32_t gpu)
{
	array_reserve(mps->daemons, mps->capacity, mps->count + 1);
	struct daemon *daemon = &mps->daemons[mps->count++];

	*daemon = (struct daemon){ .gpu = gpu, .sharer = sharer };
	daemon->directory = file_path("%s/%s", mps->base, name);
	daemon->pipe = file_path("%s/pipe", daemon->directory);
	return daemon;
}

static void daemon_free(struct daemon *daemon)
{
	free(daemon->directory);
	free(daemon->pipe);
	daemon->directory = daemon->pipe = NULL;
}

static void daemon_forget(struct mps *mps, struct daemon *daemon)
{
	daemon_free(daemon);
	*daemon = mps->daemons[--mps->count];
}

static void find_daemons(struct mps *mps)
{
	DIR *directory = opendir(mps->base);
	struct dirent *entry;
	int64_t sharer;
	uint32_t gpu;

	while (directory && (entry = readdir(directory)) != NULL)
		if (sscanf(entry->d_name, "%8" SCNx32 "-%" SCNd64 "-", &gpu, &sharer) == 2)
			daemon_add(mps, entry->d_name, sharer, gpu);
	if (directory)
		closedir(directory);
}

struct mps *mps_new(const struct mps_settings *settings)
{
	struct mps *mps = NEW(struct mps);

	mps->program = memory_text(settings->program);
	/* Short: names of sockets have a limit. */
	mps->base = file_path("/tmp/gpu-mps-%08" PRIx32, hash_of(settings->label));
	mps->memory_mib = settings->memory_mib;
	find_daemons(mps);
	return mps;
}

void mps_free(struct mps *mps)
{
	if (!mps)
		return;
	for (size_t i = 0; i < mps->count; i++)
		daemon_free(&mps->daemons[i]);
	free(mps->daemons);
	free(mps->program);
	free(mps->base);
	free(mps);
}

static pid_t control_pid(const char *pipe)
{
	char *path = file_path("%s/nvidia-cuda-mps-control.pid", pipe);
	int64_t pid = file_number(path, 0);

	free(path);
	return pid > 1 && pid < INT_MAX ? (pid_t)pid : 0;
}

static bool daemon_is_alive(const struct daemon *daemon)
{
	pid_t pid = control_pid(daemon->pipe);

	return pid > 0 && process_start(pid) > 0;
}

/* Waits for the child; its status as of waitpid(), or -1 where it had to be killed. */
static int wait_for(pid_t child)
{
	struct timespec pause = { .tv_nsec = POLL_NS };
	int status = 0;
	pid_t ended = 0;

	for (int64_t i = 0; i < PATIENCE_MS * 1000000 / POLL_NS && ended == 0; i++) {
		ended = waitpid(child, &status, WNOHANG);
		if (ended == 0)
			nanosleep(&pause, NULL);
	}
	if (ended > 0)
		return status;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return -1;
}

/* Runs the control program for this daemon, with a line of input. */
static bool control(const struct mps *mps, const struct daemon *daemon, char *const arguments[],
                    const char *input, struct error *error)
{
	char *variables[5] = { file_path("CUDA_MPS_PIPE_DIRECTORY=%s", daemon->pipe),
		               file_path("CUDA_MPS_LOG_DIRECTORY=%s/log", daemon->directory),
		               file_path("CUDA_VISIBLE_DEVICES=%s", daemon->uuid),
		               file_path("PATH=/usr/local/bin:/usr/bin:/bin"), NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int ends[2] = { -1, -1 }, failed = pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno, status = -1;
	pid_t child = 0;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_adddup2(&actions, ends[0], 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
	                                          POSIX_SPAWN_SETSID);
	if (!failed && write(ends[1], input, strlen(input)) != (ssize_t)strlen(input))
		failed = errno;
	if (!failed)
		failed =
		    posix_spawn(&child, mps->program, &actions, &attributes, arguments, variables);
	if (ends[0] >= 0)
		close(ends[0]);
	if (ends[1] >= 0)
		close(ends[1]);
	if (!failed)
		status = wait_for(child);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	for (int i = 0; variables[i]; i++)
		free(variables[i]);
	if (failed)
		return error_set(error, ERROR_UNAVAILABLE, "cannot run %s: %s", mps->program,
		                 strerror(failed));
	return status == 0 || error_set(error, ERROR_UNAVAILABLE, "%s did not succeed (status %d)",
	                                mps->program, status);
}

/* Tasks of one tenant may have several users, which only this option lets in at once. */
static bool daemon_start(const struct mps *mps, const struct daemon *daemon, struct error *error)
{
	char *several[] = { "nvidia-cuda-mps-control", "--multiuser-server", "-d", NULL };
	char *older[] = { "nvidia-cuda-mps-control", "-multiuser-server", "-d", NULL };
	char *own[] = { "nvidia-cuda-mps-control", "-d", NULL };
	bool is_root = geteuid() == 0;

	if (!control(mps, daemon, is_root ? several : own, "", error) &&
	    (!is_root || !control(mps, daemon, older, "", error)))
		return false;
	return daemon_is_alive(daemon) ||
	       error_set(error, ERROR_UNAVAILABLE, "the MPS daemon of GPU %s ended at once",
	                 daemon->uuid);
}

static void remove_files(const char *directory)
{
	DIR *opened = opendir(directory);
	struct dirent *entry;

	while (opened && (entry = readdir(opened)) != NULL)
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(opened), entry->d_name, 0);
	if (opened)
		closedir(opened);
	rmdir(directory);
}

/* Ends it, and removes its directory. */
static void daemon_end(struct mps *mps, struct daemon *daemon)
{
	char *arguments[] = { "nvidia-cuda-mps-control", NULL };
	char *log = file_path("%s/log", daemon->directory);
	pid_t pid = control_pid(daemon->pipe);
	struct error error;

	if (daemon_is_alive(daemon) && !control(mps, daemon, arguments, "quit -t 2\n", &error) &&
	    daemon_is_alive(daemon))
		kill(pid, SIGTERM);
	remove_files(daemon->pipe);
	remove_files(log);
	rmdir(daemon->directory);
	free(log);
	daemon_forget(mps, daemon);
}

static bool make_directories(const struct daemon *daemon, struct error *error)
{
	char *log = file_path("%s/log", daemon->directory);
	bool made = folder_make(daemon->directory, error) && mkdir(daemon->pipe, 0755) == 0 &&
	            chmod(daemon->pipe, 0755) == 0 && mkdir(log, 0700) == 0;

	if (!made && error->code == ERROR_NONE)
		error_set(error, ERROR_UNAVAILABLE, "cannot make directories in %s: %s",
		          daemon->directory, strerror(errno));
	free(log);
	return made;
}

static struct daemon *daemon_new(struct mps *mps, const char *uuid, int64_t sharer,
                                 struct error *error)
{
	uint64_t token = 0;
	char name[64];

	*error = (struct error){ 0 };
	if (getrandom(&token, sizeof(token), 0) != sizeof(token)) {
		error_set(error, ERROR_UNAVAILABLE, "no random numbers: %s", strerror(errno));
		return NULL;
	}
	snprintf(name, sizeof(name), "%08" PRIx32 "-%" PRId64 "-%016" PRIx64, hash_of(uuid), sharer,
	         token);
	if (!folder_make(mps->base, error))
		return NULL;
	struct daemon *daemon = daemon_add(mps, name, sharer, hash_of(uuid));
	snprintf(daemon->uuid, sizeof(daemon->uuid), "%s", uuid);
	if (make_directories(daemon, error) && daemon_start(mps, daemon, error))
		return daemon;
	daemon_end(mps, daemon);
	return NULL;
}

static struct daemon *daemon_of(const struct mps *mps, const char *uuid)
{
	for (size_t i = 0; i < mps->count; i++)
		if (mps->daemons[i].gpu == hash_of(uuid))
			return &mps->daemons[i];
	return NULL;
}

const char *mps_join(struct mps *mps, const char *uuid, int64_t sharer, struct error *error)
{
	struct daemon *daemon = daemon_of(mps, uuid);

	if (daemon)
		snprintf(daemon->uuid, sizeof(daemon->uuid), "%s", uuid);
	/* Nothing of another tenant is left in a new one, and no error of an earlier client. */
	if (daemon && !daemon->in_use && (daemon->sharer != sharer || !daemon_is_alive(daemon))) {
		daemon_end(mps, daemon);
		daemon = NULL;
	}
	if (!daemon)
		daemon = daemon_new(mps, uuid, sharer, error);
	else if (!daemon_is_alive(daemon) && !daemon_start(mps, daemon, error))
		daemon = NULL;
	if (!daemon)
		return NULL;
	daemon->in_use = true;
	daemon->idle_since_ms = 0;
	return daemon->pipe;
}

/* True if the log of its server tells of an error that ended all clients, since the last look. */
static bool log_tells_of_fault(struct daemon *daemon)
{
	char *path = file_path("%s/log/server.log", daemon->directory);
	struct buffer text = { 0 };
	bool fault = false;

	if (file_read(path, LOG_TAIL, &text)) {
		size_t from = daemon->log_size < text.size ? daemon->log_size : 0;
		bool grew = daemon->log_size != text.size;
		buffer_bytes(&text, "", 1);
		fault = grew && strcasestr(text.data + from, "fatal") != NULL;
		daemon->log_size = text.size - 1;
	}
	buffer_free(&text);
	free(path);
	return fault;
}

static void daemon_revive(struct mps *mps, struct daemon *daemon,
                          void (*event)(void *, const char *, enum mps_event), void *context)
{
	struct error error = { 0 };

	if (daemon_is_alive(daemon))
		return;
	if (!daemon_start(mps, daemon, &error)) {
		log_at(LOG_ERROR, "an MPS daemon ended, and cannot be started again",
		       LOG_TEXT("gpu", daemon->uuid), LOG_TEXT("reason", error.text));
		return;
	}
	log_at(LOG_WARNING, "an MPS daemon had ended, and was started again",
	       LOG_TEXT("gpu", daemon->uuid));
	event(context, daemon->uuid, MPS_RESTARTED);
}

void mps_look(struct mps *mps, int64_t now_ms, bool (*in_use)(void *context, const char *uuid),
              void (*event)(void *context, const char *uuid, enum mps_event event), void *context)
{
	for (size_t i = mps->count; i-- > 0;) {
		struct daemon *daemon = &mps->daemons[i];
		daemon->in_use = *daemon->uuid && in_use(context, daemon->uuid);
		if (daemon->in_use) {
			daemon->idle_since_ms = 0;
			if (log_tells_of_fault(daemon))
				event(context, daemon->uuid, MPS_FAULT);
			daemon_revive(mps, daemon, event, context);
		} else if (daemon->idle_since_ms == 0) {
			daemon->idle_since_ms = now_ms;
		} else if (now_ms - daemon->idle_since_ms >= IDLE_MS) {
			daemon_end(mps, daemon);
		}
	}
}

static bool is_server(const struct mps *mps, pid_t parent)
{
	DIR *directory = opendir(mps->base);
	struct dirent *entry;
	bool found = false;

	while (directory && !found && (entry = readdir(directory)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		char *pipe = file_path("%s/%s/pipe", mps->base, entry->d_name);
		found = control_pid(pipe) == parent;
		free(pipe);
	}
	if (directory)
		closedir(directory);
	return found;
}

/* Memory of a server beyond what is kept for it stays foreign. */
static void take_off(struct gpu_readings *readings, struct process_reading *process,
                     int64_t most_mib)
{
	int64_t mib = min64(process->memory_mib, most_mib);

	process->memory_mib -= mib;
	for (size_t i = 0; i < readings->gpu_count; i++)
		if (strcmp(readings->gpus[i].uuid, process->uuid) == 0)
			readings->gpus[i].used_mib = max64(readings->gpus[i].used_mib - mib, 0);
}

void mps_account(const struct mps *mps, struct gpu_readings *readings)
{
	for (size_t i = 0; i < readings->gpu_count; i++) {
		struct gpu_reading *gpu = &readings->gpus[i];
		if (!gpu->mig_mode && !*gpu->mig_parent)
			gpu->overhead_mib =
			    min64(gpu->overhead_mib + mps->memory_mib, gpu->capacity_mib);
	}
	for (size_t i = 0; i < readings->process_count; i++) {
		struct process_reading *process = &readings->processes[i];
		pid_t parent = process_parent((pid_t)process->pid);
		if (parent > 1 && is_server(mps, parent))
			take_off(readings, process, mps->memory_mib);
	}
}
