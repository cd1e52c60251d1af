/* state.h - what the parts of the core share: the inside of struct sched */
#ifndef CORE_STATE_H
#define CORE_STATE_H

#include "core/cluster/cluster.h"
#include "core/cluster/index.h"
#include "core/ledger/plan.h"
#include "core/model/replica.h"
#include "core/model/route.h"
#include "core/pass.h"
#include "core/place/applicant.h"
#include "core/place/fit.h"
#include "core/place/place.h"
#include "core/place/placement.h"
#include "core/promise/deadline.h"
#include "core/promise/margin.h"
#include "core/promise/promise.h"
#include "core/queue/job.h"
#include "core/queue/predict.h"
#include "core/queue/shape.h"
#include "core/record/effects.h"
#include "core/room/backoff.h"
#include "core/room/evict.h"
#include "core/room/room.h"
#include "core/room/rotation.h"
#include "core/sched.h"
#include "core/tenant/tenant.h"

/* Lists of things that a command changed; written as records at its end, each
 * once, in the order in which they were first changed. */
struct dirty {
	struct dirty_item {
		enum record_kind kind;
		void *what;
		int task; /* RECORD_TASK */
	} * items;
	size_t count, capacity;
};

struct sched {
	struct meta_record meta;
	struct meta_record written_meta;
	struct config_record config;
	bool config_dirty;
	struct cluster cluster;
	struct index index;
	struct ledger ledger; /* what reservations are accounted in */
	struct placement placement;
	int64_t asked_mib; /* the smallest GPU that the jobs' `asked` is based on */
	struct tenants tenants;
	struct models models;
	struct routes routes;
	struct cold_slots cold_slots;
	struct heap slot_timers;       /* slots, by timer_ms then id */
	struct map jobs, reservations; /* by id */
	struct text_map keys;          /* idempotency keys: "tenant id/key" to job */
	struct shapes shapes;
	struct predictor predictor;
	struct plan plan;
	struct pass pass;
	struct room room;
	struct rotation rotation;
	struct backoffs backoffs;
	struct heap timers;        /* jobs, by timer_ms then id */
	struct heap releases;      /* reservations that are releasing, by due_ms then id */
	struct ranktree claimants; /* jobs with claims, by id */
	struct ranktree ends;      /* running jobs with an expected end, by (end, id) */
	struct promise **promises; /* by the ids of their jobs */
	size_t promise_count, promise_capacity;
	struct margins margins;
	struct ranktree understaffed;     /* jobs below their minimum, by (when to stop them, id) */
	struct ranktree suspended;        /* suspended jobs, by (suspended_ms, id) */
	struct map trials;                /* struct trial, by id */
	struct map arrays;                /* array id -> struct array * */
	int64_t victims, movable_victims; /* jobs in the tenants' trees of victims */
	int64_t queued;                   /* jobs in the queues of their tenants */
	int64_t waiting_tasks;            /* of jobs that are not over and hold nothing */
	struct dirty dirty;
	struct effects *effects; /* of the command that is being applied */
};

static inline int64_t sched_now(const struct sched *sched) { return sched->meta.now_ms; }

/* Points the ledger and placement to their parts of this scheduler. */
void sched_connect(struct sched *sched);
/* Commits the open plan and marks what it changed for writing. */
void sched_commit(struct sched *sched);

/* Marks for writing at the end of the command. */
void sched_dirty_job(struct sched *sched, struct job *job);
void sched_dirty_task(struct sched *sched, struct job *job, int task);
void sched_dirty_reservation(struct sched *sched, struct reservation *reservation);
void sched_dirty_node(struct sched *sched, struct node *node);
void sched_dirty_gpu(struct sched *sched, struct gpu *gpu);
/* Already out of the ledger: its record is deleted and its memory freed at the end. */
void sched_gone_reservation(struct sched *sched, struct reservation *reservation);

/* Takes them out of the cluster and deletes their records. Nothing may be on them. */
void sched_forget_gpu(struct sched *sched, struct gpu *gpu);
void sched_forget_node(struct sched *sched, struct node *node);
/* Writes all that is marked, at the end of a command. */
void sched_flush(struct sched *sched);

/* Fills in number and time and appends it. */
void sched_event(struct sched *sched, struct event event);
/* Gives it an id and a time and appends it. */
void sched_decide(struct sched *sched, struct decision_record *decision);

void sched_dirty_tenant(struct sched *sched, struct tenant *tenant);

/* Totals of the cluster, recounted if they are outdated. */
const struct cluster *sched_totals(struct sched *sched);
/* Makes slots, totals and the index right, if they are not. */
void sched_prepare(struct sched *sched);
/* After nodes, GPUs, models or labels changed: totals, and where `structure`
 * also slots and index, are not right any more. */
void sched_cluster_changed(struct sched *sched, bool structure);

/* Tells, once, that a GPU has more on it than it has room for, or not any more. To
 * be called after everything that may change that. */
void node_report_over(struct sched *sched, struct gpu *gpu);
/* Commands about nodes; see node_report.c. */
bool node_report_apply(struct sched *sched, const struct node_report_command *report,
                       struct error *error);
bool node_report_gpu(struct sched *sched, const struct gpu_report_command *report,
                     struct error *error);
bool node_report_state(struct sched *sched, const char *name, enum node_state state,
                       struct error *error);
/* What is known of nodes beside their reports; see facts.c. */
bool facts_apply(struct sched *sched, const struct node_facts_command *facts, struct error *error);
bool node_class_apply(struct sched *sched, const char *name, const char *nodes,
                      struct error *error);
bool guest_put(struct sched *sched, const struct guest_command *command, struct error *error);
bool guest_remove(struct sched *sched, const char *name, struct error *error);
struct guest *guest_load(struct sched *sched, const struct guest_record *record);
/* Takes all guests off a node that goes. */
void guests_leave(struct sched *sched, struct node *node);
/* The clock was wrong and goes to `to_ms`, forward or back. Durations, ages and what is due
 * stay as they are; requests end, and expected starts are made again. `clamp`, back only: the
 * clock was right before it ran ahead, so times up to `to_ms` are true and stay. */
bool clock_move(struct sched *sched, int64_t to_ms, bool clamp, struct error *error);
/* Windows; see windows.c. */
bool windows_put(struct sched *sched, const struct window_command *command, struct error *error);
bool windows_delete(struct sched *sched, int64_t id, struct error *error);
void windows_time_passed(struct sched *sched);
bool windows_load(struct sched *sched, const struct window_record *record);
bool node_report_drain(struct sched *sched, const char *name, bool draining, const char *reason,
                       struct error *error);
bool node_report_dead(struct sched *sched, const char *name, struct error *error);
bool node_report_remove(struct sched *sched, const char *name, struct error *error);

#endif
