/* command.h - the facts and wishes that enter the core, each with its time */
#ifndef CORE_RECORD_COMMAND_H
#define CORE_RECORD_COMMAND_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"
#include "core/record/record.h"

/* Units of work that the service gives a pass, so that no pass keeps requests waiting. */
#define PASS_UNITS_DEFAULT INT64_C(500)

enum command_kind {
	COMMAND_START, /* a scheduler begins: new term, nodes must report again */
	COMMAND_CONFIGURE,
	COMMAND_PUT_TENANT,
	COMMAND_DELETE_TENANT,
	COMMAND_SUBMIT,
	COMMAND_CANCEL,
	COMMAND_HOLD,
	COMMAND_UNHOLD,  /* of a hold */
	COMMAND_REQUEUE, /* stop it and queue it again */
	COMMAND_REPRIORITISE,
	COMMAND_NODE_REPORT, /* all of a node, as it is */
	COMMAND_GPU_REPORT,  /* one GPU's measurements */
	COMMAND_NODE_STATE,  /* online, silent, lost */
	COMMAND_NODE_DRAIN,  /* or resume */
	COMMAND_NODE_DEAD,   /* an administrator says that nothing runs there any more */
	COMMAND_NODE_REMOVE,
	COMMAND_TASK_STARTED,
	COMMAND_TASK_REFUSED, /* the node would not start it */
	COMMAND_TASK_EXITED,
	COMMAND_TASK_CHECKPOINT, /* work up to now is safe */
	COMMAND_MEMORY_RELEASED, /* the node confirms: processes gone, memory back */
	COMMAND_PUT_MODEL,
	COMMAND_REMOVE_MODEL,
	COMMAND_REQUEST,        /* someone asks a model something */
	COMMAND_REQUEST_DONE,   /* it ended, in flight or waiting */
	COMMAND_REQUEST_RENEW,  /* it is still in flight */
	COMMAND_RESET_REQUESTS, /* all routers have restarted: no request is in flight or waits */
	COMMAND_SLOT_LOADING,   /* the node has begun */
	COMMAND_SLOT_READY,
	COMMAND_SLOT_EXITED, /* it failed to load, or died, or the node would not load it */
	COMMAND_MIX,         /* the kinds of tasks to expect, given from outside */
	COMMAND_TIME,        /* time passed */
	COMMAND_PASS,        /* decide now */
	COMMAND_TASK_NOTICE, /* for people: what the node has to say about a task */
	COMMAND_CLOCK,       /* the clock was wrong: all times move with it */
	COMMAND_NODE_FACTS,  /* counted resources of a node, and what others take of it */
	COMMAND_PUT_NODE_CLASS,
	COMMAND_PUT_GUEST, /* new, or as it is now */
	COMMAND_REMOVE_GUEST,
	COMMAND_CHARGE,         /* tenants were served tokens that cost something */
	COMMAND_SUSPEND,        /* a job's GPU memory goes to host memory, as a person wishes */
	COMMAND_RESUME,         /* it may come back */
	COMMAND_TASK_SUSPENDED, /* the node has done so, or could not */
	COMMAND_TASK_RESUMED,
	COMMAND_PUT_WINDOW,
	COMMAND_REMOVE_WINDOW,
	COMMAND_EVICT_MODEL, /* its slots stop: when they have no requests, or at once */
	COMMAND_KINDS,
};

/* A device as a node advertises it. Several with one UUID are one GPU. */
struct device {
	const char *uuid, *model, *mig_parent; /* "" where there is none */
	int64_t place;
	int64_t capacity_mib, overhead_mib, foreign_mib, temperature_c, nvlink_group;
	bool healthy, mig_mode;
};

/* What an owner on a GPU was measured to use. */
struct measurement {
	int64_t reservation_id;
	const char *uuid;
	int64_t memory_mib;
};

/* A slot as a node has it. Its GPUs are those that measurements name for it. */
struct slot_report {
	int64_t reservation_id;
	const char *model;   /* name */
	const char *address; /* where it takes requests; "" while it loads */
	bool ready;
};

struct model_command {
	struct model_record model; /* id 0 makes a new one; what the core keeps is ignored */
	bool administrator;        /* who asks may have custom commands run */
};

struct request_command {
	int64_t request_id; /* the router's, and no other request's that is not over */
	int64_t model_id;
	int64_t tenant_id; /* who asks; 0: an administrator, or the system itself */
	int64_t lease_ms;  /* 0: as configured */
	int64_t slot_id;   /* it is in flight in this slot already, or must be; 0: wherever */
};

struct submit_command {
	struct job_record job;        /* id, array_id, submitted_ms are the core's to fill */
	int64_t array_from, array_to; /* an array of jobs when array_to > 0 */
	struct rows array_indices;    /* the array has these alone, ascending, all of them from
	                                 array_from to array_to; none: every index */
	bool hold;
	bool check_possible; /* refuse what could never run on this cluster's hardware */
	bool takes_turns; /* it cannot have a share of compute: `sharing_compute` gives it none */
};

/* Jobs that it makes, once its array is known to be good. */
static inline int64_t submit_count(const struct submit_command *submit)
{
	if (submit->array_indices.count > 0)
		return submit->array_indices.count;
	return submit->array_to > 0 ? submit->array_to - submit->array_from + 1 : 1;
}
/* The index of the job at that place of the array, from 0. */
static inline int64_t submit_array_index(const struct submit_command *submit, int64_t place)
{
	return submit->array_indices.count > 0 ? submit->array_indices.at[place]
	                                       : submit->array_from + place;
}

