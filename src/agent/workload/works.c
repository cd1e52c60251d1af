/* works.c - the tasks and slots on this node as processes: started, watched, ended */
#include "agent/workload/works.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/host/file.h"
#include "agent/keeper/input.h"
#include "agent/keeper/sessions.h"
#include "agent/workload/folder.h"
#include "agent/workload/guarding.h"
#include "agent/workload/works_local.h"
#include "base/log.h"

#define EXIT_NOT_RUN 127 /* as a shell says it */

#define LOOK_MS 100

struct works *works_new(const struct works_settings *settings)
{
	struct works *works = NEW(struct works);

	works->settings = *settings;
	works->settings.run.cgroup_base = settings->cgroups->relative;
	works_starter_open(works);
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
	works_start_forget(process);
	works_move_leave(process);
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

void works_trust_users(struct works *works, bool trusted)
{
	works->settings.run.trusts_users = trusted;
}

void works_free(struct works *works)
{
	while (works->count > 0)
		works_remove(works, works->list[0]);
	works_starter_close(works);
	works_trim_leave(works);
	map_free(&works->processes);
	free(works->list);
	free(works);
}

char *works_door_path(const struct works *works, int64_t reservation_id)
{
	return file_path("%s/slots/%" PRId64, works->settings.state_directory, reservation_id);
}

char *works_leases_path(const struct works *works, int64_t reservation_id)
{
	return file_path("%s/slots/%" PRId64 ".leases", works->settings.state_directory,
	                 reservation_id);
}

char *works_status_path(const struct works *works, int64_t reservation_id)
{
	return file_path("%s/works/%" PRId64, works->settings.state_directory, reservation_id);
}

char *works_input_path(const struct works *works, int64_t reservation_id)
{
	char *status = works_status_path(works, reservation_id);
	char *path = input_path(status);

	free(status);
	return path;
}

char *works_input_offset_path(const struct works *works, int64_t reservation_id)
{
	char *status = works_status_path(works, reservation_id);
	char *path = input_offset_path(status);

	free(status);
	return path;
}

char *works_session_path(const struct works *works, int64_t reservation_id)
{
	char *status = works_status_path(works, reservation_id);
	char *path = session_path(status);

	free(status);
	return path;
}

bool works_session_command(const struct works *works, const struct session_open *open,
                           struct arena *arena, struct spec *command, struct error *error)
{
	const struct work_process *process = works_find(works, open->reservation_id);

	if (!process || !process->order || process->order->kind != ORDER_START)
		return error_set(error, ERROR_CONFLICT, "the task does not run on this node");
	if (process->away || process->move)
		return error_set(error, ERROR_CONFLICT,
		                 "the task is suspended, and takes no commands");
	return run_plan_session(arena, &works->settings.run, process->order, open, command, error);
}

void works_tell(struct work_process *process, enum input_kind kind, struct work_event event)
{
	event.reservation_id = process->reservation_id;
	process->works->settings.event(process->works->settings.context, kind, &event);
}

static const char *subject_of(const struct work_process *process)
{
	return process->order && process->order->kind == ORDER_LOAD ? "its server" : "it";
}

static void say_killed(const struct work_process *process, const struct keeper_status *status,
                       struct buffer *text)
{
	const char *name = sigabbrev_np((int)status->signal);

	buffer_print(text, "%s was killed by signal %" PRId64, subject_of(process), status->signal);
	if (name)
		buffer_print(text, " (SIG%s)", name);
}

/* Its first process may have survived a child that was killed. */
static void say_out_of_memory(const struct work_process *process,
                              const struct keeper_status *status, struct buffer *text)
{
	int64_t limit_bytes = process->order ? process->order->host_bytes : 0;

	if (status->signal == SIGKILL)
		buffer_print(text, "%s was killed: it used ", subject_of(process));
	else
		buffer_print(text, "one of its processes was killed: it used ");
	/* Without a limit of its own it was the machine's. */
	if (limit_bytes > 0)
		buffer_print(text, "more host memory than its limit of %" PRId64 " MiB",
		             limit_bytes >> 20);
	else
		buffer_print(text, "host memory when there was none left");
}

/* How it ended where its code does not say that: left empty otherwise. An image whose C library
 * is another one has nothing that can be started with the guard. */
static void say_end(const struct work_process *process, const struct keeper_status *status,
                    struct buffer *text)
{
	if (status->exit_code == EXIT_NOT_RUN && process->order && process->plan.guarded)
		buffer_print(text, "its output says why; programs that are not linked with glibc "
		                   "cannot load the guard, and are not started then");
	else if (status->timed_out)
		buffer_print(text, "time limit reached");
	else if (status->memory_kills > 0 && status->exit_code != 0)
		say_out_of_memory(process, status, text);
	else if (status->signal > 0)
		say_killed(process, status, text);
}

bool works_last_counters(const struct work_process *process, const struct node_order *order,
                         struct guard_reading *reading)
{
	char *status = works_status_path(process->works, process->reservation_id);
	char *kept = keeper_budget_path(status);
	bool good = guarding_read(&process->works->settings.run, order, reading) ||
	            guarding_read_kept(kept, order, reading);

