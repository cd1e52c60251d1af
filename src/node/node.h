/* node.h - what an agent believes and does: a deterministic state machine */
#ifndef NODE_NODE_H
#define NODE_NODE_H

#include "node/kept.h"
#include "node/message.h"

/* One entrance, node_apply: facts go in, each with its time, and what is to be
 * done comes out. No clock, files, processes or sockets: whoever drives it has
 * those. Times are milliseconds of a clock that never goes back and runs on
 * while the machine sleeps (CLOCK_BOOTTIME); they mean nothing on another boot. */

/* What is done about work that uses more GPU memory than it reserved. It always
 * counts with what it uses, and is always warned. Work that has a guard was refused
 * what is beyond its limit: what it has beyond the tolerance it took by another way. */
enum overuse {
	OVERUSE_WARN,
	OVERUSE_STOP,
	OVERUSE_GUARDED, /* stops those that have a guard */
};
/* And about work that uses a GPU without the guard that it should have: always told. */
enum unguarded { UNGUARDED_REPORT, UNGUARDED_STOP };

struct node_policy {
	int64_t beat_ms;            /* between beats, and between measurements */
	int64_t figures_ms;         /* beats tell figures that nothing depends on no oftener */
	int64_t silence_ms;         /* of the scheduler, after which to reconnect; not less than
	                               three beats, which it answers */
	int64_t acknowledge_ms;     /* orders are acknowledged so much later, with what is said of
	                               them meanwhile */
	int64_t resend_ms;          /* after which an unacknowledged message is sent again */
	int64_t measure_timeout_ms; /* after which an order that could not be checked is refused */
	int64_t kill_repeat_ms;     /* between kills of what is not gone */
	int64_t late_repeat_ms;     /* between reports that something is not back yet */
	int64_t absent_ms;          /* after which an unseen GPU has no memory to give back */
	int64_t release_settle_ms;  /* memory that is charged to an earlier release holds up a later
	                               one no longer than that */
	int64_t release_tolerance_mib; /* unexplained memory that does not hold up a release */
	int32_t overuse;               /* enum overuse */
	int64_t overuse_tolerance_mib; /* more than reserved by so much is no overuse yet */
	int64_t overuse_stop_ms;       /* how long overuse may last before the kill */
	int64_t watch_ms;              /* between measurements while work shares a GPU; 0: only
	                                  with the beats */
	int32_t unguarded;             /* enum unguarded */
	int64_t idle_ms;               /* after which held and unused GPUs are reported; 0: never */
	int64_t idle_stop_ms;          /* from that report until it is stopped; 0: never */
	int64_t unhealthy_checks;      /* of a slot, in a row, that fail before it is stopped */
};
struct node_policy node_policy_default(void);

/* What the node says about itself in each snapshot. */
struct node_identity {
	const char *name, *boot, *zone, *rack, *labels;
	int64_t cpu_milli, host_bytes;
};

/* One GPU in a measurement. All GPUs of the node are in every one; one that is
 * left out is not there. */
struct gpu_reading {
	const char *uuid, *model, *mig_parent;
	int64_t place, replicas; /* replicas: names that it is advertised under; 0 counts as 1 */
	int64_t capacity_mib, overhead_mib;
	int64_t used_mib; /* by whomever, overhead not counted */
	int64_t temperature_c, power_mw, utilisation, nvlink_group;
	int64_t slowdown_c; /* at which the driver slows it down; 0: not known */
	bool healthy, mig_mode;
	const char *reason;             /* why it is not healthy, where that is known; or NULL */
	bool profiled;                  /* the two below are known */
	int64_t sm_active, dram_active; /* thousandths of the time */
};

/* One process on one GPU, in the same measurement. */
struct process_reading {
	const char *uuid;
	int64_t pid, memory_mib;
	int64_t reservation_id; /* whose cgroup it is in; 0: nobody's that we know */
	bool unguarded;         /* it should be under the guard, and is not */
};

