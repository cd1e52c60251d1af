/* job_place.c - where a task of a job runs */
#include "api/job/job_place.h"

#include <stdio.h>

int64_t job_place_find(struct catalogue *catalogue, const struct catalogue_job *job, int64_t number,
                       char node[NODE_NAME_MAX])
{
	for (size_t i = 0; i < job->task_count; i++) {
		const struct task_record *task = job->tasks[i];
		if (task->place != number || task->state != TASK_RUNNING)
			continue;
		const struct reservation_record *reservation =
		    catalogue_get(catalogue, RECORD_RESERVATION, task->reservation_id, 0);
		const struct node_record *of =
		    reservation ? catalogue_get(catalogue, RECORD_NODE, reservation->node_id, 0)
				: NULL;
		if (!of)
			return 0;
		snprintf(node, NODE_NAME_MAX, "%s", of->name);
		return reservation->id;
	}
	return 0;
}
