/* guarding.c - a hard limit of GPU memory for works: libgpuguard.so and its segment */
#include "agent/workload/guarding.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/file.h"
#include "base/clock.h"
#include "base/number.h"
#include "guard/budget/process.h"
#include "guard/budget/uuid.h"
#include "guard/budget/watch.h"

#define BOOKS_DIRECTORY "/dev/shm" /* in memory: every allocation is written there */
#define MIB_SHIFT 20
#define CONTEXT_MIB 512

/* Simulated GPUs have no memory to guard. */
static bool is_possible(const struct run_settings *settings)
{
	return settings->guard && !settings->simulated;
}

bool guarding_is_due(const struct run_settings *settings, const struct node_order *order,
                     bool wanted)
{
	bool shared = false;

	if (!is_possible(settings) || settings->guarding == GUARDING_NEVER ||
	    order->part_count == 0)
		return false;
	for (int64_t i = 0; i < order->part_count; i++)
		shared = shared || !order->parts[i].whole;
	return shared || wanted || settings->guarding == GUARDING_ALWAYS;
}

/* The segment of a container may have to be written by any user that the image has. So it is
 * writable for everyone, in a directory that only we can enter: only the file is mounted
 * into the container. */
static char *closed_directory(const struct run_settings *settings)
{
	return file_path(BOOKS_DIRECTORY "/gpu-guard-%s.containers", settings->label);
}

static char *books_path(const struct run_settings *settings, int64_t reservation_id, bool closed)
{
	if (!closed)
		return file_path(BOOKS_DIRECTORY "/gpu-guard-%s-%lld", settings->label,
		                 (long long)reservation_id);
	char *directory = closed_directory(settings);
	char *path = file_path("%s/%lld", directory, (long long)reservation_id);
	free(directory);
	return path;
}

/* A runtime that is run by a user of its own must reach the file as that user. */
static bool is_closed(const struct run_plan *plan)
{
	return plan->container && geteuid() == 0 && plan->spec.uid <= 0;
}

char *guarding_books(const struct run_settings *settings, int64_t reservation_id,
                     const struct run_plan *plan)
{
	return books_path(settings, reservation_id, is_closed(plan));
}

static void set_preload(const char *library, struct environment *environment)
{
	const char *before = environment_get(environment, "LD_PRELOAD");
	char *list = file_path("%s%s%s", library, before ? ":" : "", before ? before : "");

	environment_set(environment, "LD_PRELOAD", list);
	free(list);
}

void guarding_prepare(const struct run_settings *settings, const struct node_order *order,
                      const struct run_plan *plan, struct environment *environment)
{
	struct buffer limits = { 0 };

	if (!plan->guarded)
		return;
	char *path = plan->container ? NULL : guarding_books(settings, order->reservation_id, plan);
	for (int64_t i = 0; i < order->part_count; i++)
		buffer_print(&limits, "%s%s=%lldM", i > 0 ? "," : "", order->parts[i].uuid,
		             (long long)order->parts[i].memory_mib);
	set_preload(plan->container ? GUARDING_CONTAINER_LIBRARY : settings->guard, environment);
	environment_set(environment, "GPU_GUARD_SEGMENT", path ? path : GUARDING_CONTAINER_BOOKS);
	environment_set(environment, "GPU_GUARD_LIMITS", limits.data);
	buffer_free(&limits);
	free(path);
}

/* In a container nothing is known of a context until we have measured it: so it is expected to
 * take what contexts take. Elsewhere the guard measures it at once. */
static bool set_limits(struct watch *watch, const struct node_order *order, bool container,
                       struct error *error)
{
	uint8_t uuid[16];

	for (int64_t i = 0; i < order->part_count; i++) {
		const struct order_part *part = &order->parts[i];
		int64_t context_mib = container ? min64(CONTEXT_MIB, part->memory_mib / 8) : 0;
		if (!uuid_parse(part->uuid, uuid))
			return error_set(error, ERROR_INVALID, "'%s' is not the UUID of a GPU",
			                 part->uuid);
		if (!watch_set_limit(watch, uuid, part->memory_mib << MIB_SHIFT,
		                     context_mib << MIB_SHIFT, error))
			return false;
	}
	return true;
}

