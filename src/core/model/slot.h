/* slot.h - one loaded instance of a model, from its reservation to the end */
#ifndef CORE_MODEL_SLOT_H
#define CORE_MODEL_SLOT_H

#include "core/model/model.h"

struct request_entry;

/* A slot is made with its reservation, in a plan or for one that a node has,
 * and ends with it; both have one id. State and phase go together:
 *     waiting   claim
 *     placed    held
 *     loading   held, or live once the node says that it has begun
 *     ready     live
 *     stopping  releasing
 *     sleeping  suspending
 *     asleep    suspended
 *     waking    waking (a claim), or resuming once its node was told
 * A slot that is asleep has its residue on its GPUs and its copy on the host. It wakes on those
 * GPUs alone, or is stopped. Of all slots on a GPU `loads_per_gpu` at a time are told to load, and
 * those that are overdue do not count: their load takes longer than loads of their model did. A
 * slot on a node that is drained takes no more requests, and stops when it has none. `active` is
 * the number of requests in flight there, at most `r.concurrency`, and 0 unless it is ready. */
struct slot {
	struct slot_record r;
	struct model *model;
	struct reservation *reservation;
	char *address; /* what r.address points to */
	int64_t active;
	struct request_entry *leases; /* requests in flight here, in no order that decides */
	int32_t open_index;           /* in its model's heap of slots with a place; -1 */
	int32_t timer_index;          /* in sched.slot_timers; -1 */
	bool claims;                  /* in models.claimants */
	bool sleeps;                  /* in models.asleep, under slept_key */
	int64_t slept_key;
	int64_t timer_ms;    /* loading: when that takes too long; ready: when it may be
	                        cold; INT64_MAX */
	bool routable;       /* ready and not closed, on a node that is online, has
	                        reported and is not drained */
	bool leaving;        /* counted in its model's `leaving` */
	int32_t rival_index; /* in its node's list of rivals; -1 */
	bool cold;           /* ready and idle beyond its time to live */
	bool listed;         /* among the slots that may be evicted; see evict.h */
	int64_t cold_key;    /* its key there */
	int64_t reload_ms;   /* what loading it again takes, while it is listed */
	bool linked;         /* known by id and by its model: not while it is planned */
	bool dirty, recorded, gone;
};

/* Makes a slot for a reservation that is being made, without a place in any
 * list: called by plan.c alone. */
struct slot *slot_new(struct model *model, struct reservation *reservation);
void slot_free(struct slot *slot);

/* Puts it among its model's slots and those known by id. */
void slot_link(struct sched *sched, struct slot *slot);
/* After a committed plan: the slot is known, and loads as soon as it may. */
void slot_begins(struct sched *sched, struct slot *slot);
/* Its claim has become a right, in a committed plan. */
void slot_granted(struct sched *sched, struct slot *slot);
/* Tells its node to stop it; its requests are tried elsewhere; it counts until
 * the memory is back. What no node was told of yet is gone at once. `released`:
 * its reservation is releasing already, by a committed plan. */
void slot_stop(struct sched *sched, struct slot *slot, bool released);
/* A claim is given up. */
void slot_drop(struct sched *sched, struct slot *slot);
/* It takes no more requests, and may go for that model alone once it has none. */
void slot_close(struct sched *sched, struct slot *slot, const struct model *model);
/* It takes no more requests, and stops when it has none. */
void slot_evict(struct sched *sched, struct slot *slot);
/* It takes requests again. */
void slot_open(struct sched *sched, struct slot *slot);
/* It is not there any more, or its node is given up: requests are tried
 * elsewhere, its memory is free. */
void slot_vanished(struct sched *sched, struct slot *slot);

/* Whether it may go to sleep instead of being stopped; and what would stay on each of its GPUs. */
bool slot_may_sleep(const struct slot *slot);
int64_t slot_residue_mib(const struct slot *slot);
/* After a committed plan_suspend(), and plan_wake() or plan_resume(): states, orders, events. */
void slot_sleeps(struct sched *sched, struct slot *slot);
void slot_wakes(struct sched *sched, struct slot *slot);
/* It claims its GPUs no more. */
void slot_sleeps_on(struct sched *sched, struct slot *slot);
/* The order to sleep or to wake again, for a node that may have missed it. */
void slot_order_move(struct sched *sched, const struct slot *slot);

/* What the node tells of one that was to sleep or to wake: that it is done, in `took_ms`, with
 * what it has now; or that it could not be, and all is as before. */
struct slot_moved {
	bool done;
	int64_t took_ms;
	int64_t residue_mib; /* the most on one GPU; -1: not measured */
	int64_t host_bytes;  /* beside what it had; 0: not measured */
	const char *message;
};
bool slot_slept(struct sched *sched, struct slot *slot, const struct slot_moved *moved,
                struct error *error);
bool slot_woke(struct sched *sched, struct slot *slot, const struct slot_moved *moved,
               struct error *error);

/* What nodes tell. */
bool slot_loading(struct sched *sched, struct slot *slot, struct error *error);
bool slot_ready(struct sched *sched, struct slot *slot, const char *address, struct error *error);
bool slot_exited(struct sched *sched, struct slot *slot, const char *message, bool released,
                 struct error *error);
bool slot_released(struct sched *sched, struct slot *slot, struct error *error);

/* Loads what may be loaded on the node, if that can be reached: of several on one
 * GPU the oldest first, and the next when that is ready, overdue or gone. */
void slot_load_next(struct sched *sched, struct node *node);
/* It is coming or ready. */
static inline bool slot_counts(const struct slot *slot)
{
	return slot->r.state != SLOT_STOPPING && slot->r.state != SLOT_SLEEPING &&
	       slot->r.state != SLOT_ASLEEP;
}
/* A load that is not overdue: others wait for it. */
static inline bool slot_holds_up(const struct slot *slot)
{
	return slot->r.state == SLOT_LOADING && slot->r.overdue_ms > 0;
}
/* Begins the time that its load may take before it is overdue. */
void slot_expect_load(struct sched *sched, struct slot *slot);
/* The order again, for a node that may have missed it. */
void slot_order_load(struct sched *sched, const struct slot *slot);
/* A node came, went silent or reported: which of its slots can be used. */
void slot_node_changed(struct sched *sched, struct node *node);
/* Stops those that have no requests, of an evicted model or on a node that is drained. */
void slot_stop_drained(struct sched *sched, struct node *node);
/* Brings its places in lists and its timer up to date, after everything that
 * may change these. */
void slot_settle(struct sched *sched, struct slot *slot);
/* Time alone changed something: a load is overdue or takes too long, or it is cold now. */
void slot_timer(struct sched *sched, struct slot *slot);

/* A slot that a node reports. One that is known is what the node says it is;
 * one that is not is adopted if it matches a model that is not removed: the
 * node's GPUs that measurements name for it are a split that the model allows,
 * nobody was given one of them whole, and it is ready or none is being loaded onto.
 * False if it is unknown and does not match: it is to be stopped, and counts as
 * foreign until it is gone. */
bool slot_reported(struct sched *sched, struct node *node, const struct slot_report *slot,
                   const struct node_report_command *report);

void sched_dirty_slot(struct sched *sched, struct slot *slot);

/* For loading: first the slot, then its reservation, which makes it whole. */
bool slot_load(struct sched *sched, const struct slot_record *record, struct error *error);
bool slot_load_reservation(struct sched *sched, const struct reservation_record *record,
                           struct error *error);
/* After all: lists and timers. */
void slots_loaded(struct sched *sched);
/* Panics unless counts, lists and heaps equal a recount. */
void slots_check(const struct sched *sched);

#endif
