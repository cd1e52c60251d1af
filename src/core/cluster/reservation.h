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
	int64_t copy_bytes;  /* host memory for its GPU memory, beside host_bytes */
	int64_t residue_mib; /* of a slot that sleeps: stays on each of its GPUs; 0 for a task */
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

/* What it has on the GPU of one of its parts now, or is to give back there. */
static inline int64_t reservation_held_mib(const struct reservation *reservation,
                                           const struct part *part)
{
	return max64(reservation->away ? reservation->residue_mib : part->mib, part->measured_mib);
}
/* What it needs there beside that to wake; no part is less than the residue. */
static inline int64_t reservation_missing_mib(const struct reservation *reservation,
                                              const struct part *part)
{
	return part->mib - (reservation->away ? reservation->residue_mib : 0);
}

/* Whether it counts for its tenant beyond its host memory: it is not on its way out, and not
 * suspended. */
static inline bool reservation_is_billed(const struct reservation *reservation)
{
	return reservation->phase != PHASE_RELEASING && reservation->phase != PHASE_SUSPENDING &&
	       reservation->phase != PHASE_SUSPENDED;
}

#endif
