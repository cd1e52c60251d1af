/* works.c - the tasks and slots on this node as processes: started, watched, ended */
#include "agent/works.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/file.h"
#include "agent/guarding.h"
#include "agent/works_local.h"
#include "base/log.h"

#define EXIT_NOT_RUN 127 /* as a shell says it */

#define LOOK_MS 100
#define SPEC_FILE 3 /* the numbers that a keeper has these files open under */
#define REPORT_FILE 4
#define STATUS_FILE 5
#define FIRST_SPARE_FILE 10

struct works *works_new(const struct works_settings *settings)
{
	struct works *works = NEW(struct works);

	works->settings = *settings;
	works->settings.run.cgroup_base = settings->cgroups->relative;
	return works;
}

struct work_process *works_find(const struct works *works, int64_t reservation_id)
{
	return map_get(&works->processes, reservation_id);
}

struct work_process *works_add(struct works *works, int64_t reservation_id)
{
	struct work_process *process = NEW(struct work_process);

	process->works = works;
	process->reservation_id = reservation_id;
	process->group = cgroups_group(works->settings.cgroups, reservation_id);
	map_put(&works->processes, reservation_id, process);
	array_reserve(works->list, works->capacity, works->count + 1);
	works->list[works->count++] = process;
	return process;
}

static void free_handle(uv_handle_t *handle)
{
	free(handle);
}

static void free_watched(uv_handle_t *handle)
{
	struct watched *watched = handle->data;

	close(watched->fd);
	free(watched);
}

struct watched *works_watch(struct work_process *process, int fd, uv_poll_cb ready)
{
	struct watched *watched = NEW(struct watched);

	watched->process = process;
	watched->fd = fd;
	uv_poll_init(process->works->settings.loop, &watched->poll, fd);
	watched->poll.data = watched;
	uv_poll_start(&watched->poll, UV_READABLE, ready);
	return watched;
}

void works_unwatch(struct watched **watched)
{
	if (!*watched)
		return;
	uv_poll_stop(&(*watched)->poll);
	uv_close((uv_handle_t *)&(*watched)->poll, free_watched);
	*watched = NULL;
}

void works_remove(struct works *works, struct work_process *process)
{
	works_unwatch(&process->report);
	works_unwatch(&process->keeper_end);
	works_unwatch(&process->first_end);
	if (process->look)
		uv_close((uv_handle_t *)process->look, free_handle);
	map_remove(&works->processes, process->reservation_id);
	for (size_t i = 0; i < works->count; i++)
		if (works->list[i] == process)
			works->list[i] = works->list[--works->count];
	cgroup_free(&process->group);
	arena_free(&process->arena);
	buffer_free(&process->said);
	free(process);
}

void works_use_container_runtime(struct works *works, const char *runtime)
{
	works->settings.run.container_runtime = runtime;
}

void works_free(struct works *works)
{
	while (works->count > 0)
		works_remove(works, works->list[0]);
	map_free(&works->processes);
	free(works->list);
	free(works);
}

char *works_status_path(const struct works *works, int64_t reservation_id)
{
	return file_path("%s/works/%" PRId64, works->settings.state_directory, reservation_id);
}

void works_tell(struct work_process *process, enum input_kind kind, struct work_event event)
{
	event.reservation_id = process->reservation_id;
	process->works->settings.event(process->works->settings.context, kind, &event);
}

/* An image whose C library is another one has nothing that can be started with the guard. */
static const char *exit_message(const struct work_process *process, int64_t exit_code)
{
	if (exit_code != EXIT_NOT_RUN || !process->order || !process->plan.guarded)
		return NULL;
	return "its output says why; programs that are not linked with glibc cannot load the "
	       "guard, and are not started then";
}

/* Its books are read a last time first: what the guard refused since the last measurement
 * counts too. */
static void tell_exit(struct work_process *process, const struct keeper_status *status)
{
	if (process->exited)
		return;
	process->exited = true;
	log_at(LOG_INFO, "a work has ended", LOG_NUMBER("reservation", process->reservation_id),
	       LOG_NUMBER("exit_code", status->exit_code),
	       LOG_NUMBER("peak_bytes", status->peak_bytes), LOG_NUMBER("cpu_ms", status->cpu_ms));
	struct work_event event = { .exit_code = status->exit_code,
		                    .exited_ms = status->exited_ms,
		                    .host_peak_bytes = status->peak_bytes,
		                    .cpu_ms = status->cpu_ms,
		                    .message = exit_message(process, status->exit_code) };
	event.guarded =
	    guarding_read(&process->works->settings.run, process->reservation_id, &event.guard);
	works_tell(process, INPUT_EXITED, event);
}

