/* plan.h - tentative changes to the real ledger, committed or undone as a whole */
#ifndef CORE_LEDGER_PLAN_H
#define CORE_LEDGER_PLAN_H

#include "core/ledger/ledger.h"

struct job;
struct model;
struct slot;

/* Changes are made in the ledger at once and remembered, so that 'what if' and 'do it' are the
 * same code. One plan is open at a time. Nothing leaves the core before plan_commit; after
 * plan_rollback the ledger, the index and all versions are as before. */
enum step_kind { STEP_ENTER, STEP_LEAVE, STEP_PHASE };
struct plan_step {
	enum step_kind kind;
	struct reservation *reservation;
	enum phase phase; /* before */
	bool late;
	int64_t since_ms, copy_bytes, residue_mib;
	uint64_t version;      /* of the node, before */
	uint64_t free_version; /* of the index, before */
};

struct plan {
	struct plan_step *steps;
	size_t count, capacity;
	bool open;
	bool undoing;   /* the index is put right by plan.c, not by ledger.c */
	bool unlimited; /* limits of tenants are left aside: to see what fits at all */
};

void plan_begin(struct ledger *ledger);
/* A point to roll back to. */
size_t plan_mark(const struct ledger *ledger);

/* Makes a reservation in PHASE_GRANTED, or in PHASE_CLAIM, for a task that has
 * none of that kind. A right is checked against the memory invariant, a claim against what
 * will be free later, both against the limits of the tenant and its ancestors. NULL with a reason
 * if refused. */
struct reservation *plan_reserve(struct ledger *ledger, struct job *job, int task,
                                 struct node *node, enum phase phase, const struct part *parts,
                                 int part_count, struct error *error);
/* Like plan_reserve(), for a new slot of a model, which it creates. */
struct slot *plan_reserve_slot(struct ledger *ledger, struct model *model, struct node *node,
                               enum phase phase, const struct part *parts, int part_count,
                               struct error *error);
/* Turns a claim into a right, if the memory invariant permits. */
bool plan_grant(struct ledger *ledger, struct reservation *claim, struct error *error);
/* What is held or live, or a slot that is asleep, is told to stop: it counts until its memory is
 * back. */
void plan_release(struct ledger *ledger, struct reservation *reservation);
/* Like plan_release(), but its GPU memory goes to host memory, which counts from here on, and of a
 * slot the residue stays. False
 * with a reason, and nothing changed, if there is too little of that. */
bool plan_suspend(struct ledger *ledger, struct reservation *reservation, struct error *error);
/* What is suspended claims its GPUs, or gets them as soon as the memory invariant permits. */
bool plan_wake(struct ledger *ledger, struct reservation *reservation, struct error *error);
bool plan_resume(struct ledger *ledger, struct reservation *reservation, struct error *error);
/* Takes back plan_release() or plan_suspend() of this plan, where others have not taken its room:
 * false, and nothing changed, if they have. */
bool plan_keep(struct ledger *ledger, struct reservation *reservation);
/* A claim is given up. */
void plan_drop(struct ledger *ledger, struct reservation *claim);

void plan_rollback(struct ledger *ledger, size_t mark);
/* Rolls back everything and closes. */
void plan_abandon(struct ledger *ledger);
/* Keeps everything and closes; the steps stay readable until the next plan_begin.
 * sched_commit() of state.h also marks what was changed for writing. */
void plan_commit(struct ledger *ledger);

#endif