	free(kept);
	free(status);
	return good;
}

/* Reads its counters a last time first: refusals since the last measurement count too. */
static void tell_exit(struct work_process *process, const struct keeper_status *status)
{
	struct buffer message = { 0 };

	if (process->exited)
		return;
	process->exited = true;
	say_end(process, status, &message);
	log_at(LOG_INFO, "a work has ended", LOG_NUMBER("reservation", process->reservation_id),
	       LOG_NUMBER("exit_code", status->exit_code),
	       LOG_NUMBER("peak_bytes", status->peak_bytes), LOG_NUMBER("cpu_ms", status->cpu_ms));
	struct work_event event = { .exit_code = status->exit_code,
		                    .exited_ms = status->exited_ms,
		                    .host_peak_bytes = status->peak_bytes,
		                    .cpu_ms = status->cpu_ms,
		                    .message = message.data };
	event.guarded =
	    process->order && works_last_counters(process, process->order, &event.guard);
	works_tell(process, INPUT_EXITED, event);
	buffer_free(&message);
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
	/* Its last counters were read: nothing stays behind, whatever becomes of us. */
	guarding_end(&process->works->settings.run, process->reservation_id);
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

void works_report_ready(uv_poll_t *poll, int status, int events)
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

	if (process && works_is_pod(process))
		process->stopping = true;
	if (!process || process->gone || works_is_pod(process) || works_start_cancel(process))
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

	if (process && !process->gone && !process->queued && !works_is_pod(process))
		cgroup_freeze(&process->group, true);
}

void works_kill(struct works *works, int64_t reservation_id)
{
	struct work_process *process = works_find(works, reservation_id);

	if (process && !process->gone && !works_is_pod(process) && !works_start_cancel(process))
		cgroup_kill(&process->group);
}

void works_warn(struct works *works, int64_t reservation_id, const char *message)
{
	struct work_process *process = works_find(works, reservation_id);
	struct output_limits limits = { .file_bytes = INT64_MAX, .files = 1000 };
	struct output_writer writer;
	struct buffer line = { 0 };

	log_at(LOG_WARNING, "a work is warned", LOG_NUMBER("reservation", reservation_id),
	       LOG_TEXT("reason", message));
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
	char *budget = keeper_budget_path(path);
	char *mark = keeper_mark_path(path), *door = works_door_path(works, reservation_id);
	char *leases = works_leases_path(works, reservation_id);
	char *input = input_path(path), *offset = input_offset_path(path);

	unlink(path);
	unlink(budget);
	unlink(mark);
	unlink(door);
	unlink(leases);
	unlink(input);
	unlink(offset);
	char *sessions = session_path(path);
	unlink(sessions);
	free(sessions);
	free(path);
	free(budget);
	free(mark);
	free(door);
	free(leases);
	free(input);
	free(offset);
	guarding_end(&works->settings.run, reservation_id);
	folder_end(&works->settings.run, reservation_id);
	if (process)
		works_remove(works, process);
}

bool works_slot(const struct works *works, int64_t reservation_id, struct works_slot *slot)
{
	const struct work_process *process = works_find(works, reservation_id);

	if (!process || !process->order || process->order->kind != ORDER_LOAD ||
	    process->plan.port <= 0)
		return false;
	const struct slot_door *door = &process->plan.door;
	*slot = (struct works_slot){ .port = process->plan.port,
		                     .own_network = process->plan.spec.own_network,
		                     .public_port = door->port,
		                     .key = door->port > 0 ? door->keys.agent : NULL,
		                     .client_key = door->port > 0 ? door->keys.client : NULL,
		                     .certificate = door->certificate[0] ? door->certificate : NULL,
		                     .tls_only = door->tls_only,
		                     .health_path = process->plan.health_path,
		                     .runtime = process->order->runtime,
		                     .group = process->group };
	if (door->port == 0)
		slot->public_port = slot->port;
	slot->group.keeper = (pid_t)process->status.keeper;
	return true;
}
