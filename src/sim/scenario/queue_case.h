/* queue_case.h - a case of queues.json: a small cluster before, and what is expected after */
#ifndef SIM_SCENARIO_QUEUE_CASE_H
#define SIM_SCENARIO_QUEUE_CASE_H

#include <jansson.h>

#include "sim/world/world.h"

#define CASE_BEGIN_MS INT64_C(1000000) /* when the rounds begin; all was submitted then */

enum task_status { STATUS_PENDING, STATUS_RUNNING, STATUS_RELEASING, STATUS_STUCK };
/* As the cases write them: the last one is `stuckinreleasing`. */
extern const struct words task_status_words;

/* How a task stands, as given or as expected. Tasks in groups of one name share
 * a GPU of their node; the names mean nothing else. */
struct standing {
	enum task_status status;
	const char *node; /* NULL: not said */
	const char *groups[PARTS_MAX];
	int group_count;
};

struct case_task {
	int64_t index; /* in the case's list; its number in the core is its place here */
	int64_t priority;
	int64_t reservation_id; /* 0: none to begin with */
	struct standing given, expected;
	bool is_expected;
};

struct case_job {
	struct job_record record;
	bool being_deleted;
	struct case_task *tasks; /* record.tasks of them, higher priority first */
};

struct case_node {
	struct node_record record;
	int64_t first_gpu_id, gpu_count, gpu_memory_mib;
};

/* Ids are places in the lists + 1. Texts belong to the JSON, lists to the arena. */
struct queue_case {
	const char *name;
	int64_t rounds, stable_rounds;
	struct tenant_record *tenants;
	struct case_node *nodes;
	struct case_job *jobs;
	int64_t tenant_count, node_count, gpu_count, job_count, reservation_count;
	struct arena arena;
};

/* Reads it; the JSON must live as long. False with a sentence that names the
 * field that is wrong. To be freed in any case. */
bool queue_case_read(struct queue_case *queue_case, const json_t *json, struct error *error);
void queue_case_free(struct queue_case *queue_case);

/* Puts the records of the cluster as it is before the first round. False with a
 * reason if a node does not have the GPUs that its tasks are said to run on. */
bool queue_case_records(const struct queue_case *queue_case, struct world *world,
                        struct error *error);

#endif
