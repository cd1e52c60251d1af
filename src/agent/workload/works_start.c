/* works_start.c - works are started one after the other, in slices of the loop */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/file.h"
#include "agent/host/lease_keys.h"
#include "agent/host/slot_certificate.h"
#include "agent/keeper/input.h"
#include "agent/keeper/keeper_proxy.h"
#include "agent/keeper/sessions.h"
#include "agent/workload/folder.h"
#include "agent/workload/guarding.h"
#include "agent/workload/slot_listener.h"
#include "agent/workload/works_local.h"
#include "base/clock.h"
#include "base/log.h"

#define SLICE_MS 2          /* that starts may take before timers and connections have their turn */
#define FIRST_SPARE_FILE 10 /* behind those of a keeper */

/* What a keeper is started with; -1: it is not. */
struct keeper_files {
	int spec, report, status, listener, keys, leases;
};

static bool make_group(struct work_process *process, struct error *error)
{
	struct works *works = process->works;
	const struct node_order *order = process->order;
	struct buffer devices = { 0 };
	struct cgroup_limits limits = { .cpu_milli = order->cpu_milli,
		                        .memory_bytes = order->host_bytes,
		                        .pids = works->settings.run.pids };
	struct gpu_source *source = works->settings.source;

	for (int64_t i = 0; i < order->part_count; i++)
		source->kind->devices(source, order->parts[i].uuid, &devices);
	/* A task without GPUs opens no device of any GPU either. */
	limits.limit_devices = source->kind->limits_devices || devices.size > 0;
	limits.devices = (const struct device_rule *)(const void *)devices.data;
	limits.device_count = (int)(devices.size / sizeof(struct device_rule));
	bool made = cgroup_make(works->settings.cgroups, &process->group, &limits, error);
	buffer_free(&devices);
	return made;
}

static bool make_output(struct work_process *process, struct error *error)
{
	const struct node_order *order = process->order;
	char *path = file_path("%s/output/%" PRId64 "-%" PRId64 "-%" PRId64,
	                       process->works->settings.state_directory, order->job_id, order->task,
	                       order->reservation_id);
	bool made = mkdir(path, 0700) == 0 || errno == EEXIST;

	if (!made)
		error_set(error, ERROR_UNAVAILABLE, "cannot make %s: %s", path, strerror(errno));
	process->plan.spec.output_directory = arena_string(&process->arena, path);
	free(path);
	return made;
}

/* The FIFO that the agent and its keeper meet at. */
static bool make_input(struct work_process *process, const char *status, struct error *error)
{
	struct spec *spec = &process->plan.spec;
	char *path = input_path(status);

	unlink(path);
	bool made = mkfifo(path, 0600) == 0;
	if (made)
		spec->input_path = arena_string(&process->arena, path);
	else
		error_set(error, ERROR_UNAVAILABLE, "cannot make %s: %s", path, strerror(errno));
	free(path);
	return made;
}

/* Duplicates a descriptor above the numbers that the child uses. */
static int above(int fd)
{
	int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FIRST_SPARE_FILE);

	if (fd >= 0)
		close(fd);
	return high;
}

/* A file in memory with the spec. */
static int spec_file(const struct spec *spec)
{
	struct buffer bytes = { 0 };
	int fd = memfd_create("spec", MFD_CLOEXEC);

	spec_encode(&bytes, spec);
	bool written = fd >= 0 && write(fd, bytes.data, bytes.size) == (ssize_t)bytes.size &&
	               lseek(fd, 0, SEEK_SET) == 0;
	explicit_bzero(bytes.data, bytes.size);
	buffer_free(&bytes);
	if (!written && fd >= 0)
		close(fd);
	return written ? above(fd) : -1;
}

/* A file in memory with the keys of a slot, and its certificate. */
static int keys_file(const struct slot_keys *keys, const struct buffer *pem)
{
	int fd = memfd_create("keys", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, keys, sizeof(*keys)) == sizeof(*keys) &&
	    (pem->size == 0 || write(fd, pem->data, pem->size) == (ssize_t)pem->size))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* What the slot shows to who speaks TLS; nothing where nobody is to. */
static bool read_certificate(const struct works *works, struct slot_certificate *certificate,
                             struct error *error)
{
	const struct run_settings *run = &works->settings.run;