struct node_report_command {
	const char *name, *boot, *zone, *rack, *labels;
	int64_t cpu_milli, host_bytes;
	const struct device *devices;
	int64_t device_count;
	const struct measurement *measurements;
	int64_t measurement_count;
	const int64_t *running; /* reservations that the node has, running or stopping; others are
	                           gone */
	int64_t running_count;
	bool snapshot; /* `running` and `slots` are complete: what they do not name is not there */
	const struct slot_report *slots; /* what is said about a slot holds in any report */
	int64_t slot_count;
	/* Reservations whose order to start or load may not have reached the node when it
	 * made the snapshot: nothing follows from not being named there. */
	const int64_t *coming;
	int64_t coming_count;
	/* The temperatures at which the driver slows down `devices`, in their order, in degrees
	 * Celsius. 0, or behind the end: not known. */
	struct rows slowdowns_c;
};

/* `node`, here and below: the name of the node that reports. The core refuses what a node
 * says about another's GPU, task or slot. Empty: not from a node, so nothing to compare. */
struct gpu_report_command {
	const char *uuid;
	int64_t foreign_mib, temperature_c;
	int64_t unexplained_mib; /* of foreign_mib: what no process explains */
	bool healthy;
	const struct measurement *measurements;
	int64_t measurement_count;
	const char *node;
};

/* As the node's record says them; each replaces what was known. */
struct node_facts_command {
	const char *name, *resources, *taken;
	int64_t taken_cpu_milli, taken_host_bytes;
};

struct guest_command {
	const char *name, *node, *marks, *rules;
	bool ending;
};

/* A new window, whose id is 0, on nodes or GPUs by name, or on that many GPUs of any model, or of
 * one, which the core chooses. */
struct window_command {
	struct window_record window;
	int64_t gpu_count;
	const char *gpu_model;
};

/* A tenant was served by a model of another for that much, in millionths of the currency. */
enum charge_column { CHARGE_TENANT, CHARGE_MODEL_TENANT, CHARGE_AMOUNT, CHARGE_WIDTH };
#define CHARGE_MOST (INT64_C(1) << 52)

struct command {
	enum command_kind kind;
	int64_t now_ms;
	union {
		struct config_record configure;
		struct tenant_record tenant; /* PUT_TENANT: id 0 makes a new one; its meters are
		                                ignored */
		int64_t id; /* DELETE_TENANT, CANCEL, HOLD, RELEASE, REQUEUE, REMOVE_MODEL, SUSPEND,
		               RESUME */
		struct submit_command submit;
		struct {
			int64_t id, priority;
		} reprioritise;
		struct node_report_command report;
		struct gpu_report_command gpu;
		struct {
			const char *name;
			enum node_state state;
		} node_state;
		struct {
			const char *name;
			bool draining;
			const char *reason; /* NULL or empty: none */
		} drain;
		const char *node; /* NODE_DEAD, NODE_REMOVE */
		struct {
			int64_t reservation_id;
			int64_t exit_code;
			bool released; /* SUSPENDED, RESUMED: it is done; else it is as before */
			const char *message;
			int32_t notice; /* NOTICE: enum task_notice */
			int64_t ago_ms; /* EXITED: so long ago, by the node's clock;
			                   SUSPENDED, RESUMED: it took so long */
			/* EXITED: of this run. SUSPENDED, of a slot: the most that stays on one of
			 * its GPUs, and what the host gave for it, as peaks; host 0: not measured
			 */
			struct task_use use;
			bool foreign;  /* EXITED: foreign memory took what it had reserved */
			bool finished; /* EXITED: it did all of its work, also if told to stop */
			const char *node;
		} task;
		struct model_command model;
		struct request_command request; /* REQUEST; RENEW: lease_ms from now on */
		struct {
			int64_t request_id;
			enum request_end end;
		} done;
		struct {
			int64_t reservation_id; /* the slot's id */
			const char *address;    /* READY */
			const char *message;    /* EXITED: why */
			bool released;          /* EXITED: and its memory is back */
			const char *node;
		} slot;
		struct {
			int64_t to_ms; /* what the clock says now */
			bool clamp;    /* see clock_move */
		} clock;
		struct node_facts_command facts;
		struct {
			const char *name, *nodes; /* no nodes: the class is forgotten */
		} node_class;
		struct guest_command guest;
		struct window_command window;
		struct {
			int64_t model_id;
			const char *node; /* of its slots those there alone; empty: all */
			bool now;         /* with requests in flight, which are tried elsewhere */
		} evict;
		const char *guest_name; /* REMOVE_GUEST */
		struct rows charges;    /* enum charge_column */
		struct rows mix;        /* MIX_WIDTH: gpu thousandths, gpu count, cpu, weight */
		int64_t units;          /* PASS: work at the most; see pass_run */
	};
};

/* What reports are made of, for others who carry them. */
extern const struct record_type measurement_type, node_report_type;
/* What older agents do not say in a report. */
extern const struct record_type node_report_more_type;

/* "put_tenant", ...; "unknown" for what is not a kind. */
const char *command_kind_name(enum command_kind kind);

/* The journal's form: encode appends; decode reads one command into the arena
 * and moves `*data` on, or returns NULL with a reason. */
void command_encode(struct buffer *buffer, const struct command *command);
struct command *command_decode(struct arena *arena, const uint8_t **data, const uint8_t *end,
                               struct error *error);
/* A copy whose texts and lists live in the arena. */
struct command *command_copy(struct arena *arena, const struct command *command);
/* One line of text for people, without a newline: `submit now_ms=1000 name="train" ...`. */
void command_print(struct buffer *buffer, const struct command *command);

#endif
