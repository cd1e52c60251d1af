/* ledger.h - the books: who may use how much of which GPU */
#ifndef CORE_LEDGER_H
#define CORE_LEDGER_H

#include "base/error.h"
#include "core/cluster.h"
#include "core/types.h"

struct job;
struct model;
struct sched;
struct slot;
struct tenant;

/* A share of one GPU. `whole`: nothing else may be on that GPU. */
struct part {
	struct gpu *gpu;
	int64_t mib, share, measured_mib;
	bool whole;
};

/* The only right to GPU memory. Fixed when it is made, but for its phase and
 * what is measured. Its parts are on distinct GPUs of one node. Its owner is a
 * task of a job or a slot of a model: exactly one of `job` and `slot` is set. */
struct reservation {
	int64_t id;
	struct job *job;
	int task;
	struct slot *slot;
	struct node *node;
	enum phase phase;
	bool late, requeue;
	bool dirty, gone;       /* to be written; to be deleted at the end of the command */
	bool entered, recorded; /* in the books; in the store */
	bool leaving; /* leaves the books with this very command: nobody looks until then */
	int64_t cpu_milli, host_bytes, since_ms;
	int64_t counted_ms, started_ms, run_id; /* as in reservation_record */
	enum run_ending ending;                 /* known before it ends, or RUN_GOES_ON */
	bool measured;                          /* its node said what the run used: */
	int64_t exit_code, peak_mib, energy_mj;
	int64_t due_ms;    /* PHASE_RELEASING: when it is late; INT64_MAX */
	int32_t due_place; /* in the heap of those */
	int part_count;
	struct part parts[];
};

/* The law, checked in one place: whether each part would be granted now, with
 * `reservation` (a claim, or not in the books yet) not counted twice. False
 * with the arithmetic of the first part that fails. */
bool ledger_may_grant(const struct sched *sched, const struct reservation *reservation,
                      struct error *error);

/* Changes to the books. All of them keep every total equal to the sum of its
 * parts: of GPUs, hosts, tenants and jobs; and tell the index. They are called
 * by plan.c, which can undo them, and by sched.c for facts. */
void ledger_enter(struct sched *sched, struct reservation *reservation);
void ledger_leave(struct sched *sched, struct reservation *reservation);
void ledger_phase(struct sched *sched, struct reservation *reservation, enum phase phase,
                  bool late);
/* Facts: always recorded. */
void ledger_facts(struct sched *sched, struct gpu *gpu, int64_t capacity_mib, int64_t overhead_mib,
                  int64_t foreign_mib);
void ledger_measure(struct sched *sched, struct reservation *reservation, struct gpu *gpu,
                    int64_t measured_mib);

/* What the reservation counts for with its tenant. */
struct amounts reservation_amounts(const struct reservation *reservation);
/* Who pays for it, and whether it counts for what may be preempted. */
struct tenant *reservation_tenant(const struct reservation *reservation);
bool reservation_preemptible(const struct reservation *reservation);

/* Availability. 'now': free at this moment; 'later': free once everything that
 * is releasing in time is back and all claims are served. A newcomer needs
 * both, a claim needs 'later' alone. */
static inline int64_t gpu_free_now(const struct gpu *gpu)
{
	return gpu->r.capacity_mib - gpu->r.overhead_mib - gpu->r.foreign_mib - gpu->books.used_mib;
}
static inline int64_t gpu_free_later(const struct gpu *gpu)
{
	return gpu_free_now(gpu) + gpu->books.releasing_mib - gpu->books.claimed_mib;
}
static inline bool gpu_empty_now(const struct gpu *gpu)
{
	return gpu->books.owners == 0 && gpu->books.claims == 0;
}
static inline bool gpu_empty_later(const struct gpu *gpu)
{
	return gpu->books.owners == gpu->books.releasing_owners && gpu->books.claims == 0;
}
static inline bool gpu_shareable_now(const struct gpu *gpu)
{
	return gpu->books.whole_owners == 0 && gpu->books.whole_claims == 0;
}
/* A GPU given whole can be shared later only when that owner is leaving. */
static inline bool gpu_shareable_later(const struct gpu *gpu)
{
	return gpu->books.whole_owners == gpu->books.whole_releasing &&
	       gpu->books.whole_claims == 0;
}
/* Thousandths of its memory that a newcomer can have, rounded down. */
static inline int32_t gpu_free_milli(const struct gpu *gpu)
{
	int64_t usable = gpu_usable_mib(gpu);
	int64_t free_mib = min64(gpu_free_now(gpu), gpu_free_later(gpu));

	if (usable == 0 || free_mib <= 0 || !gpu_shareable_now(gpu))
		return 0;
	return (int32_t)(free_mib >= usable ? WHOLE_GPU : free_mib * WHOLE_GPU / usable);
}

static inline int64_t host_free_now(const struct host_books *books, int64_t total)
{
	return total - books->used;
}
static inline int64_t host_free_later(const struct host_books *books, int64_t total)
{
	return total - books->used + books->releasing - books->claimed;
}

/* Panics unless all books equal a recount from the reservations. */
void ledger_check(const struct sched *sched);

#endif
