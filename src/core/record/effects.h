/* effects.h - what follows from a command: records, orders, events, a reply */
#ifndef CORE_RECORD_EFFECTS_H
#define CORE_RECORD_EFFECTS_H

#include "base/buffer.h"
#include "base/memory.h"
#include "core/record/record.h"

enum effect_kind {
	EFFECT_PUT,     /* keep this record, in place of the one with its key */
	EFFECT_DELETE,  /* forget the record with this key */
	EFFECT_ARCHIVE, /* keep it for readers; the core does not want it back */
	EFFECT_START,   /* order: run this task */
	EFFECT_STOP,    /* order: stop what runs under this reservation, a task or a slot */
	EFFECT_LOAD,    /* order: load a model into this slot */
	EFFECT_ROUTE,   /* for the router: what becomes of a request. Volatile, never stored */
	EFFECT_EVENT,   /* something that people watch for */
	EFFECT_MORE,    /* the pass used up its units: there may be more to decide */
	EFFECT_SUSPEND, /* order: move the GPU memory of this task to host memory */
	EFFECT_RESUME,  /* order: and back */
};

enum event_kind {
	EVENT_JOB_SUBMITTED,
	EVENT_JOB_SCHEDULED,
	EVENT_JOB_STARTED,
	EVENT_JOB_PREEMPTED,
	EVENT_JOB_REQUEUED,
	EVENT_JOB_ENDED,
	EVENT_JOB_HELD,
	EVENT_JOB_RELEASED,
	EVENT_TASK_STARTED,
	EVENT_TASK_ENDED,
	EVENT_NODE_CHANGED,
	EVENT_GPU_OVER,
	EVENT_GPU_FREE_AGAIN,
	EVENT_TENANT_CHANGED,
	EVENT_RELEASE_LATE,
	EVENT_MODEL_CHANGED, /* put, or removed */
	EVENT_SLOT_LOADING,  /* of a slot: `value` is its id */
	EVENT_SLOT_READY,
	EVENT_SLOT_STOPPING, /* evicted, removed, or ended */
	EVENT_SLOT_GONE,
	EVENT_MODEL_FAILED, /* `value`: failures in a row */
	EVENT_TASK_OVER,    /* of enum task_notice, as event_of_notice() has them */
	EVENT_TASK_IDLE,
	EVENT_TASK_UNGUARDED,
	EVENT_NODE_MISREPORTED, /* a node named a reservation of another's: `value` */
	EVENT_CLOCK_MOVED,      /* the clock was wrong: all times moved by `value` ms */
	EVENT_JOB_SUSPENDED,
	EVENT_JOB_RESUMED,
	EVENT_TASK_CROWDED,     /* of enum task_notice too */
	EVENT_JOB_DEADLINE,     /* is at risk, or is not any more; `value`: thousandths */
	EVENT_WINDOW_CHANGED,   /* made, opened, closed or gone: `value` is its id */
	EVENT_TASK_UNEXPLAINED, /* of enum task_notice too */
	EVENT_SLOT_ASLEEP,
	EVENT_SLOT_WAKING,
};

/* The event of an enum task_notice. */
static inline enum event_kind event_of_notice(int32_t notice)
{
	static const enum event_kind kinds[NOTICES] = {
		[NOTICE_OVER] = EVENT_TASK_OVER,
		[NOTICE_IDLE] = EVENT_TASK_IDLE,
		[NOTICE_UNGUARDED] = EVENT_TASK_UNGUARDED,
		[NOTICE_CROWDED] = EVENT_TASK_CROWDED,
		[NOTICE_UNEXPLAINED] = EVENT_TASK_UNEXPLAINED,
	};

	return kinds[notice];
}

/* The enum task_notice of an event; -1: it is of none. */
static inline int32_t notice_of_event(enum event_kind kind)
{
	for (int32_t notice = 0; notice < NOTICES; notice++)
		if (event_of_notice(notice) == kind)
			return notice;
	return -1;
}

