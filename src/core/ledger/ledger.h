/* ledger.h - the books: who may use how much of which GPU */
#ifndef CORE_LEDGER_LEDGER_H
#define CORE_LEDGER_LEDGER_H

#include "base/error.h"
#include "core/cluster/reservation.h"

struct sched;
struct tenant;

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

/* Panics unless all books equal a recount from the reservations. */
void ledger_check(const struct sched *sched);

#endif
