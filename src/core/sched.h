/* sched.h - the scheduler: one entrance, a deterministic state machine */
#ifndef CORE_SCHED_H
#define CORE_SCHED_H

#include "core/record/command.h"
#include "core/record/effects.h"
#include "core/record/record.h"

struct sched;

/* A scheduler with default settings and an empty cluster. */
struct sched *sched_new(void);
void sched_free(struct sched *sched);

/* The one entrance. Applies the command at the later of its time and the last
 * command's, and appends what follows from it to `effects`. A command that
 * cannot be applied changes nothing, appends nothing and returns false with the
 * reason. The same commands give the same effects, byte for byte. */
bool sched_apply(struct sched *sched, const struct command *command, struct effects *effects,
                 struct error *error);

/* Whether all of these would be taken in, in this order, if they were submitted at that
 * time and nothing else happened before; each is told what became of it. Changes nothing.
 * Some that make fewer jobs wait than they have may be refused for want of room. */
struct submit_trial {
	const struct submit_command *submit;
	struct error *error; /* filled where it is not taken */
	bool taken;
	int64_t adds;  /* jobs that it would make; 0: none, or it repeats one that is known */
	int64_t tasks; /* of each of them */
};
bool sched_takes_all(struct sched *sched, struct submit_trial *trials, size_t count,
                     int64_t now_ms);

/* What would become of a submission: whether it would start, when, and where. */
enum forecast_kind {
	FORECAST_NOW,     /* at the next pass */
	FORECAST_LATER,   /* at `start_ms` at the earliest, if running jobs end as expected */
	FORECAST_WAITS,   /* nobody can tell when: see `reasons` */
	FORECAST_NEVER,   /* the nodes that there are could never run it */
	FORECAST_REPEATS, /* it is a job that is known already: `job_id` */
};
extern const struct words forecast_kind_words;
#define FORECAST_GPUS_MAX 64
struct submit_forecast {
	enum forecast_kind kind;
	int64_t job_id;                    /* FORECAST_REPEATS */
	int64_t start_ms;                  /* NOW, LATER; 0: unknown */
	int64_t position, tenant_position; /* waiting jobs ahead of it: all, and its tenant's */
	bool queued;                       /* it would be in the queue: the positions count */
	bool may_preempt;                  /* its tenant may stop others for it */
	int64_t expected_ms, p90_ms, confidence;
	int64_t deadline_ms;   /* 0: it has none */
	int64_t deadline_risk; /* thousandths: the chance to miss it; 0: unknown */
	bool at_risk;          /* that is as much as is told */
	int64_t count;         /* jobs of its array, of which this is the first; or 1 */
	int64_t node_ids[FORECAST_GPUS_MAX];
	int64_t gpu_ids[FORECAST_GPUS_MAX]; /* 0: the task has none */
	int place_count;                    /* GPUs, or tasks without one; the first of them */
	int64_t places;                     /* all of them */
};
/* As if it were submitted at that time, with nothing else happening before. Changes nothing that
 * decides. False with the reason for which it would be refused. `reasons` gets sentences, one per
 * line, for what is neither started nor repeated; `viewer` as below. */
bool sched_forecast(struct sched *sched, const struct submit_command *submit, int64_t now_ms,
                    int64_t viewer, struct submit_forecast *forecast, struct buffer *reasons,
                    struct error *error);

/* Proposes a quota of GPUs for each tenant: see quota_propose(). To be freed with free(). */
struct quota_proposal;
struct quota_proposal *sched_propose_quotas(struct sched *sched, int64_t now_ms, size_t *count);

/* Loading: begin with a new scheduler, give it every record once, in the order
 * of enum record_kind, then end. The result behaves exactly like the scheduler that
 * wrote the records. False with a reason if the records contradict each other. */
bool sched_load(struct sched *sched, enum record_kind kind, const void *record,
                struct error *error);
bool sched_load_end(struct sched *sched, struct error *error);

/* Panics unless the ledger and all indexes equal a recount from scratch. */
void sched_check(const struct sched *sched);

/* What is volatile, for those who watch: requests in flight and waiting, of a
 * model and of one of its slots. False if there is no such thing. */
struct model_load {
	int64_t active, waiting, places;         /* places: in all slots that can be used */
	int64_t ready, coming, stopping, asleep; /* slots */
};
bool sched_model_load(const struct sched *sched, int64_t model_id, struct model_load *load);
bool sched_slot_active(const struct sched *sched, int64_t slot_id, int64_t *active);

/* True if a job or a request to a model waits for room. */
bool sched_has_waiting(const struct sched *sched);

/* Reading. Pointers are valid until the next command. */
const struct meta_record *sched_meta(const struct sched *sched);
const struct config_record *sched_config(const struct sched *sched);

/* Explanations, appended to `buffer` as sentences, one per line. They change
 * nothing that decides. `viewer` is the tenant that asks (0: an administrator):
 * the work of others is named only as 'another tenant'. */

/* What a job waits for and until when, or where it is. False if it is not known. */
bool sched_why(struct sched *sched, int64_t job_id, int64_t viewer, struct buffer *buffer,
               struct error *error);
/* What a model has, what it wants, and what it waits for. False if it is not known. */
bool sched_why_model(struct sched *sched, int64_t model_id, int64_t viewer, struct buffer *buffer,
                     struct error *error);
/* Says all reasons why a node does not take the next tasks of a waiting job, apart from its GPUs.
 * False if the job or the node is not known, or the job does not wait. */
bool sched_why_node(struct sched *sched, int64_t job_id, const char *node, node_refusal_say *say,
                    void *context, struct error *error);
/* The steps by which a waiting job would be decided about now, under the tags
 * that operators look for. */
bool sched_trace(struct sched *sched, int64_t job_id, struct buffer *buffer, struct error *error);
/* A recorded decision with its arithmetic. False if it is not for the viewer to see. */
bool sched_explain(struct sched *sched, const struct decision_record *decision, int64_t viewer,
                   struct buffer *buffer);
/* How many waiting jobs, of all and of its own tenant, go before a waiting job.
 * False if it is not known or not in the queue. */
bool sched_position(struct sched *sched, int64_t job_id, int64_t *position,
                    int64_t *tenant_position, struct error *error);

/* The position of a waiting job, with its promised start (0: none). */
struct wait_figures {
	int64_t position, tenant_position, expected_start_ms;
};
bool sched_wait(struct sched *sched, int64_t job_id, struct wait_figures *wait,
                struct error *error);

/* What a tenant holds with all below it, what it has a right to, and what it used until
 * now. False if it is not known. */
struct tenant_figures {
	struct amounts allocated;
	int64_t fair[FAIR_KINDS]; /* its fair share at the last pass */
	int64_t waiting_jobs;
	int64_t gpu_ms;           /* thousandths of GPUs x ms, ever */
	int64_t cost, month_cost; /* millionths of the currency: ever, and this month */
};
bool sched_tenant_figures(const struct sched *sched, int64_t tenant_id,
                          struct tenant_figures *figures);

#endif
