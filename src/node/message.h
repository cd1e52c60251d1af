/* message.h - what an agent and a scheduler say to each other */
#ifndef NODE_MESSAGE_H
#define NODE_MESSAGE_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"
#include "core/record/command.h"
#include "core/record/field.h"
#include "core/record/types.h"

/* A conversation is a connection: the agent numbers them, says hello, is
 * welcomed, and sends a snapshot of all that it has. From then on there are two
 * streams, each numbered from 1: changes (the snapshot is the first) from the
 * agent, orders from the scheduler. The receiver takes them in the order of
 * their numbers, ignores what it had already and what comes too early, and
 * acknowledges by number; what is not acknowledged is sent again. So messages
 * may be lost, repeated and reordered on the way. Whatever belongs to another
 * boot or another connection is ignored, and a new connection begins with a new
 * snapshot, so nothing that is on its way can arrive in the wrong life. */

enum message_kind {
	MESSAGE_HELLO,    /* agent: begins a connection */
	MESSAGE_SNAPSHOT, /* agent, numbered: all of the node, as it is */
	MESSAGE_CHANGE,   /* agent, numbered: something that happened */
	MESSAGE_BEAT,     /* agent: it is alive; its measurements; asks to renew the lease */
	MESSAGE_WELCOME,  /* scheduler: answers hello, and renews the lease */
	MESSAGE_ORDER,    /* scheduler, numbered */
	MESSAGE_RENEW,    /* scheduler: answers a beat: the lease counts from when that was sent */
	MESSAGE_REFUSE,   /* either: closes the connection, with a reason */
	MESSAGE_ACK,      /* either: nothing but what the head says */
	MESSAGE_KINDS,
};

/* A right to memory of one GPU. */
struct order_part {
	const char *uuid;
	int64_t memory_mib, share;
	bool whole; /* nothing else may be on that GPU */
};

enum order_kind {
	ORDER_START, /* run a task */
	ORDER_LOAD,  /* load a model into a slot */
	ORDER_STOP,  /* stop what runs under this reservation */
	/* Since protocol 5. */
	ORDER_SUSPEND, /* move the GPU memory of this task to host memory, and freeze it */
	ORDER_RESUME,  /* and back */
	/* Since protocol 7. `payload` is the uid of a pod, whose kubelet starts and ends it. */
	ORDER_WATCH, /* follow the processes of that pod; STOP: confirm when nothing is left of it
	              */
	ORDER_KINDS,
};

/* What does not belong to its kind is 0 or empty. */
struct node_order {
	int32_t kind; /* enum order_kind */
	int64_t reservation_id;
	const struct order_part *parts;
	int64_t part_count;
	int64_t grace_ms;              /* between notice and kill, whoever gives the notice */
	int64_t cpu_milli, host_bytes; /* SUSPEND: host memory for what it has on GPUs */
	const char *payload;           /* opaque to this directory: command, environment, ... */
	/* START */
	int64_t job_id, task, tasks;
	int64_t max_runtime_ms; /* 0: none */
	int32_t lease_loss;     /* enum lease_loss */
	/* LOAD */
	int64_t model_id;
	const char *model; /* name */
	int32_t runtime;   /* enum runtime */
	struct rows utilisation;
	int64_t tensor_parallel, context, parallel;
	const char *kv_cache, *command;
	int64_t load_timeout_ms; /* 0: none */
};

