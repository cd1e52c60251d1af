/* local.h - the inside of a node: what its files share, and nobody else includes */
#ifndef NODE_LOCAL_H
#define NODE_LOCAL_H

#include "node/node.h"

/* A task or slot that the node has, under one reservation. What must survive a
 * restart is in `kept`; the rest is found again, or belongs to a connection. */
struct work {
	struct kept_work kept;
	struct node_order order;
	struct arena arena; /* where the texts and lists of both are */
	/* Of this connection. */
	int64_t order_number;   /* WORK_WAITING: of its order */
	int64_t asked_ms;       /* WORK_WAITING: since when */
	int64_t asked;          /* WORK_WAITING: the measurement that it is checked by */
	bool told;              /* as running, by a snapshot */
	int64_t release_change; /* the change that told of its release; 0: not told */
	int64_t move_change; /* the last one that told that its memory could not be moved; 0: none
	                      */
	int64_t move_connection;
	/* Of this life of the agent. */
	int64_t asked_away;  /* kept.memory: the measurement that can show its memory as gone, or
	                        that there is room for it to come; 0: none is waited for */
	int64_t asked_leave; /* the measurement that shows whether there is host memory for all that
	                      * is to leave; 0: it leaves already, or does not */
	int64_t moved_ms; /* kept.memory: its agent said that it left, or was told to let it come */
	int64_t asked_gone; /* kept.gone: the measurement that can show its memory as back */
	int64_t clear_ms;   /* nothing of what is left is charged to it, since then; 0: it is */
	int64_t back_ms;    /* WORK_BACK: since when */
	int64_t next_kill_ms, next_late_ms; /* INT64_MAX: never */
	int64_t changed_ms;                 /* it was last told that its limit was changed */
	int64_t over_ms;                    /* uses too much since then; 0: it does not */
	int64_t busy_ms;                    /* one of its GPUs was in use then */
	int64_t crowded_ms;    /* others had memory of its reservation then; 0: never */
	struct buffer crowded; /* how much */
	int64_t judged_by;     /* its end is told when this measurement says why; 0: at once */
	int64_t failures;      /* by its guard, as last read; negative: not known */
	int64_t failed;        /* of these, those that nobody was told of yet; */
	int64_t failed_mib, failed_ms, failed_part; /* the last of them, as in the reading */
	int64_t read_ms;                            /* its guard was last read then */
	int64_t failed_told_ms, blamed_ms; /* it was last told of its own, and of others' */
	int64_t imports;                   /* by its guard, as last read */
	int64_t excess_ms;       /* it was last measured to use more than its part then; 0: never */
	int64_t excess_mib;      /* so much more, */
	const char *excess_uuid; /* on this GPU */
	bool idle_told, unguarded_told;
	bool guarded;         /* its guard was read in this life */
	int64_t written_ms;   /* what it uses was last written then */
	int64_t active;       /* requests in flight in a slot */
	int64_t copied_bytes; /* host memory that its GPU memory took, as measured; 0: not known */
	int64_t unhealthy;    /* checks that failed in a row */
	size_t first_use;     /* in measure.uses, counted from 1; 0: none */
};

/* Foreign memory that no process explains and that came while works were there. `mib` has been
 * there for a while: a shorter rise is a process that is about to be listed, or one that has just
 * ended. */
struct unclaimed {
	int64_t mib;
	int64_t least_mib, since_ms; /* the least since then, which it becomes next */
	int64_t told_mib;            /* works were told of so much */
};

/* A GPU as last measured. Of what no process explains, `standing_mib` was there
 * before anything of ours was; the rest is charged to what is being released
 * there, each with no more than its part. What is left of it is foreign, with
 * what stands and what strangers' processes use. */
struct gpu_view {
	struct gpu_reading reading;
	bool present;
	int64_t absent_ms; /* !present: since then */
	int64_t explained_mib, strangers_mib, unexplained_mib, standing_mib, foreign_mib;
	struct unclaimed unclaimed;
};

/* What a work was measured to use on a GPU: by its processes, and what is
 * charged to it while it is released. */
