/* works_adopt.c - works that an earlier agent started: found, and watched again */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/host/file.h"
#include "agent/workload/works_local.h"
#include "base/log.h"

/* A keeper that has only just begun says who it is before it does anything else. */
static void read_found(const char *path, struct keeper_status *status)
{
	enum { TRIES = 500, PAUSE_US = 10000 };

	keeper_status_read(path, status);
	for (int i = 0; i < TRIES && !status->kept && keeper_status_is_locked(path); i++) {
		usleep(PAUSE_US);
		keeper_status_read(path, status);
	}
}

static void find_one(void *context, int64_t id)
{
	struct works *works = context;

	if (works_find(works, id))
		return;
	struct work_process *process = works_add(works, id);
	char *path = works_status_path(works, id);
	read_found(path, &process->status);
	free(path);
	if (process_start((pid_t)process->status.keeper) != process->status.keeper_start)
		process->status.keeper = 0;
	process->group.keeper = (pid_t)process->status.keeper;
	if (process_start((pid_t)process->status.pid) != process->status.pid_start)
		process->status.pid = process->status.pid_start = 0;
}

static void find_all(struct works *works)
{
	char *path = file_path("%s/works", works->settings.state_directory);
	DIR *directory = opendir(path);
	const struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		int64_t id = atoll(entry->d_name);
		if (id > 0)
			find_one(works, id);
	}
	if (directory)
		closedir(directory);
	free(path);
	cgroups_list(works->settings.cgroups, find_one, works);
}

struct found *works_found(struct works *works, int64_t *count)
{
	find_all(works);
	struct found *found = memory_zero(works->count + 1, sizeof(*found));
	for (size_t i = 0; i < works->count; i++) {
		const struct work_process *process = works->list[i];
		/* A keeper without a process is about to start it: its prolog runs, say. */
		bool begins =
		    process->status.keeper > 0 && !process->status.exited && !process->status.ended;
		bool alive =
		    begins || process->status.pid > 0 || cgroup_is_populated(&process->group);
		found[i] = (struct found){ .reservation_id = process->reservation_id,
			                   .alive = alive,
			                   .pid = process->status.pid,
			                   .pid_start = process->status.pid_start,
			                   .exited = process->status.exited,
			                   .exit_code = process->status.exit_code,
			                   .exited_ms = process->status.exited_ms,
			                   .host_peak_bytes = process->status.peak_bytes,
			                   .cpu_ms = process->status.cpu_ms,
			                   .model = "" };
		/* Its order is not known yet: no failure is of a part. */
		struct node_order order = { .reservation_id = process->reservation_id };
		found[i].guarded =
		    process->status.exited && works_last_counters(process, &order, &found[i].guard);
	}
	*count = (int64_t)works->count;
	return found;
}

static int open_process(int64_t pid)
{
	return pid > 0 ? (int)syscall(SYS_pidfd_open, (pid_t)pid, 0) : -1;
}

static void keeper_ended(uv_poll_t *poll, int status, int events)
{
	struct watched *watched = poll->data;
	struct work_process *process = watched->process;

	(void)status, (void)events;
	works_unwatch(&process->keeper_end);
	works_keeper_left(process);
}

/* Its keeper records how it ended, and then exits: a missing result appears by then. */
static void first_ended(uv_poll_t *poll, int status, int events)
{
	struct watched *watched = poll->data;
	struct work_process *process = watched->process;

	(void)status, (void)events;
	works_unwatch(&process->first_end);
	works_read_status(process);
	if (!process->keeper_end)
		works_keeper_left(process);
}

/* Where a slot listens was decided when it was started; it has it in its environment. */
static void read_port(struct work_process *process)
{
	static const char name[] = "GPU_SCHEDULER_PORT=";
	struct buffer text = { 0 };
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRId64 "/environ", process->status.pid);
	if (file_read(path, 16u << 20, &text)) {
		const char *at = text.data, *end = text.data + text.size;
		while (at < end) {
			if (strncmp(at, name, sizeof(name) - 1) == 0)
				process->plan.port = atoll(at + sizeof(name) - 1);
			at += strlen(at) + 1;
		}
	}
	buffer_free(&text);
}

static void recall_plan(struct work_process *process)
{
	struct works *works = process->works;
	struct error error = { 0 };
	bool slot = process->order->kind == ORDER_LOAD;
	struct run_settings run = works->settings.run;
	char *output =
	    works_output_directory(works->settings.state_directory, process->reservation_id,
	                           process->order->job_id, process->order->task);

	run.trusts_users = true; /* it runs as its user already */
	(slot ? run_plan_slot : run_plan_task)(&process->arena, &run, process->order,
	                                       &process->plan, &error);
	spec_wipe(&process->plan.spec);
	process->plan.spec.output_directory = arena_string(&process->arena, output);
	free(output);
	if (slot) {
		char *door = works_door_path(works, process->reservation_id);
		process->plan.port = 0;
		read_port(process);
		/* One of an older agent has no proxy, and the network of the node. */
		if (!slot_door_read(door, &process->plan.door))
			process->plan.door.port = 0;
		process->plan.spec.own_network = process->plan.door.own_network;
		free(door);
	}
}

static void left_at_once(uv_timer_t *timer)
{
	uv_timer_stop(timer);
	works_keeper_left(timer->data);
}

void works_adopt(struct works *works, const struct node_order *order, const struct kept_work *kept)
{
	struct work_process *process = works_find(works, order->reservation_id);

	if (!process)
		process = works_add(works, order->reservation_id);
	if (process->order)
		return;
	process->order = node_order_copy(&process->arena, order);
	if (works_is_pod(process)) {
		works_watch_pod(process);
		process->started = kept->phase > WORK_STARTING;
		process->stopping = kept->phase >= WORK_STOPPING;
		process->gone = kept->gone;
		return;
	}
	recall_plan(process);
	process->started = true;
	process->exited = process->status.exited;
	process->gone = kept->gone;
	process->away = kept->memory == MEMORY_AWAY || kept->memory == MEMORY_COMING;
	int keeper = open_process(process->status.keeper),
	    first = open_process(process->status.pid);
	if (keeper >= 0)
		process->keeper_end = works_watch(process, keeper, keeper_ended);
	if (first >= 0)
		process->first_end = works_watch(process, first, first_ended);
	if (keeper < 0 && first < 0 && !process->gone) {
		process->look = NEW(uv_timer_t);
		uv_timer_init(works->settings.loop, process->look);
		process->look->data = process;
		uv_timer_start(process->look, left_at_once, 0, 100);
	}
	log_at(LOG_INFO, "adopted a running work",
	       LOG_NUMBER("reservation", process->reservation_id),
	       LOG_NUMBER("pid", process->status.pid));
}

void works_sweep(struct works *works)
{
	for (size_t i = works->count; i-- > 0;) {
		struct work_process *process = works->list[i];
		if (process->order)
			continue;
		cgroup_remove(&process->group);
		works_erase(works, process->reservation_id);
	}
}