enum change_kind {
	CHANGE_STARTED,    /* a task runs; a slot is being loaded */
	CHANGE_READY,      /* a slot takes requests at `address` */
	CHANGE_REFUSED,    /* an order to start or load was not followed; `message`, `samples` */
	CHANGE_EXITED,     /* it ended; memory may not be back */
	CHANGE_RELEASED,   /* no process of it is left and its memory was measured as back */
	CHANGE_CHECKPOINT, /* a task's work up to now is safe */
	/* For people: nothing is decided by these, and they may be lost. */
	CHANGE_LATE,      /* told to stop, or ended, and not back yet: `pids`, `took_ms` so far */
	CHANGE_OVER,      /* uses more than it reserved: `message` */
	CHANGE_IDLE,      /* holds GPUs and does not use them */
	CHANGE_UNGUARDED, /* uses a GPU without the guard that it should have: `message` */
	/* Since protocol 5, of orders to suspend and resume: `took_ms` where it is done and the
	 * memory is measured as gone; `message` where it is not, and all is as before. */
	CHANGE_SUSPENDED,
	CHANGE_RESUMED,
	/* Since protocol 6, and for people: others use memory that it reserved, and allocations of
	 * it failed: `message`. */
	CHANGE_CROWDED,
	/* Since protocol 8, and for people: memory came to one of its GPUs that no process
	 * explains: `message`. */
	CHANGE_UNEXPLAINED,
	CHANGE_KINDS,
};

/* Why something ended. */
enum end_reason {
	END_ITSELF,
	END_ORDERED,   /* the scheduler said so */
	END_RUNTIME,   /* time limit reached */
	END_OVER,      /* it used more GPU memory than it reserved */
	END_IDLE,      /* it held GPUs and did not use them */
	END_LEASE,     /* nobody renewed the lease, and its order said to stop then */
	END_LOST,      /* it was gone when the agent or the node restarted */
	END_NO_START,  /* it could not be started */
	END_UNHEALTHY, /* a slot that does not answer, or took too long to load */
	END_UNGUARDED, /* it used a GPU without the guard that it should have */
	END_FOREIGN,   /* it failed while others had taken memory of its reservation */
	END_REASONS,
};

/* One GPU as measured. */
struct gpu_sample {
	const char *uuid;
	int64_t foreign_mib; /* used by processes that nobody scheduled, or by nobody known */
	int64_t used_mib;    /* by all, overhead not counted */
	int64_t temperature_c, power_mw, utilisation; /* thousandths */
	bool healthy;
	/* Of foreign_mib. In messages it is apart from the sample: struct gpu_unexplained. */
	int64_t unexplained_mib;
};

/* What a work was measured to use of one GPU, and may use of it. */
struct use_sample {
	int64_t reservation_id;
	const char *uuid;
	int64_t memory_mib, reserved_mib;
};

/* What profiling tells of one GPU, where the node can tell: thousandths of the time. */
struct gpu_counters {
	const char *uuid;
	int64_t sm_active, dram_active; /* negative: not known */
	const char *reason;             /* why it is not healthy; may be empty */
};

/* Of the foreign memory of one GPU, what no process explains and came while works were there. */
struct gpu_unexplained {
	const char *uuid;
	int64_t memory_mib;
};

/* What a work that runs has used so far. */
struct work_sample {
	int64_t reservation_id;
	struct task_use use;
};

/* A slot's requests in flight, where its runtime tells. */
struct slot_sample {
	int64_t reservation_id, active;
};

struct hello {
	const char *name;
	int64_t protocol;
	int64_t sent_ms; /* as in a beat */
};
/* An agent may be older than its scheduler: what came with a later protocol is behind the
 * rest of a message, and not there. A scheduler refuses an agent that is newer, which then
 * speaks the scheduler's protocol on its next connection. */
/* Snapshots have slowdown temperatures since 3, END_FOREIGN since 4, orders to suspend since 5,
 * CHANGE_CROWDED since 6, orders to watch since 7, unexplained memory since 8. */
#define NODE_PROTOCOL 8
#define NODE_PROTOCOL_SUSPEND 5
#define NODE_PROTOCOL_CROWDED 6
#define NODE_PROTOCOL_WATCH 7
#define NODE_PROTOCOL_UNEXPLAINED 8
#define NODE_PROTOCOL_LEAST 1
#define CONNECTION_MAX (INT64_MAX / 2) /* so that there is always a next one */