struct use {
	struct work *work;
	int gpu;
	int64_t owned_mib, charged_mib;
	int64_t hidden_mib; /* of what it owns: what its guard counts and no process shows */
	size_t unguarded;   /* a process that should be guarded and is not, in measure.processes,
	                       counted from 1; 0: none */
	size_t next;        /* of the same work, in measure.uses, counted from 1; 0: none */
};

/* The last measurement, and what it means for the works there are now. */
struct measure {
	int64_t asked;  /* the last one that was asked for */
	int64_t number; /* the one that this is, or that came after it */
	bool any;
	struct gpu_view *gpus; /* by UUID */
	int gpu_count;
	size_t gpu_capacity;
	struct process_reading *processes; /* their texts are those of `gpus` */
	size_t process_count, process_capacity;
	struct use *uses;
	size_t use_count, use_capacity;
	struct work **released; /* scratch of measure_charge() */
	size_t released_capacity;
	struct arena arena; /* texts of the present readings */
};

struct pending {
	int64_t number;
	void *data;
	size_t size;
};

enum link_state {
	LINK_DOWN,
	LINK_HELLO,   /* waits to be welcomed */
	LINK_WELCOME, /* waits for a measurement, to send the snapshot */
	LINK_UP,
};

/* A work that ended on this connection without being kept until its end was
 * acknowledged: refused by change `change`, or left out of a snapshot (INT64_MAX).
 * Another order to start it may be on its way. */
struct turned_down {
	int64_t reservation_id, change;
};

/* The conversation with a scheduler. */
struct link {
	enum link_state state;
	int64_t protocol; /* that this side speaks */
	int64_t term;
	int64_t heard_ms;
	int64_t received;        /* orders, in order of their numbers */
	int64_t acknowledged;    /* of these, as last told */
	int64_t acknowledge_ms;  /* when to tell more, at the latest; 0: there is nothing to */
	int64_t sent;            /* changes: the last number given out */
	struct pending *pending; /* not acknowledged, by number */
	size_t pending_count, pending_capacity;
	int64_t pending_ms;            /* when they were last sent, or the first of them was */
	int64_t stored, stored_issued; /* the last acknowledgment: counts once that many orders came
	                                */
	int64_t forgotten;             /* changes up to here are, because of that */
	struct turned_down *turned_down;
	size_t turned_down_count, turned_down_capacity;
	bool snapshot_wanted;
	int64_t snapshot_asked; /* the measurement that it waits for */
	bool measured_since_beat;
	bool figures_told;   /* on this connection: */
	int64_t figures_ms;  /* then, */
	uint64_t facts_told; /* with these, as report_facts has them */
};

struct local_node {
	struct node_identity identity; /* texts are its own */
	struct node_policy policy;
	struct kept_node kept; /* boot is identity.boot */
	bool restarted, was_other_boot;
	int64_t now_ms;
	struct work **works; /* by reservation */
	size_t work_count, work_capacity;
	struct measure measure;
	struct link link;
	int64_t next_protocol; /* of the next connection: the last was refused for its own; 0:
	                        * NODE_PROTOCOL */
	int64_t next_beat_ms, watched_ms; /* watched: a measurement was last asked for then */
	int64_t lease_until_ms;           /* 0: none */
	struct outputs *outputs;          /* while an input is applied */
	bool asked_now;                   /* for a measurement, by this input */
};

/* node.c: what is to be done. */
struct output *node_output(struct local_node *node, enum output_kind kind, int64_t key);
void node_write(struct local_node *node);
/* A measurement that begins after all that has happened. Its number. */
int64_t node_ask_measure(struct local_node *node);
int64_t node_later(const struct local_node *node, int64_t wait_ms);

/* work.c: the life of a task or slot. */
struct work *work_find(const struct local_node *node, int64_t reservation_id);
/* The order is copied. Not in the table twice. */
struct work *work_add(struct local_node *node, const struct node_order *order);
void work_remove(struct local_node *node, struct work *work);
void work_write(struct local_node *node, const struct work *work);
/* Passed the checks: written down, and to be started. */
void work_begin(struct local_node *node, struct work *work);
/* An order that is not followed: told, and forgotten. Nothing of it ever ran. */
void work_refuse(struct local_node *node, struct work *work, const char *message);
/* Notice now, kill after the grace. A work that has ended stays ended. */
void work_stop(struct local_node *node, struct work *work, enum end_reason reason, int64_t grace_ms,
               const char *message);