	*certificate = (struct slot_certificate){ 0 };
	if (run->slot_tls == SLOT_TLS_OFF)
		return true;
	if (run->slot_cert_file)
		return slot_certificate_read(run->slot_cert_file, run->slot_key_file, certificate,
		                             error);
	char *path = file_path("%s/slot-certificate.pem", works->settings.state_directory);
	bool good = slot_certificate_own(path, certificate, error);
	free(path);
	return good;
}

/* A slot is reached at this socket alone, and only with a key. */
static bool open_door(struct work_process *process, struct keeper_files *files, struct error *error)
{
	struct slot_door *door = &process->plan.door;
	struct slot_certificate certificate;

	const struct run_plan *plan = &process->plan;
	files->listener = above(slot_listener_open(
	    &process->works->settings.run, plan->spec.own_network ? 0 : plan->port, door, error));
	if (files->listener < 0)
		return false;
	if (!read_certificate(process->works, &certificate, error))
		return false;
	memcpy(door->certificate, certificate.fingerprint, sizeof(door->certificate));
	door->own_network = process->plan.spec.own_network;
	door->tls_only = process->plan.spec.tls_only =
	    process->works->settings.run.slot_tls == SLOT_TLS_REQUIRE;
	char *path = works_door_path(process->works, process->reservation_id);
	char *leases = works_leases_path(process->works, process->reservation_id);
	bool written = slot_door_write(path, door, error) &&
	               (files->leases = above(lease_keys_make(leases, error))) >= 0;
	free(path);
	free(leases);
	files->keys = written ? above(keys_file(&door->keys, &certificate.pem)) : -1;
	slot_certificate_free(&certificate);
	return files->keys >= 0 || error->code != ERROR_NONE ||
	       error_set(error, ERROR_UNAVAILABLE, "cannot make a file in memory: %s",
	                 strerror(errno));
}

/* Fills the rest of the spec. */
static bool prepare(struct work_process *process, struct keeper_files *files, struct error *error)
{
	struct works *works = process->works;
	struct spec *spec = &process->plan.spec;
	const struct node_order *order = process->order;
	bool slot = order->kind == ORDER_LOAD;

	if (!(slot ? run_plan_slot : run_plan_task)(&process->arena, &works->settings.run, order,
	                                            &process->plan, error))
		return false;
	if (slot && !open_door(process, files, error))
		return false;
	char *status = works_status_path(works, process->reservation_id);
	char *lease = file_path("%s/lease", works->settings.state_directory);
	spec->status_path = arena_string(&process->arena, status);
	char *sessions = session_path(status);
	if (!slot)
		spec->session_path = arena_string(&process->arena, sessions);
	free(sessions);
	char *budget =
	    guarding_books(&works->settings.run, process->reservation_id, &process->plan);
	if (process->plan.guarded)
		spec->budget_path = arena_string(&process->arena, budget);
	free(budget);
	bool has_input = !process->plan.reads_input || make_input(process, status, error);
	if (!slot && order->lease_loss == LEASE_STOP)
		spec->lease_path = arena_string(&process->arena, lease);
	free(status);
	free(lease);
	if (!has_input || !guarding_begin(&works->settings.run, order, &process->plan, error) ||
	    !folder_begin(&works->settings.run, process->reservation_id, &process->arena,
	                  &process->plan, error) ||
	    !make_output(process, error) || !make_group(process, error))
		return false;
	spec->group = process->group;
	return true;
}

