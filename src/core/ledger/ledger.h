/* ledger.h - reservations: who may use how much of which GPU */
#ifndef CORE_LEDGER_LEDGER_H
#define CORE_LEDGER_LEDGER_H

#include "base/error.h"
#include "core/cluster/reservation.h"

struct index;
struct tenant;
struct tenants;

/* What reservations are accounted in: the settings, the nodes with what is free on
 * them, and the tenants that pay. Nothing else of the scheduler is visible from here
 * and from placement. The scheduler owns the parts. */
struct ledger {
	const struct config_record *config;
	struct meta_record *meta; /* the time, and the last id of a reservation */
	struct cluster *cluster;
	struct index *index;
	struct tenants *tenants;
	struct map *reservations; /* committed ones, by id */
	struct plan *plan;
};

/* The memory invariant, checked in one place: true if each part would be granted now, with
 * `reservation` (a claim, or not yet entered) not counted twice. False with the arithmetic of
 * the first part that fails. */
bool ledger_may_grant(const struct ledger *ledger, const struct reservation *reservation,
                      struct error *error);

/* True if the compute of the part's GPU may be shared with those in the view, and as much is left
 * as the part asks for. The part is not whole. False with the reason. */
bool ledger_may_share(const struct ledger *ledger, const struct part *part,
                      const struct compute_view *view, struct error *error);

/* Changes to the ledger. Each of them keeps every total equal to the sum of its parts (GPUs,
 * hosts, tenants and jobs) and updates the index. plan.c calls them, and can undo them; sched.c
 * calls them for facts. */
void ledger_enter(struct ledger *ledger, struct reservation *reservation);
void ledger_leave(struct ledger *ledger, struct reservation *reservation);
void ledger_phase(struct ledger *ledger, struct reservation *reservation, enum phase phase,
                  bool late);
/* Its GPU memory is to go to host memory: PHASE_SUSPENDING, with `copy_bytes` of host memory,
 * which must be free; see ledger_may_copy(). Or, in another phase, what it had for that. */
void ledger_copy(struct ledger *ledger, struct reservation *reservation, enum phase phase,
                 int64_t copy_bytes);
/* Of a slot that sleeps, or is to: what stays on each of its GPUs, no more than any of its parts.
 */
void ledger_residue(struct ledger *ledger, struct reservation *reservation, int64_t residue_mib);
/* True if the node has host memory for what the reservation has on GPUs, within what suspended
 * tasks may have there. False with the arithmetic. */
bool ledger_may_copy(const struct ledger *ledger, const struct reservation *reservation,
                     struct error *error);
/* Host memory for what it has on GPUs now. */
int64_t reservation_copy_bytes(const struct reservation *reservation);
/* Facts: always recorded. */
void ledger_facts(struct ledger *ledger, struct gpu *gpu, int64_t capacity_mib,
                  int64_t overhead_mib, int64_t foreign_mib);
void ledger_measure(struct ledger *ledger, struct reservation *reservation, struct gpu *gpu,
                    int64_t measured_mib);

/* What the reservation asks for, and what it counts for with its tenant: that, but for what a
 * suspended one has given back, and with the host memory for its copy. */
struct amounts reservation_asks(const struct reservation *reservation);
struct amounts reservation_amounts(const struct reservation *reservation);
/* Who pays for it, and whether it counts for what may be preempted. */
struct tenant *reservation_tenant(const struct reservation *reservation);
bool reservation_preemptible(const struct reservation *reservation);

/* Panics unless all totals equal a recount from the reservations. */
void ledger_check(const struct ledger *ledger);

#endif