/* How its first process ended; `exited_ms` 0: now. */
struct work_end {
	int64_t exit_code, exited_ms, host_peak_bytes, cpu_ms;
};
void work_exited(struct local_node *node, struct work *work, const struct work_end *end);
void work_gone(struct local_node *node, struct work *work);
/* Tells what is known of its end, once on each connection. */
void work_tell_end(struct local_node *node, struct work *work);
/* Nothing is left of it and its memory is back. */
void work_released(struct local_node *node, struct work *work);
void work_event(struct local_node *node, enum input_kind kind, const struct work_event *event);
/* Deadlines. */
/* The scheduler has this for good. */
void work_acknowledged(struct local_node *node, struct work *work);
void work_time(struct local_node *node, struct work *work);
int64_t work_wake_ms(const struct local_node *node, const struct work *work);
/* A pod: its kubelet starts and ends it, and only the scheduler says that it has ended. */
static inline bool work_is_watched(const struct work *work)
{
	return work->order.kind == ORDER_WATCH;
}
/* Started or to be started, and not told to stop. */
static inline bool work_is_up(const struct work *work)
{
	return work->kept.phase == WORK_STARTING || work->kept.phase == WORK_RUNNING;
}
/* There, or not gone yet. */
static inline bool work_is_there(const struct work *work)
{
	return work->kept.phase > WORK_WAITING && work->kept.phase < WORK_BACK;
}
/* Has a right to its parts: they count, whatever is measured. */
static inline bool work_counts(const struct work *work)
{
	return work_is_there(work) && work->kept.memory != MEMORY_AWAY;
}
/* How long it has run, without the time that it was suspended. */
int64_t work_ran_ms(const struct local_node *node, const struct work *work);

/* suspend.c: GPU memory that goes to host memory and back. */
void suspend_order(struct local_node *node, const struct message *message);
void resume_order(struct local_node *node, const struct message *message);
void suspend_event(struct local_node *node, struct work *work, enum input_kind kind,
                   const struct work_event *event);
/* A measurement was taken: those that left are gone, those that come may. */
void suspend_measured(struct local_node *node);
/* The agent started again: what was under way is done again. */
void suspend_restart(struct local_node *node, struct work *work);
/* Ended without a result to tell: the scheduler learns it from a snapshot. */
static inline bool work_is_untold(const struct work *work)
{
	return work->kept.reason == END_LEASE || work->kept.reason == END_LOST;
}

/* measure.c: what a measurement means. */
void measure_take(struct local_node *node, const struct measured *measured);
/* Charges again what no process explains, after works changed. */
void measure_charge(struct local_node *node);
void measure_forget(struct local_node *node, const struct work *work);
struct gpu_view *measure_gpu(const struct local_node *node, const char *uuid);
/* What the work was measured to use there; NULL: nothing. */
struct use *measure_use(const struct local_node *node, const struct work *work,
                        const struct gpu_view *gpu);
/* What a work uses, GPU by GPU: the first, and the next; NULL: no more. */
static inline struct use *measure_first_use(const struct local_node *node, const struct work *work)
{
	return work->first_use > 0 ? &node->measure.uses[work->first_use - 1] : NULL;
}
static inline struct use *measure_next_use(const struct local_node *node, const struct use *use)
{
	return use->next > 0 ? &node->measure.uses[use->next - 1] : NULL;
}
/* The part of its order on this GPU, or -1. */
int64_t work_part(const struct work *work, const struct gpu_view *gpu);
void measure_free(struct measure *measure);

/* admit.c: the last line of defense. */
/* True if the order fits by what was measured; false with the figures. */
bool admit_check(const struct local_node *node, const struct node_order *order,
                 struct error *error);
/* Decides about those that wait and could be checked by the last measurement. */
void admit_waiting(struct local_node *node);
/* By how much all that counts on a GPU exceeds its capacity; negative: what is free. */
int64_t admit_excess_mib(const struct local_node *node, const struct gpu_view *gpu);