void works_read_status(struct work_process *process)
{
	char *path = works_status_path(process->works, process->reservation_id);

	keeper_status_read(path, &process->status);
	free(path);
	if (process->status.exited)
		tell_exit(process, &process->status);
}

static void look_again(uv_timer_t *timer)
{
	works_keeper_left(timer->data);
}

/* A keeper that was killed leaves processes behind, which are then watched from here. */
void works_keeper_left(struct work_process *process)
{
	if (process->gone)
		return;
	if (cgroup_is_populated(&process->group)) {
		if (!process->look) {
			process->look = NEW(uv_timer_t);
			uv_timer_init(process->works->settings.loop, process->look);
			process->look->data = process;
			uv_timer_start(process->look, look_again, LOOK_MS, LOOK_MS);
		}
		return;
	}
	if (process->look)
		uv_timer_stop(process->look);
	process->gone = true;
	works_read_status(process);
	cgroup_remove(&process->group);
	works_tell(process, INPUT_GONE, (struct work_event){ 0 });
}

static void take_line(struct work_process *process, const char *line)
{
	int64_t first = 0, second = 0;

	if (sscanf(line, "started %" SCNd64 " %" SCNd64, &first, &second) == 2) {
		process->started = true;
		process->status.pid = first;
		process->status.pid_start = second;
		works_tell(process, INPUT_STARTED,
		           (struct work_event){ .pid = first, .pid_start = second });
	} else if (keeper_status_read_exit(line, &process->status)) {
		tell_exit(process, &process->status);
	} else if (strncmp(line, "refused ", 8) == 0) {
		process->refused = true;
		works_tell(process, INPUT_NOT_STARTED, (struct work_event){ .message = line + 8 });
	}
}

static void take_report(struct work_process *process)
{
	char *line = process->said.data, *end;
	size_t left = process->said.size;

	while (left > 0 && (end = memchr(line, '\n', left))) {
		*end++ = '\0';
		take_line(process, line);
		left -= (size_t)(end - line);
		line = end;
	}
	if (left > 0)
		memmove(process->said.data, line, left);
	process->said.size = left;
}

static void report_ready(uv_poll_t *poll, int status, int events)
{
	struct watched *watched = poll->data;
	struct work_process *process = watched->process;
	char data[1024];
	ssize_t got;

	(void)status, (void)events;
	while ((got = read(watched->fd, data, sizeof(data))) > 0)
		buffer_bytes(&process->said, data, (size_t)got);
	bool ended = got == 0 || (errno != EAGAIN && errno != EINTR);
	take_report(process);
	if (!ended)
		return;
	works_unwatch(&process->report);
	if (process->refused)
		process->gone = true;
	else if (!process->started && !process->exited)
		take_line(process, "refused its keeper ended before it had begun");
	else
		works_keeper_left(process);
}

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
	limits.limit_devices = devices.size > 0;
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

/* Fills the rest of the spec. */
static bool prepare(struct work_process *process, struct error *error)
{
	struct works *works = process->works;
	struct spec *spec = &process->plan.spec;
	const struct node_order *order = process->order;
	bool slot = order->kind == ORDER_LOAD;

	if (!(slot ? run_plan_slot : run_plan_task)(&process->arena, &works->settings.run, order,
	                                            &process->plan, error))
		return false;
	char *status = works_status_path(works, process->reservation_id);
	char *lease = file_path("%s/lease", works->settings.state_directory);
	spec->status_path = arena_string(&process->arena, status);
	if (!slot && order->lease_loss == LEASE_STOP)
		spec->lease_path = arena_string(&process->arena, lease);
	free(status);
	free(lease);
	if (!guarding_begin(&works->settings.run, order, &process->plan, error) ||
	    !make_output(process, error) || !make_group(process, error))
		return false;
	spec->group = process->group;
	return true;
}

/* The same file under a number above those that are given away. */
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

