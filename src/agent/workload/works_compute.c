/* works_compute.c - the works that share the compute of a GPU */
#include <string.h>

#include "agent/workload/works_local.h"

static bool is_on(const struct work_process *process, const char *uuid)
{
	const struct node_order *order = process->order;

	for (int64_t i = 0; order && !process->gone && i < order->part_count; i++)
		if (strcmp(order->parts[i].uuid, uuid) == 0)
			return true;
	return false;
}

void works_count_clients(struct works *works, const struct measured *measured)
{
	for (size_t i = 0; i < works->count; i++) {
		struct work_process *process = works->list[i];
		int64_t most = process->plan.gpu_processes, count = 0;
		for (int64_t p = 0; most > 0 && p < measured->process_count; p++)
			count += measured->processes[p].reservation_id == process->reservation_id;
		if (count <= most || most == 0 || process->told_clients)
			continue;
		process->told_clients = true;
		works_warn(
		    works, process->reservation_id,
		    "more processes of it use its GPU than gpu_processes says, and each may "
		    "use as much of the compute as one of those: others on the GPU get less");
	}
}

bool works_use_gpu(const struct works *works, const char *uuid)
{
	for (size_t i = 0; i < works->count; i++)
		if (is_on(works->list[i], uuid))
			return true;
	return false;
}

void works_warn_all(struct works *works, const char *uuid, const char *message)
{
	for (size_t i = 0; i < works->count; i++)
		if (is_on(works->list[i], uuid))
			works_warn(works, works->list[i]->reservation_id, message);
}