struct change {
	int32_t kind; /* enum change_kind */
	int64_t reservation_id;
	bool slot;           /* of a slot, not of a task */
	int64_t exit_code;   /* SUSPENDED, RESUMED: 0 where it is done */
	int32_t reason;      /* EXITED: enum end_reason */
	const char *message; /* a sentence; may be empty */
	const char *address;
	int64_t took_ms; /* RELEASED, LATE: since it was told to stop, or ended */
	struct rows pids;
	const struct gpu_sample *samples; /* REFUSED: the GPUs that were looked at */
	int64_t sample_count;
	const struct measurement *measurements; /* REFUSED: what owners use on them */
	int64_t measurement_count;
	/* Since protocol 2. */
	int64_t ago_ms; /* EXITED: it ended so long before this was sent */
	/* EXITED. SUSPENDED: the host memory that its GPU memory took, as the peak; 0: not known */
	struct task_use use;
};

/* `sent_ms` is by the agent's clock and comes back in the renewal. */
struct beat {
	int64_t sent_ms;
	const struct gpu_sample *samples; /* none: nothing was measured since the last beat */
	int64_t sample_count;
	const struct use_sample *uses;
	int64_t use_count;
	const struct slot_sample *slots;
	int64_t slot_count;
	/* Since protocol 2. */
	const struct gpu_counters *counters;
	int64_t counter_count;
	const struct work_sample *works;
	int64_t work_count;
	/* Since protocol 8. */
	const struct gpu_unexplained *unexplained;
	int64_t unexplained_count;
};

/* WELCOME and RENEW: the lease runs for `lease_ms` from `sent_ms`, the agent's
 * time of the hello or beat that this answers. */
struct renewal {
	int64_t sent_ms, lease_ms;
};

/* `connection`: the agent's next one must have a higher number; 0: any. */
struct refusal {
	int64_t connection;
	const char *message;
};

/* The head says whose message it is and what arrived of the other's stream. */
struct message {
	int32_t kind;         /* enum message_kind */
	const char *boot;     /* of the node: another boot is another life */
	int64_t connection;   /* numbered by the agent, growing */
	int64_t term;         /* scheduler: its own; agent: the highest that it has seen */
	int64_t number;       /* in its sender's stream; 0: not in it */
	int64_t acknowledged; /* of the other's stream: up to this all is kept for good */
	int64_t issued;       /* scheduler: numbers given out when it acknowledged this */
	int64_t protocol;     /* not sent: the one to write it in; 0: NODE_PROTOCOL */
	union {
		struct hello hello;
		struct node_report_command snapshot;
		struct change change;
		struct beat beat;
		struct renewal renewal; /* WELCOME, RENEW */
		struct node_order order;
		struct refusal refusal;
	};
};

/* "hello", ...; "unknown" for what is not a kind. */
const char *message_kind_name(int32_t kind);
const char *change_kind_name(int32_t kind);
const char *end_reason_name(int32_t reason);

extern const struct record_type node_order_type;
/* True if an order is in range; false with a reason. */
bool node_order_check(const struct node_order *order, struct error *error);
/* All of it, in the arena. */
struct node_order *node_order_copy(struct arena *arena, const struct node_order *order);

/* Encode appends. Decode reads one message, which must be all of the data, into
 * the arena; or returns NULL with a reason. What it returns is in range: kinds
 * are kinds, numbers are not negative, parts are at most PARTS_MAX, and what a
 * node says in words is as texts.h allows it. */
void message_encode(struct buffer *buffer, const struct message *message);
struct message *message_decode(struct arena *arena, const uint8_t *data, size_t size,
                               struct error *error);
/* Why a scheduler refuses an agent of this protocol. */
void message_refuse_protocol(struct error *error, int64_t protocol);
/* The latest protocol of the scheduler that refused with this reason, if this one speaks it;
 * 0: it refused for another, or nothing is to be done. */
int64_t message_refused_protocol(const char *reason);
/* One line of text for people, without a newline. */
void message_print(struct buffer *buffer, const struct message *message);

#endif