/* An order names the term, so that a node refuses it from an older scheduler. */
struct task_order {
	int64_t term, reservation_id, job_id, task, node_id;
	int64_t tenant_id; /* of the job; 0: STOP of a reservation that is not known */
	int64_t grace_ms;  /* STOP: between notice and kill */
	int64_t tasks;     /* START: how many tasks the job has */
	struct rows parts; /* START: enum part_column */
	int64_t cpu_milli, host_bytes;
	int64_t copy_bytes;     /* SUSPEND: host memory for what it has on GPUs */
	int32_t sleep;          /* SUSPEND, RESUME: of a slot, enum model_sleep; of a task 0 */
	int64_t max_runtime_ms; /* START: the node ends it after that; 0: never */
	int32_t lease_loss;     /* START: enum lease_loss */
	/* START: NULL, or the uid of the pod that its orchestrator starts under this reservation.
	 * The core never sets it. */
	const char *pod;
};

/* How to load a model, derived from the slot's reservation: see launch.h. */
struct load_order {
	int64_t term, reservation_id, model_id, node_id;
	int64_t tenant_id;       /* of the model */
	int32_t runtime;         /* enum runtime */
	struct rows parts;       /* enum part_column */
	struct rows utilisation; /* 1 wide: per part, thousandths of the GPU's capacity */
	int64_t tensor_parallel; /* GPUs that it is split over */
	int64_t context, parallel;
	const char *kv_cache, *command;
	int64_t cpu_milli, host_bytes;
	int64_t load_timeout_ms;
	int32_t sleep; /* enum model_sleep: how it will be put to sleep */
};

/* What becomes of a request. GRANTED can follow QUEUED, and either can follow
 * GRANTED where the slot was lost: the router then tries again as told. The
 * others are the end of it. */
enum route_outcome {
	ROUTE_GRANTED, /* goes to this slot, which has a place for it until it is done */
	ROUTE_QUEUED,  /* waits for a place; never forgotten */
	ROUTE_REFUSED, /* could never be served */
	ROUTE_EXPIRED, /* was in flight and not renewed */
	ROUTE_ENDED,   /* its model was removed, or all routers restarted */
};
struct route_effect {
	int32_t outcome; /* enum route_outcome */
	int64_t request_id, model_id;
	int64_t slot_id, node_id; /* GRANTED */
	const char *address;      /* GRANTED: of the slot */
	int64_t until_ms;         /* GRANTED: to be renewed before */
	int64_t waiting;          /* QUEUED: requests of the model that wait, this one included */
	const char *reason;       /* QUEUED again, REFUSED, ENDED: a sentence */
};

struct event {
	enum event_kind kind;
	int64_t number, time_ms, job_id, task, node_id, gpu_id, tenant_id, model_id, value;
};

struct effect {
	enum effect_kind kind;
	enum record_kind record_kind; /* PUT, DELETE, ARCHIVE */
	union {
		const void *record;    /* PUT: a copy that lives with the effects */
		struct record_key key; /* DELETE, ARCHIVE */
		struct task_order order;
		struct load_order load;
		struct route_effect route;
		struct event event;
	};
};

/* The description of an event, by its number, and the names of the kinds. */
extern const struct record_type event_type;
extern const struct words event_words;

/* Effects in the order in which they came about. Kept and cleared by the
 * caller, used again for the next command. Zero-initialised is empty. */
struct effects {
	struct effect *at;
	size_t count, capacity;
	struct arena arena;
	int64_t reply_id; /* what SUBMIT, PUT_TENANT and PUT_MODEL gave out: the id, or the first of
	                   * an array
	                   */
	int64_t reply_count; /* jobs that SUBMIT made, or the same request before */
	bool repeated;       /* SUBMIT: the idempotency key was known, nothing was done */
};

void effects_put(struct effects *effects, enum record_kind kind, const void *record);
void effects_delete(struct effects *effects, enum record_kind kind, int64_t first, int64_t second);
void effects_archive(struct effects *effects, enum record_kind kind, int64_t first, int64_t second);
/* The order's parts are copied. */
void effects_order(struct effects *effects, enum effect_kind kind, const struct task_order *order);
void effects_load(struct effects *effects, const struct load_order *order);
void effects_route(struct effects *effects, const struct route_effect *route);
void effects_event(struct effects *effects, const struct event *event);
void effects_more(struct effects *effects);

/* A copy of one effect whose texts, rows and record live in the arena. */
struct effect effect_copy(struct arena *arena, const struct effect *effect);

/* Empties it; keeps the memory. */
void effects_clear(struct effects *effects);
void effects_free(struct effects *effects);

/* Appends all of it in a form that is equal for equal effects. */
void effects_encode(struct buffer *buffer, const struct effects *effects);
/* One line of text per effect, for people, and one for the reply if there is one. */
void effects_print(struct buffer *buffer, const struct effects *effects);

#endif
