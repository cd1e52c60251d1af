/* why.h - explains the state of a job, by the same checks that decided */
#ifndef CORE_WHY_WHY_H
#define CORE_WHY_WHY_H

#include "base/buffer.h"
#include "core/place/place.h"
#include "core/queue/job.h"

enum wait_reason {
	WAIT_NOTHING, /* it does not wait */
	WAIT_HELD,
	WAIT_DEPENDENCY,
	WAIT_BACKOFF,
	WAIT_ARRAY,
	WAIT_BOUND,       /* a limit, a quota or a budget */
	WAIT_RELEASE,     /* its claim waits for memory that is being freed */
	WAIT_OWN_RELEASE, /* it was stopped and its own memory is not back yet */
	WAIT_PROMISE,     /* it has an expected start */
	WAIT_ROOM,        /* no GPU, or not enough GPUs of one node, fit */
	WAIT_PASS,        /* it would fit: the next pass starts it */
};

struct why {
	enum wait_reason reason;
	int64_t position, tenant_position; /* waiting jobs before it: of all, and of its tenant */
	int64_t expected_start_ms;         /* 0: unknown */
	int64_t expected_ms, confidence;
	struct bound bound; /* WAIT_BOUND */
	int refusal_count;  /* WAIT_PROMISE, WAIT_ROOM */
	int64_t refusals[CHECK_REASONS][REFUSAL_WIDTH];
	int64_t fit;         /* the same: tasks, or GPUs of a split job, that would fit now */
	int64_t nearest_gpu; /* id of the GPU that was least short of memory; 0 */
};

/* The state of the job's wait, computed now. */
void why_job(struct sched *sched, struct job *job, struct why *why);
/* Prints the explanation as sentences, one per line. `viewer` is the tenant that asks (0: an
 * administrator): the work of others is named only as 'another tenant'. */
void why_print(struct sched *sched, struct job *job, int64_t viewer, struct buffer *buffer);
/* Prints what a job that is not submitted would wait for, as sentences without its id. */
void why_print_wait(struct sched *sched, const struct job *job, const struct why *why,
                    int64_t viewer, struct buffer *buffer);
/* A recorded decision, as sentences with its arithmetic, one per line. */
void why_print_decision(struct sched *sched, const struct decision_record *decision, int64_t viewer,
                        struct buffer *buffer);
/* How a waiting job would be decided about now: a line per step, under the tags
 * that operators look for. Names nobody's work but its own. */
void why_trace(struct sched *sched, struct job *job, struct buffer *buffer);

/* Says why the node does not take the job's next tasks, apart from its GPUs. False if the job does
 * not wait in the queue. */
bool why_node(struct sched *sched, struct job *job, const struct node *node, node_refusal_say *say,
              void *context);

/* How many waiting jobs, of all tenants and of its own, go before a waiting job. */
void why_position(struct sched *sched, struct job *job, int64_t *position,
                  int64_t *tenant_position);

#endif