/* crowding.c: tasks that fail because others took memory that they had reserved. */
/* Looks at those that run, tells whose allocations failed because of whom, and tells the ends that
 * waited for this measurement. */
void crowding_measured(struct local_node *node);
/* What its guard has counted of allocations that failed. */
void crowding_guard(struct local_node *node, struct work *work, const struct guard_reading *guard);
/* It has just failed: its end waits until a measurement shows whether that was its own doing. */
void crowding_hold(struct local_node *node, struct work *work);
/* Tells the end all the same if no measurement came in time. */
void crowding_time(struct local_node *node, struct work *work);
int64_t crowding_wake_ms(const struct work *work);

/* account.c: what works use, for those who pay. */
/* Counts up to the measurement that was just taken. */
void account_measured(struct local_node *node, const struct measured *measured);
/* What its guard has counted. */
void account_guard(struct work *work, const struct guard_reading *guard);
/* It ended at kept.ended_ms: nothing more counts. */
void account_end(struct local_node *node, struct work *work);

/* enforce.c: those that use too much, or nothing, and releases, by a measurement. */
/* unclaimed.c: after a measurement was taken, and what it means for works. */
void unclaimed_measure(const struct local_node *node, struct gpu_view *gpu);
void unclaimed_tell(struct local_node *node);
/* What counts as the work's own on that GPU beside what it was measured to use. */
int64_t unclaimed_blamed_mib(const struct local_node *node, const struct use *use);
void enforce_measured(struct local_node *node);
/* Its people are told, and so is the task, in its output. */
void enforce_warn(struct local_node *node, const struct work *work, enum change_kind kind,
                  int64_t took_ms, const char *message);
/* Somebody changed the limit in the guard of a work: its people are told now and then. */
void enforce_limit_changed(struct local_node *node, struct work *work);
void enforce_lease(struct local_node *node);

/* restart.c */
void restart_apply(struct local_node *node, const struct found *found, int64_t count,
                   int64_t lease_until_ms);

/* link.c: the connection. */
void link_connected(struct local_node *node);
void link_disconnected(struct local_node *node);
void link_message(struct local_node *node, const struct message *message);
void link_time(struct local_node *node);
int64_t link_wake_ms(const struct local_node *node);
/* Numbered, and sent again until it is acknowledged. Dropped while the link is
 * not up: what matters of it is in the next snapshot. Its number, or 0. */
int64_t link_change(struct local_node *node, const struct change *change);
/* A snapshot follows, by the next measurement. */
void link_want_snapshot(struct local_node *node);
/* A measurement that a snapshot waits for is there. */
void link_measured(struct local_node *node);
/* Tells what was received, if that has grown. */
void link_acknowledge(struct local_node *node);
void link_free(struct link *link);

/* report.c: what the node tells about itself. */
void report_snapshot(struct local_node *node, struct message *message, struct arena *arena);
/* With figures, or as a sign of life alone. */
void report_beat(struct local_node *node, struct message *message, bool figures,
                 struct arena *arena);
/* What is measured and decided by, as one number: memory, health, about how warm it is. */
uint64_t report_facts(const struct local_node *node);
/* The GPUs of an order, and what everyone uses there. */
void report_refusal(const struct local_node *node, const struct node_order *order,
                    struct change *change, struct arena *arena);
void report_pids(const struct local_node *node, const struct work *work, struct change *change,
                 struct arena *arena);

/* orders.c */
void orders_take(struct local_node *node, const struct message *message);
/* Up to this number all orders are written down, or refused. */
int64_t orders_kept(const struct local_node *node);
/* This reservation is not to be begun by another order on this connection, until
 * the change is acknowledged and all orders that were given before have come. */
void orders_turn_down(struct local_node *node, int64_t reservation_id, int64_t change);
/* Changes up to this one are acknowledged, and so on. */
void orders_acknowledged(struct local_node *node, int64_t change);
/* Orders that wait belong to a connection: the next one brings them again. */
void orders_drop_waiting(struct local_node *node);

#endif
