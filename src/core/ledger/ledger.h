/* ledger.h - reservations: who may use how much of which GPU */
#ifndef CORE_LEDGER_LEDGER_H
#define CORE_LEDGER_LEDGER_H

#include "base/error.h"
#include "core/cluster/reservation.h"

struct sched;
struct tenant;

/* The memory invariant, checked in one place: true if each part would be granted now, with
 * `reservation` (a claim, or not yet entered) not counted twice. False with the arithmetic of
 * the first part that fails. */
bool ledger_may_grant(const struct sched *sched, const struct reservation *reservation,
                      struct error *error);

/* Changes to the ledger. Each of them keeps every total equal to the sum of its parts (GPUs,
 * hosts, tenants and jobs) and updates the index. plan.c calls them, and can undo them; sched.c
 * calls them for facts. */
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

/* Panics unless all totals equal a recount from the reservations. */
void ledger_check(const struct sched *sched);

#endif
