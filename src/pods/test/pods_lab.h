/* pods_lab.h - pods in a test: objects of an API server in few words, and what came of them */
#ifndef PODS_TEST_PODS_LAB_H
#define PODS_TEST_PODS_LAB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "pods/pods.h"

enum { LAB_COMMANDS = 256, LAB_WRITES = 256, LAB_TENANTS = 8 };

struct lab_command {
	enum command_kind kind;
	int64_t id; /* of a job, or a reservation */
	int64_t tasks, least;
	int64_t exit_code;
	int64_t priority, tenant_id;
	bool finished, preemptible;
};

struct lab_write {
	enum write_kind kind;
	char pod[64];
	char body[2048];
};

/* The core takes in whatever it is told; what it orders, and what it ends, the test says. */
struct lab {
	struct pods *pods;
	int64_t now_ms, last_job;
	struct lab_command commands[LAB_COMMANDS];
	int command_count;
	struct lab_write writes[LAB_WRITES];
	int write_count;
	int64_t tickets[LAB_COMMANDS];
	char keys[LAB_COMMANDS][300]; /* of jobs, by ticket */
	int ticket_count;
	struct tenant_record tenants[LAB_TENANTS]; /* with ids from 2 on; "everyone" has 1 */
	char tenant_names[LAB_TENANTS][64];
	int tenant_count;
};

/* A scheduler that has just started, beside one node of 8 GPUs. */
struct lab *lab_new(void);
/* The scheduler restarts: it knows nothing but what it is told. */
void lab_restart(struct lab *lab);
void lab_begin(struct lab *lab);
void lab_free(struct lab *lab);
json_t *lab_json(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Tells of the pod, and gives it back. */
void lab_pod(struct lab *lab, enum reflector_event event, json_t *object);
/* A pod with a GPU in the group "g" of `size`. `node` and `phase` may be ""; `job` as in its
 * annotation. */
json_t *lab_member(const char *name, int size, const char *node, const char *phase,
                   const char *job);
/* Time passes, everything is written with success, and the core takes in what it was told. */
void lab_round(struct lab *lab, int64_t ms);
/* The core starts a task of the last job. */
void lab_start(struct lab *lab, int64_t job_id, int64_t task, int64_t reservation_id);
void lab_stop(struct lab *lab, int64_t job_id, int64_t task, int64_t reservation_id);
/* How many commands of that kind there were, about `id` (0: any); and the last one. */
int lab_count(const struct lab *lab, enum command_kind kind, int64_t id);
const struct lab_command *lab_last(const struct lab *lab, enum command_kind kind);
int lab_written(const struct lab *lab, enum write_kind kind, const char *pod);

#endif