/* The counters of a work's guard, from the same measurement. */
struct guard_reading {
	int64_t reservation_id;
	int64_t limit_mib, peak_mib, refusals, refused_mib; /* as in struct task_use */
	bool changed; /* its limit was not what it should be, and was put right */
	/* Requests within its limit for which a GPU had no memory left: how many, and of the last
	 * one how large, when by the clock of this boot, and on which part of the order. */
	int64_t failures, failed_mib, failed_ms, failed_part;
	int64_t imports; /* pieces of memory of other processes that it holds */
};

/* GPU memory that a work has by its guard's accounting, and that NVML gives to no process: managed
 * memory, and what only a file descriptor still holds. */
struct hidden_reading {
	int64_t reservation_id;
	const char *uuid;
	int64_t memory_mib;
};

/* What was found of our own when the agent started: cgroups, and what their
 * keeper noted when a first process ended. */
struct found {
	int64_t reservation_id;
	bool alive;             /* there are processes in its cgroup */
	int64_t pid, pid_start; /* of its first process, where that lives; 0: not known */
	bool exited;            /* its first process ended with exit_code */
	int64_t exit_code;
	int64_t exited_ms; /* when, by the clock of this boot; 0: not known, or on another */
	int64_t host_peak_bytes, cpu_ms; /* of it; 0: not known */
	bool guarded;                    /* `guard` has the final counters of its guard */
	struct guard_reading guard;
	const char *model; /* of a slot; else empty */
};

enum input_kind {
	INPUT_RESTART,      /* the first one: what was found. What was kept is loaded before */
	INPUT_CONNECTED,    /* there is a way to a scheduler */
	INPUT_DISCONNECTED, /* it is gone */
	INPUT_MESSAGE,      /* from the scheduler */
	INPUT_MEASURED,     /* answers OUTPUT_MEASURE, or comes by itself */
	INPUT_STARTED,      /* the first process of a work runs */
	INPUT_NOT_STARTED,  /* and never will; none of it is left */
	INPUT_EXITED,       /* its first process ended; others may be left */
	INPUT_GONE,         /* none of its processes is left */
	INPUT_READY,        /* a slot takes requests */
	INPUT_HEALTH,       /* a slot answered, or did not */
	INPUT_ACTIVE,       /* how many requests a slot has in flight */
	INPUT_CHECKPOINT,   /* a task's work up to now is safe */
	INPUT_PACE,         /* other times between beats and between figures */
	INPUT_SUSPENDED,    /* answers OUTPUT_SUSPEND: its processes are frozen, their GPU memory
	                       moved;    or `failed` and all is as before. One that was lost has exited
	                     */
	INPUT_RESUMED,      /* answers OUTPUT_RESUME; `failed`: it is as before */
	INPUT_SESSION,      /* somebody works in a session of a task: it is not idle */
	INPUT_TIME,         /* nothing but time passed */
	INPUT_KINDS,
};

struct measured {
	int64_t number; /* the last that OUTPUT_MEASURE had asked for when it began */
	const struct gpu_reading *gpus;
	int64_t gpu_count;
	const struct process_reading *processes;
	int64_t process_count;
	const struct guard_reading *guards;
	int64_t guard_count;
	const struct hidden_reading *hidden;
	int64_t hidden_count;
};

/* What happened to a work. */
struct work_event {
	int64_t reservation_id;
	int64_t pid, pid_start; /* STARTED */
	int64_t exit_code;      /* EXITED: as a shell shows it, 128 + signal where it was killed */
	int64_t exited_ms;      /* EXITED: when, by the node's clock; 0: now. An agent that hung
	                           learns it late, and may have told it to stop since */
	/* EXITED: what it used. SUSPENDED: the host memory that its GPU memory took. 0: not known
	 */
	int64_t host_peak_bytes, cpu_ms;
	bool guarded; /* EXITED: `guard` has its final counters */
	struct guard_reading guard;
	bool failed;         /* SUSPENDED, RESUMED; `message` says why */
	bool healthy;        /* HEALTH */
	int64_t active;      /* ACTIVE */
	const char *address; /* READY */
	const char *message; /* NOT_STARTED: why; EXITED: what there is to say; HEALTH: why it must
	                        be stopped at once; may be NULL */
};