/* Whoever runs as the user of a work can write its segment. True if somebody has. */
static bool restore_limits(struct watch *watch, const struct node_order *order)
{
	bool changed = false;
	uint8_t uuid[16];

	for (int64_t i = 0; i < order->part_count; i++)
		if (uuid_parse(order->parts[i].uuid, uuid) &&
		    watch_restore_limit(watch, uuid, order->parts[i].memory_mib << MIB_SHIFT))
			changed = true;
	return changed;
}

static bool is_ours(const char *path)
{
	struct stat status;

	return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
	       (status.st_mode & 077) == 0;
}

/* Everyone can make directories beside it, so it must be ours already, or now. One that somebody
 * else has put there is moved out of the way. */
static bool close_directory(const struct run_settings *settings, struct error *error)
{
	char *path = closed_directory(settings);
	char *away = file_path("%s.not-of-the-agent-%lld", path, (long long)clock_boot_ms());
	bool ours = (mkdir(path, 0700) == 0 || errno == EEXIST) && is_ours(path);

	if (!ours && rename(path, away) == 0)
		ours = mkdir(path, 0700) == 0 && is_ours(path);
	free(away);
	if (!ours)
		error_set(error, ERROR_FORBIDDEN, "%s is not a directory of the agent alone", path);
	free(path);
	return ours;
}

static bool give(const struct run_plan *plan, const char *path, struct watch *watch,
                 struct error *error)
{
	if (is_closed(plan))
		return chmod(path, 0666) == 0 ||
		       error_set(error, ERROR_FORBIDDEN, "%s cannot be opened to a container: %s",
		                 path, strerror(errno));
	return plan->spec.uid < 0 ||
	       watch_give(watch, (uid_t)plan->spec.uid, (gid_t)plan->spec.gid, error);
}

bool guarding_begin(const struct run_settings *settings, const struct node_order *order,
                    const struct run_plan *plan, struct error *error)
{
	struct watch watch;

	if (!plan->guarded)
		return true;
	guarding_end(settings, order->reservation_id);
	if (is_closed(plan) && !close_directory(settings, error))
		return false;
	char *path = guarding_books(settings, order->reservation_id, plan);
	bool good = watch_create(&watch, path, error);
	if (good) {
		good = set_limits(&watch, order, plan->container, error) &&
		       give(plan, path, &watch, error);
		watch_close(&watch);
		if (!good)
			guarding_end(settings, order->reservation_id);
	}
	free(path);
	return good;
}

static bool open_books(const struct run_settings *settings, int64_t reservation_id,
                       struct watch *watch)
{
	for (int way = 0; is_possible(settings) && way < 2; way++) {
		struct error error = { 0 };
		char *path = books_path(settings, reservation_id, way == 1);
		bool open = access(path, F_OK) == 0 && watch_open(watch, path, &error);
		free(path);
		if (open)
			return true;
	}
	return false;
}

/* The part of an order on a GPU; -1: it has none there. */
static int64_t guarded_part(const struct node_order *order, const uint8_t gpu[16])
{
	uint8_t uuid[16];

	for (int64_t i = 0; i < order->part_count; i++)
		if (uuid_parse(order->parts[i].uuid, uuid) && memcmp(uuid, gpu, sizeof(uuid)) == 0)
			return i;
	return -1;
}

static int64_t mib_up(int64_t bytes)
{
	return (bytes + (1 << MIB_SHIFT) - 1) >> MIB_SHIFT;
}

static void read_failures(const struct watch_gpu *gpu, const struct node_order *order,
                          struct guard_reading *reading)
{
	reading->failures =
	    min64(reading->failures, TIME_MS_MAX) + min64(gpu->failures, TIME_MS_MAX);
	if (gpu->failures == 0 || gpu->last_failed_ms < reading->failed_ms)
		return;
	reading->failed_ms = gpu->last_failed_ms;
	reading->failed_mib = mib_up(gpu->last_failed_bytes);
	reading->failed_part = guarded_part(order, gpu->uuid);
}

/* The least limit and the highest peak of all GPUs. */
static void read_books(struct watch *watch, const struct node_order *order,
                       struct guard_reading *reading)
{
	struct watch_gpu gpu;

