/* works_pod.c - pods: a kubelet starts and ends them, and they are found by their cgroups */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/host/file.h"
#include "agent/host/pod_group.h"
#include "agent/workload/works_local.h"
#include "base/log.h"

void works_watch_pod(struct work_process *process)
{
	const char *uid = process->order->payload;

	process->plan.fake_memory_mib = process->plan.fake_utilisation = -1;
	if (pod_group_uid_is_valid(uid))
		snprintf(process->pod, sizeof(process->pod), "%s", uid);
	else
		log_at(LOG_ERROR, "a pod without a uid cannot be found",
		       LOG_NUMBER("reservation", process->reservation_id));
}

bool works_is_pod(const struct work_process *process)
{
	return process->order && process->order->kind == ORDER_WATCH;
}

static void pod_runs(struct work_process *process, pid_t pid)
{
	process->status.pid = pid;
	process->status.pid_start = process_start(pid);
	if (process->started)
		return;
	process->started = true;
	log_at(LOG_INFO, "a pod runs", LOG_NUMBER("reservation", process->reservation_id),
	       LOG_TEXT("pod", process->pod), LOG_NUMBER("pid", pid));
	works_tell(process, INPUT_STARTED,
	           (struct work_event){ .pid = pid, .pid_start = process->status.pid_start });
}

/* Only the scheduler says that a pod has ended: between two containers it has no process. */
void works_look_for_pod(struct work_process *process)
{
	const struct run_settings *run = &process->works->settings.run;

	if (process->gone)
		return;
	pid_t pid = *process->pod ? pod_group_process(run->pod_cgroups, process->pod) : 0;
	if (pid > 0) {
		pod_runs(process, pid);
		return;
	}
	process->status.pid = 0;
	if (!process->stopping)
		return;
	process->gone = true;
	log_at(LOG_INFO, "a pod has no process any more",
	       LOG_NUMBER("reservation", process->reservation_id), LOG_TEXT("pod", process->pod));
	works_tell(process, INPUT_GONE, (struct work_event){ 0 });
}

/* Whose pod the process is in; 0: nobody's that we know. */
int64_t works_owner_of_pod(const struct buffer *keepers, pid_t pid)
{
	struct buffer text = { 0 };
	char *path = file_path("/proc/%d/cgroup", (int)pid);
	bool there = file_read(path, 65536, &text);
	int64_t id = 0;

	for (size_t at = 0; there && id == 0 && at < keepers->size;
	     at += sizeof(struct work_keeper)) {
		struct work_keeper keeper;
		memcpy(&keeper, keepers->data + at, sizeof(keeper));
		if (*keeper.pod && pod_group_is_named(text.data, keeper.pod))
			id = keeper.reservation_id;
	}
	free(path);
	buffer_free(&text);
	return id;
}