static int spawn_keeper(const char *program, const struct keeper_files *files, pid_t *pid)
{
	char *arguments[] = { "gpu-keeper", "3", "4", "5", NULL };
	char *environment[] = { NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	for (int file = 0; file < 3; file++)
		posix_spawn_file_actions_addopen(&actions, file, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&actions, files->spec, KEEPER_SPEC);
	posix_spawn_file_actions_adddup2(&actions, files->report, KEEPER_REPORT);
	posix_spawn_file_actions_adddup2(&actions, files->status, KEEPER_STATUS);
	if (files->listener >= 0) {
		posix_spawn_file_actions_adddup2(&actions, files->listener, KEEPER_LISTENER);
		posix_spawn_file_actions_adddup2(&actions, files->keys, KEEPER_KEYS);
		posix_spawn_file_actions_adddup2(&actions, files->leases, KEEPER_LEASES);
	}
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
	                                          POSIX_SPAWN_SETSID);
	int failed = posix_spawn(pid, program, &actions, &attributes, arguments, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return failed;
}

static bool start_keeper(struct work_process *process, struct keeper_files *files,
                         struct error *error)
{
	int ends[2] = { -1, -1 };
	pid_t keeper = 0;

	files->spec = spec_file(&process->plan.spec);
	spec_wipe(&process->plan.spec);
	files->status = above(keeper_status_lock(process->plan.spec.status_path));
	int failed =
	    files->spec < 0 || files->status < 0 || pipe2(ends, O_CLOEXEC) != 0 ? errno : 0;
	files->report = failed ? -1 : above(ends[1]);
	if (!failed)
		failed = files->report < 0
		             ? errno
		             : spawn_keeper(process->works->settings.keeper, files, &keeper);
	if (failed) {
		if (ends[0] >= 0)
			close(ends[0]);
		return error_set(error, ERROR_UNAVAILABLE, "cannot start its keeper: %s",
		                 strerror(failed));
	}
	process->status.keeper = keeper;
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	process->report = works_watch(process, ends[0], works_report_ready);
	return true;
}

static void close_files(const struct keeper_files *files)
{
	const int all[] = { files->spec,     files->report, files->status,
		            files->listener, files->keys,   files->leases };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (all[i] >= 0)
			close(all[i]);
}

static void works_start_refuse(struct work_process *process, const char *reason)
{
	log_at(LOG_WARNING, "a work cannot be started",
	       LOG_NUMBER("reservation", process->reservation_id), LOG_TEXT("reason", reason));
	process->refused = process->gone = true;
	works_tell(process, INPUT_NOT_STARTED, (struct work_event){ .message = reason });
}

static void works_start_start(struct work_process *process)
{
	struct keeper_files files = { -1, -1, -1, -1, -1, -1 };
	struct error error = { 0 };

	if (process->cancelled) {
		works_start_refuse(process, "it was told to stop before it began");
		return;
	}
	bool started = prepare(process, &files, &error) && start_keeper(process, &files, &error);
	close_files(&files);
	if (started)
		return;
	cgroup_remove(&process->group);
	works_start_refuse(process, error.text);
}

/* Once in each turn of the loop, after the timers and before files are polled. */
static void start_some(uv_idle_t *idle)
{
	struct works *works = idle->data;
	int64_t end_ms = clock_boot_ms() + SLICE_MS;

	do {
		struct work_process *process = works->first_queued;
		if (!process)
			break;
		works_start_forget(process);
		works_start_start(process);
	} while (clock_boot_ms() < end_ms);
}

void works_starter_open(struct works *works)
{
	works->starter = NEW(uv_idle_t);
	uv_idle_init(works->settings.loop, works->starter);
	works->starter->data = works;
}

static void free_starter(uv_handle_t *handle)
{
	free(handle);
}

void works_starter_close(struct works *works)
{
	uv_close((uv_handle_t *)works->starter, free_starter);
}

void works_start(struct works *works, const struct node_order *order)
{
	if (works_find(works, order->reservation_id))
		return;
	struct work_process *process = works_add(works, order->reservation_id);
	process->order = node_order_copy(&process->arena, order);
	if (works_is_pod(process)) {
		works_watch_pod(process);
		return;
	}
	process->queued = true;
	process->before_queued = works->last_queued;
	if (works->last_queued)
		works->last_queued->next_queued = process;
	else
		works->first_queued = process;
	works->last_queued = process;
	uv_idle_start(works->starter, start_some);
}

void works_start_forget(struct work_process *process)
{
	struct works *works = process->works;

	if (!process->queued)
		return;
	process->queued = false;
	if (process->before_queued)
		process->before_queued->next_queued = process->next_queued;
	else
		works->first_queued = process->next_queued;
	if (process->next_queued)
		process->next_queued->before_queued = process->before_queued;
	else
		works->last_queued = process->before_queued;
	process->next_queued = process->before_queued = NULL;
	if (!works->first_queued)
		uv_idle_stop(works->starter);
}

bool works_start_cancel(struct work_process *process)
{
	process->cancelled = process->cancelled || process->queued;
	return process->queued;
}
