/* reservation.h - the right to use memory of GPUs, and who has it */
#ifndef CORE_CLUSTER_RESERVATION_H
#define CORE_CLUSTER_RESERVATION_H

#include "core/cluster/cluster.h"
#include "core/record/types.h"

struct job;
struct slot;

/* A share of one GPU. `whole`: nothing else may be on that GPU. `compute`: thousandths of its
 * compute, for a task of tenant `sharer`; 0: it takes turns with others. */
struct part {
	struct gpu *gpu;
	int64_t mib, share, measured_mib;
	bool whole;
	int32_t compute;
	int64_t sharer;
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
	bool away;              /* what it has on GPUs is in host memory, or gone */
	bool dirty, gone;       /* to be written; to be deleted at the end of the command */
	bool entered, recorded; /* in the ledger; in the store */
	bool leaving; /* leaves the ledger with the current command: nobody looks until then */
	int64_t cpu_milli, host_bytes, since_ms;
	int64_t copy_bytes; /* host memory for its GPU memory, beside host_bytes */
	/* As in reservation_record. */
	int64_t counted_ms, started_ms, run_id, saved_ms, ended_ms;
	enum run_ending ending; /* known before it ends, or RUN_GOES_ON */
	bool measured;          /* its node said what the run used: */
	int64_t exit_code, peak_mib, energy_mj;
	int64_t due_ms;    /* PHASE_RELEASING, PHASE_SUSPENDING: when it is late; INT64_MAX */
	int32_t due_index; /* in the heap of those */
	int part_count;
	struct part parts[];
};

/* Whether it counts for its tenant beyond its host memory: it is not on its way out, and not
 * suspended. */
static inline bool reservation_is_billed(const struct reservation *reservation)
{
	return reservation->phase != PHASE_RELEASING && reservation->phase != PHASE_SUSPENDING &&
	       reservation->phase != PHASE_SUSPENDED;
}

#endif