	*reading = (struct guard_reading){ .reservation_id = order->reservation_id,
		                           .failed_part = -1,
		                           .imports = watch_imports(watch) };
	for (uint32_t i = 0; watch_gpu(watch, i, &gpu); i++) {
		int64_t limit_mib = gpu.limit_bytes >> MIB_SHIFT;
		int64_t peak_mib = gpu.peak_bytes >> MIB_SHIFT;
		reading->limit_mib = i == 0 ? limit_mib : min64(reading->limit_mib, limit_mib);
		/* A task that corrupts its own segment deceives only itself. */
		reading->peak_mib = max64(reading->peak_mib, min64(peak_mib, limit_mib));
		reading->refusals =
		    min64(reading->refusals, TIME_MS_MAX) + min64(gpu.refusals, TIME_MS_MAX);
		reading->refused_mib = max64(reading->refused_mib, mib_up(gpu.last_refused_bytes));
		read_failures(&gpu, order, reading);
	}
}

bool guarding_read(const struct run_settings *settings, const struct node_order *order,
                   struct guard_reading *reading)
{
	struct watch watch;

	if (!open_books(settings, order->reservation_id, &watch))
		return false;
	read_books(&watch, order, reading);
	watch_close(&watch);
	return true;
}

bool guarding_read_kept(const char *path, const struct node_order *order,
                        struct guard_reading *reading)
{
	struct error error = { 0 };
	struct watch watch;

	if (access(path, F_OK) != 0 || !watch_open(&watch, path, &error))
		return false;
	read_books(&watch, order, reading);
	watch_close(&watch);
	return true;
}

/* A process that has just ended is in no segment, and needs none. */
static bool is_unguarded(struct watch *watch, int64_t pid)
{
	struct process_identity identity;

	return !watch_is_guarded(watch, pid) && process_of(pid, &identity);
}

static bool is_elsewhere(int64_t pid)
{
	struct process_identity identity;

	return process_of(pid, &identity) && identity.namespace_id != process_self().namespace_id;
}

static void read_hidden(struct watch *watch, const struct node_order *order, struct buffer *hidden)
{
	struct watch_gpu gpu;

	for (uint32_t number = 0; watch_gpu(watch, number, &gpu); number++) {
		int64_t part = gpu.hidden_bytes > 0 ? guarded_part(order, gpu.uuid) : -1;
		if (part < 0)
			continue;
		struct hidden_reading reading = { order->reservation_id, order->parts[part].uuid,
			                          gpu.hidden_bytes >> MIB_SHIFT };
		buffer_bytes(hidden, &reading, sizeof(reading));
	}
}

bool guarding_look(const struct run_settings *settings, const struct node_order *order,
                   const int64_t *pids, size_t pid_count, struct process_reading *processes,
                   size_t process_count, struct guard_reading *reading, struct buffer *hidden)
{
	int64_t reservation_id = order->reservation_id;
	struct watch watch;
	uint8_t uuid[16];

	if (!open_books(settings, reservation_id, &watch))
		return false;
	bool changed = restore_limits(&watch, order);
	watch_reap(&watch, pids, pid_count);
	for (size_t i = 0; i < process_count; i++) {
		struct process_reading *process = &processes[i];
		if (process->reservation_id != reservation_id)
			continue;
		process->unguarded = is_unguarded(&watch, process->pid);
		if (!process->unguarded && is_elsewhere(process->pid) &&
		    uuid_parse(process->uuid, uuid))
			watch_measured(&watch, process->pid, uuid,
			               process->memory_mib << MIB_SHIFT);
	}
	read_books(&watch, order, reading);
	reading->changed = changed;
	read_hidden(&watch, order, hidden);
	watch_close(&watch);
	return true;
}

void guarding_end(const struct run_settings *settings, int64_t reservation_id)
{
	for (int way = 0; is_possible(settings) && way < 2; way++) {
		char *path = books_path(settings, reservation_id, way == 1);
		unlink(path);
		free(path);
	}
	/* Where another one's is in it, it stays. */
	char *directory = closed_directory(settings);
	if (is_possible(settings))
		rmdir(directory);
	free(directory);
}