struct input {
	int32_t kind; /* enum input_kind */
	int64_t now_ms;
	union {
		struct {
			const struct found *found;
			int64_t found_count;
			int64_t lease_until_ms; /* as last told by OUTPUT_LEASE on this boot; 0:
			                           not known */
		} restart;
		const struct message *message;
		struct measured measured;
		struct work_event event;
		struct {
			int64_t beat_ms, figures_ms; /* as in struct node_policy */
		} pace;
	};
};

enum output_kind {
	OUTPUT_WRITE,   /* keep these bytes under this key, for good before any later output */
	OUTPUT_ERASE,   /* forget what is kept under this key, and all else about that work */
	OUTPUT_SEND,    /* to the scheduler; while there is no way there it is dropped */
	OUTPUT_START,   /* run this task, or load this slot, in a cgroup of its own */
	OUTPUT_NOTICE,  /* tell it to end: SIGTERM, and whatever makes it write a checkpoint */
	OUTPUT_FREEZE,  /* stop it from doing anything, before it is killed */
	OUTPUT_KILL,    /* kill all of its cgroup */
	OUTPUT_WARN,    /* tell it that it uses more than it reserved */
	OUTPUT_SUSPEND, /* raise its host memory, move its GPU memory there, freeze it */
	OUTPUT_RESUME,  /* undo that: in the same order on the same GPUs */
	OUTPUT_MEASURE, /* begin one now, after all that has happened; `key` is its number */
	/* Tasks whose order says stop on lease loss must be dead at `until_ms` and
	 * their order's grace later, whether or not the agent lives: their keeper
	 * is told here, before it counts, and again whenever it moves. */
	OUTPUT_LEASE,
	OUTPUT_DISCONNECT, /* give up this way to the scheduler and find another */
	OUTPUT_KINDS,
};

struct output {
	int32_t kind; /* enum output_kind */
	int64_t key; /* WRITE, ERASE: 0, or a reservation; START .. RESUME: the reservation; MEASURE
	              */
	const void *data; /* WRITE, SEND */
	size_t size;
	const struct node_order *order; /* START, SUSPEND, RESUME */
	const char *message;            /* WARN, DISCONNECT: a sentence */
	int64_t until_ms;               /* LEASE */
};

/* In the order in which they are to be done. Whoever drives the node may stop
 * between any two of them. Kept and cleared by the caller; zero is empty. */
struct outputs {
	struct output *at;
	size_t count, capacity;
	struct arena arena;
};
void outputs_clear(struct outputs *outputs);
void outputs_free(struct outputs *outputs);

/* A node as it knows itself. */
struct local_node;

/* The texts are copied. */
struct local_node *node_new(const struct node_identity *identity, const struct node_policy *policy);
void node_delete(struct local_node *node);

/* Before INPUT_RESTART: what was written under each key, in any order. False
 * with a reason where it cannot be read: then no agent may run on it. */
bool node_load(struct local_node *node, int64_t key, const void *data, size_t size,
               struct error *error);

/* The one entrance: appends what is to be done. INPUT_RESTART comes first and
 * once. The same inputs give the same outputs, byte for byte. Time that goes
 * back counts as no time. */
void node_apply(struct local_node *node, const struct input *input, struct outputs *outputs);

/* When INPUT_TIME is wanted at the latest, if nothing else comes. */
int64_t node_wake_ms(const struct local_node *node);

/* Panics unless all totals equal a recount. */
void node_check(const struct local_node *node);

/* For those who watch. Valid until the next input. */
struct work_view {
	const struct kept_work *kept;
	const struct node_order *order;
};
size_t node_work_count(const struct local_node *node);
struct work_view node_work(const struct local_node *node, size_t at);

#endif