static int spawn_keeper(const char *program, int spec, int report, int status)
{
	char *arguments[] = { "gpu-keeper", "3", "4", "5", NULL };
	char *environment[] = { NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	pid_t pid;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	for (int file = 0; file < 3; file++)
		posix_spawn_file_actions_addopen(&actions, file, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&actions, spec, SPEC_FILE);
	posix_spawn_file_actions_adddup2(&actions, report, REPORT_FILE);
	posix_spawn_file_actions_adddup2(&actions, status, STATUS_FILE);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
	                                          POSIX_SPAWN_SETSID);
	int failed = posix_spawn(&pid, program, &actions, &attributes, arguments, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return failed;
}

static bool start_keeper(struct work_process *process, struct error *error)
{
	int ends[2] = { -1, -1 };
	int spec = spec_file(&process->plan.spec);
	spec_wipe(&process->plan.spec);
	int status = above(keeper_status_lock(process->plan.spec.status_path));
	int failed = spec < 0 || status < 0 || pipe2(ends, O_CLOEXEC) != 0 ? errno : 0;
	int report = failed ? -1 : above(ends[1]);

	if (!failed)
		failed = report < 0
		             ? errno
		             : spawn_keeper(process->works->settings.keeper, spec, report, status);
	for (int *fd = (int[]){ spec, report, status, -2 }; *fd != -2; fd++)
		if (*fd >= 0)
			close(*fd);
	if (failed) {
		if (ends[0] >= 0)
			close(ends[0]);
		return error_set(error, ERROR_UNAVAILABLE, "cannot start its keeper: %s",
		                 strerror(failed));
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	process->report = works_watch(process, ends[0], report_ready);
	return true;
}

/* Events come from the loop, never from within a call. */
static void tell_refusal(uv_timer_t *timer)
{
	struct work_process *process = timer->data;

	uv_timer_stop(timer);
	process->refused = process->gone = true;
	works_tell(process, INPUT_NOT_STARTED,
	           (struct work_event){ .message = process->plan.spec.failure });
}

static void refuse_later(struct work_process *process, const struct error *error)
{
	process->plan.spec.failure = arena_string(&process->arena, error->text);
	process->look = NEW(uv_timer_t);
	uv_timer_init(process->works->settings.loop, process->look);
	process->look->data = process;
	uv_timer_start(process->look, tell_refusal, 0, 0);
}

void works_start(struct works *works, const struct node_order *order)
{
	struct error error = { 0 };

	if (works_find(works, order->reservation_id))
		return;
	struct work_process *process = works_add(works, order->reservation_id);
	process->order = node_order_copy(&process->arena, order);
	if (prepare(process, &error) && start_keeper(process, &error))
		return;
	log_at(LOG_WARNING, "a work cannot be started",
	       LOG_NUMBER("reservation", order->reservation_id), LOG_TEXT("reason", error.text));
	cgroup_remove(&process->group);
	refuse_later(process, &error);
}

/* Its first process still has the number that it was started with. */
static bool first_lives(const struct work_process *process)
{
	const struct keeper_status *status = &process->status;

	return status->pid > 0 && !process->exited &&
	       process_start((pid_t)status->pid) == status->pid_start;
}

void works_notice(struct works *works, int64_t reservation_id)
{
	struct work_process *process = works_find(works, reservation_id);

	if (!process || process->gone)
		return;
	if (!first_lives(process)) {
		cgroup_signal(&process->group, SIGTERM);
		return;
	}
	pid_t pid = (pid_t)process->status.pid;
	if (process->plan.notice_signal > 0)
		kill(pid, (int)process->plan.notice_signal);
	/* Its session, as a terminal would: what left that is killed at the end of the grace. */
	kill(-pid, SIGTERM);
	kill(-pid, SIGCONT);
}

void works_freeze(struct works *works, int64_t reservation_id)
{
	struct work_process *process = works_find(works, reservation_id);

	if (process && !process->gone)
		cgroup_freeze(&process->group, true);
}

void works_kill(struct works *works, int64_t reservation_id)
{
	struct work_process *process = works_find(works, reservation_id);

	if (process && !process->gone)
		cgroup_kill(&process->group);
}

void works_warn(struct works *works, int64_t reservation_id, const char *message)
{
	struct work_process *process = works_find(works, reservation_id);
	struct output_limits limits = { .file_bytes = INT64_MAX, .files = 1000 };
	struct output_writer writer;
	struct buffer line = { 0 };

	log_at(LOG_WARNING, "a work uses more than it reserved",
	       LOG_NUMBER("reservation", reservation_id), LOG_TEXT("reason", message));
	if (!process || !process->plan.spec.output_directory ||
	    !output_open(&writer, process->plan.spec.output_directory, STREAM_OUTPUT, &limits,
	                 NULL))
		return;
	buffer_print(&line, "gpu-agent: warning: %s\n", message);
	output_append(&writer, line.data, line.size);
	output_close(&writer);
	buffer_free(&line);
}

void works_erase(struct works *works, int64_t reservation_id)
{
	struct work_process *process = works_find(works, reservation_id);
	char *path = works_status_path(works, reservation_id);

	unlink(path);
	free(path);
	guarding_end(&works->settings.run, reservation_id);
	if (process)
		works_remove(works, process);
}

bool works_slot(const struct works *works, int64_t reservation_id, struct works_slot *slot)
{
	const struct work_process *process = works_find(works, reservation_id);

	if (!process || !process->order || process->order->kind != ORDER_LOAD ||
	    process->plan.port <= 0)
		return false;
	*slot = (struct works_slot){ process->plan.port, process->plan.health_path,
		                     process->order->runtime };
	return true;
}
