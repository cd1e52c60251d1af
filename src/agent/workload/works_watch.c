/* works_watch.c - what works do: their memory, their checkpoints, their output */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/host/file.h"
#include "agent/workload/guarding.h"
#include "agent/workload/works_local.h"

#define PARENTS_MAX 64

void works_users(const struct works *works, struct buffer *users)
{
	for (size_t i = 0; i < works->count; i++) {
		const struct work_process *process = works->list[i];
		if (!process->order || process->gone || process->refused || process->away ||
		    process->status.pid <= 0)
			continue;
		for (int64_t j = 0; j < process->order->part_count; j++) {
			const struct order_part *part = &process->order->parts[j];
			struct gpu_user user = {
				.reservation_id = process->reservation_id,
				.pid = process->status.pid,
				.uuid = part->uuid,
				.memory_mib = process->plan.fake_memory_mib >= 0
				                  ? process->plan.fake_memory_mib
				                  : part->memory_mib,
				.utilisation = process->plan.fake_utilisation,
			};
			buffer_bytes(users, &user, sizeof(user));
		}
	}
}

static void look_at_guard(const struct work_process *process, struct process_reading *processes,
                          size_t process_count, struct buffer *guards, struct buffer *hidden)
{
	struct guard_reading reading;
	struct buffer pids = { 0 };

	cgroup_processes(&process->group, &pids);
	if (guarding_look(&process->works->settings.run, process->order,
	                  (const int64_t *)(const void *)pids.data, pids.size / sizeof(int64_t),
	                  processes, process_count, &reading, hidden))
		buffer_bytes(guards, &reading, sizeof(reading));
	buffer_free(&pids);
}

void works_guards(const struct works *works, struct process_reading *processes,
                  size_t process_count, struct buffer *guards, struct buffer *hidden)
{
	for (size_t i = 0; i < works->count; i++) {
		const struct work_process *process = works->list[i];
		if (process->order && process->plan.guarded && process->started && !process->exited)
			look_at_guard(process, processes, process_count, guards, hidden);
	}
}

void works_keepers(const struct works *works, struct buffer *keepers)
{
	for (size_t i = 0; i < works->count; i++) {
		const struct work_process *process = works->list[i];
		struct work_keeper keeper = { process->reservation_id, process->status.keeper, "" };
		if (works_is_pod(process)) {
			memcpy(keeper.pod, process->pod, sizeof(keeper.pod));
			buffer_bytes(keepers, &keeper, sizeof(keeper));
			continue;
		}
		if (process->status.pid > 0 && keeper.keeper <= 0)
			keeper.keeper = process_parent((pid_t)process->status.pid);
		if (keeper.keeper > 1)
			buffer_bytes(keepers, &keeper, sizeof(keeper));
	}
}

int64_t works_owner(const struct cgroups *cgroups, const struct buffer *keepers, pid_t pid)
{
	int64_t id = cgroups_of_process(cgroups, pid);

	if (id == 0)
		id = works_owner_of_pod(keepers, pid);
	for (int i = 0; id == 0 && i < PARENTS_MAX && pid > 1; i++) {
		for (size_t at = 0; at < keepers->size && id == 0;
		     at += sizeof(struct work_keeper)) {
			struct work_keeper keeper;
			memcpy(&keeper, keepers->data + at, sizeof(keeper));
			if (keeper.keeper == pid && pid > 1)
				id = keeper.reservation_id;
		}
		pid = process_parent(pid);
	}
	return id;
}

static void look_for_checkpoint(struct work_process *process)
{
	char *status = works_status_path(process->works, process->reservation_id);
	int64_t mark = keeper_mark_read(status), before = process->checkpoint_mark;

	free(status);
	process->checkpoint_mark = mark;
	if (mark != 0 && mark != before)
		works_tell(process, INPUT_CHECKPOINT, (struct work_event){ 0 });
}

void works_look(struct works *works)
{
	for (size_t i = 0; i < works->count; i++) {
		struct work_process *process = works->list[i];
		if (works_is_pod(process)) {
			works_look_for_pod(process);
			continue;
		}
		/* Adopted before its keeper had started it. */
		if (process->keeper_end && process->status.pid == 0 && !process->exited)
			works_read_status(process);
		if (process->plan.spec.checkpoint_path && process->started && !process->exited)
			look_for_checkpoint(process);
	}
}

/* Directories are named JOB-TASK-RESERVATION. */
bool works_read_name(const char *name, int64_t *job, int64_t *task, int64_t *reservation)
{
	return sscanf(name, "%" SCNd64 "-%" SCNd64 "-%" SCNd64, job, task, reservation) == 3;
}

char *works_output_directory(const char *state_directory, int64_t reservation_id, int64_t job_id,
                             int64_t task)
{
	char *path = file_path("%s/output", state_directory);
	DIR *directory = opendir(path);
	const struct dirent *entry;
	int64_t best = -1, best_job = 0, best_task = 0;

	while (directory && (entry = readdir(directory))) {
		int64_t job = 0, its_task = 0, reservation = 0;
		if (!works_read_name(entry->d_name, &job, &its_task, &reservation))
			continue;
		bool fits = reservation_id > 0 ? reservation == reservation_id
		                               : job == job_id && its_task == task;
		if (!fits || reservation <= best)
			continue;
		best = reservation;
		best_job = job;
		best_task = its_task;
	}
	if (directory)
		closedir(directory);
	char *found = best < 0 ? NULL
	                       : file_path("%s/%" PRId64 "-%" PRId64 "-%" PRId64, path, best_job,
	                                   best_task, best);
	free(path);
	return found;
}

bool works_is_writing(const struct works *works, int64_t reservation_id, int64_t job_id,
                      int64_t task)
{
	for (size_t i = 0; i < works->count; i++) {
		const struct work_process *process = works->list[i];
		if (!process->order || process->gone || works_is_pod(process))
			continue;
		if (reservation_id > 0
		        ? process->reservation_id == reservation_id
		        : process->order->job_id == job_id && process->order->task == task)
			return true;
	}
	return false;
}
