/* types.h - units, amounts and requests: the words that all of the core shares */
#ifndef CORE_RECORD_TYPES_H
#define CORE_RECORD_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/number.h"
#include "core/record/policy.h"

/* Units, everywhere in the core: GPU memory is MiB, host memory bytes, CPU and
 * shares of a GPU thousandths, time milliseconds since 1970. Ids are positive
 * and grow; 0 is 'none'. */

#define GPUS_PER_NODE_MAX 64
#define PARTS_MAX 16   /* GPUs of one task */
#define TASKS_MAX 4096 /* tasks of one job */
#define WHOLE_GPU 1000 /* thousandths */

/* More than any machine has, and little enough that no sum over a cluster, no
 * product with thousandths and no product with GPUs and tasks overflows. */
#define MIB_MAX (INT64_C(1) << 40)
#define CPU_MILLI_MAX (INT64_C(1) << 40)
#define HOST_BYTES_MAX (INT64_C(1) << 48)
#define TIME_MS_MAX (INT64_C(1) << 45) /* in the year 3084 */
#define JOB_NAME_BYTES_MAX 256
#define JOB_DEPENDS_MAX 256

/* What is counted for tenants. The first FAIR_KINDS are shared out fairly; the
 * others are only limited. */
enum amount_kind {
	AMOUNT_GPU,        /* thousandths of GPUs, whole ones and parts */
	AMOUNT_CPU,        /* thousandths of cores */
	AMOUNT_HOST,       /* bytes of host memory */
	AMOUNT_GPU_MEMORY, /* MiB reserved on shared GPUs; GPUs taken whole do not count here */
	AMOUNT_JOBS,       /* jobs with at least one task placed */
	AMOUNT_KINDS,
};
#define FAIR_KINDS 3

struct amounts {
	int64_t of[AMOUNT_KINDS];
};

#define UNLIMITED INT64_MAX /* a limit, or a quota: as much as it asks for */
#define QUOTA_UNSET (-1)    /* a quota that was left out: guarantees nothing */

static inline void amounts_add(struct amounts *to, const struct amounts *what)
{
	for (int k = 0; k < AMOUNT_KINDS; k++)
		to->of[k] += what->of[k];
}
static inline void amounts_subtract(struct amounts *from, const struct amounts *what)
{
	for (int k = 0; k < AMOUNT_KINDS; k++)
		from->of[k] -= what->of[k];
}

/* Sums of what others ask for, which nothing but their number bounds. */
struct wide_amounts {
	int128 of[AMOUNT_KINDS];
};

/* How a task asks for GPUs. All its GPUs are distinct and on one node. */
enum gpu_kind {
	GPU_NONE,  /* runs on CPU alone */
	GPU_WHOLE, /* `gpu_count` GPUs with nothing else on them, each of at least `memory_mib` */
	GPU_FRACTION, /* `fraction` thousandths of each of `gpu_count` GPUs */
	GPU_MEMORY,   /* `memory_mib` of each of `gpu_count` GPUs */
	GPU_UNEVEN,   /* `uneven_mib[i]` of the i-th of `gpu_count` GPUs */
};

struct shape_request {
	enum gpu_kind gpu_kind;
	int32_t gpu_count;
	int32_t fraction;
	int64_t memory_mib;
	int64_t total_mib; /* GPU_MEMORY of a slot: its parts may differ and add up to this; 0:
	                      they are equal */
	int64_t uneven_mib[PARTS_MAX]; /* descending */
	int64_t cpu_milli;
	int64_t host_bytes;
	int32_t compute; /* thousandths of each GPU's compute; 0: takes turns */
	int64_t sharer;  /* with `compute`: the tenant; 0 */
};

/* How close together the GPUs of a job should be. */
enum closeness { CLOSE_ANY, CLOSE_NVLINK, CLOSE_NODE, CLOSE_RACK };

/* Whether parts of GPUs have a share of the compute too, where the job says nothing. */
enum sharing_compute { COMPUTE_NONE, COMPUTE_MPS };
#define COMPUTE_PROCESSES_MAX 48 /* clients of one MPS server, at the most */
/* The label of a node that can give shares of its GPUs' compute; its value says how. */
#define NODE_COMPUTE_SHARES "gpu-scheduler.io/compute-shares"

/* How jobs of one tenant and priority that can be interrupted share GPUs in time:
 * not at all, or by the GPU time that each has had. */
enum time_sharing { SHARING_OFF, SHARING_ATTAINED_SERVICE, SHARING_PREDICTED_SERVICE };

enum job_state {
	JOB_PENDING,   /* in the queue, or held, or waiting for other jobs */
	JOB_SCHEDULED, /* placed, or holding a claim; not all of its tasks run yet */
	JOB_RUNNING,
	JOB_PREEMPTED, /* told to stop for another; queued again when its memory is back */
	JOB_COMPLETED,
	JOB_FAILED,
	JOB_CANCELLED,
	JOB_SUSPENDED, /* its GPU memory is in host memory, or on its way there or back */
	JOB_STATES,
};
static inline bool job_state_is_final(enum job_state state)
{
	return state >= JOB_COMPLETED && state <= JOB_CANCELLED;
}

/* The life of a reservation. A claim is not a right yet. */
enum phase {
	PHASE_CLAIM,      /* promised memory that is being freed */
	PHASE_GRANTED,    /* decided, and ordered from the node */
	PHASE_LIVE,       /* the node says that it runs */
	PHASE_RELEASING,  /* told to stop, or ended; memory not confirmed as back */
	PHASE_SUSPENDING, /* told to move its GPU memory to host memory; not confirmed as gone */
	PHASE_SUSPENDED,  /* has host memory, and a slot its residue on GPUs */
	PHASE_WAKING,     /* the same, with a claim on its GPUs */
	PHASE_RESUMING,   /* has its GPUs, and was told to move back; not confirmed */
};
/* Its task exists, and does not run. */
static inline bool phase_is_suspended(enum phase phase)
{
	return phase >= PHASE_SUSPENDING && phase <= PHASE_RESUMING;
}

/* Whether a job may be suspended: its GPU memory moved to host memory and back. */
enum suspend_consent {
	SUSPEND_AUTO, /* once jobs of the same program came back on such a GPU, and none was lost
	               */
	SUSPEND_ALWAYS,
	SUSPEND_NEVER,
};

enum node_state {
	NODE_ONLINE,
	NODE_UNKNOWN, /* silent */
	NODE_LOST,    /* silent until its leases expired; work that allows it is given up */
};

/* The usage of a task, as measured on its node. Unknown values are 0. */
struct task_use {
	int64_t peak_mib;  /* the most at one time of any one of its GPUs */
	int64_t gpu_ms;    /* that it had GPUs, by its share of each */
	int64_t energy_mj; /* that they used meanwhile, by its share of each */
	int64_t host_peak_bytes, cpu_ms;
	/* By the guard, where it was under one: the least limit and the highest peak of
	 * its GPUs, how often it asked for more, and for how much the last time. */
	int64_t limit_mib, guard_peak_mib, refusals, refused_mib;
	bool unguarded; /* a process of it used a GPU without the guard that it should have had */
};

/* What a node has to say about a task that runs. */
enum task_notice {
	NOTICE_OVER,        /* it uses more GPU memory than it reserved */
	NOTICE_IDLE,        /* it holds GPUs and does not use them */
	NOTICE_UNGUARDED,   /* it uses a GPU without the guard that it should have */
	NOTICE_CROWDED,     /* others use memory that it reserved, and allocations of it failed */
	NOTICE_UNEXPLAINED, /* memory came to one of its GPUs that no process explains */
	NOTICES,
};

/* What is done with a task when its node is lost. */
enum lease_loss { LEASE_KEEP, LEASE_STOP };

enum dependency { AFTER_SUCCESS, AFTER_ANY };

/* What serves a model. */
enum runtime { RUNTIME_VLLM, RUNTIME_OLLAMA, RUNTIME_LLAMA_CPP, RUNTIME_CUSTOM };

/* Where a model's slots go, of all places that cost the same. */
enum slot_policy { SLOT_SPREAD, SLOT_PACK };

/* The life of a slot. Its reservation's phase goes with it; see slot.h. */
enum slot_state {
	SLOT_WAITING,  /* has a claim: the memory is being freed */
	SLOT_PLACED,   /* has its memory, and waits for another load on one of its GPUs */
	SLOT_LOADING,  /* its node was told to load it */
	SLOT_READY,    /* serves requests */
	SLOT_STOPPING, /* told to stop, or ended; memory not confirmed as back */
	SLOT_SLEEPING, /* told to sleep: its GPU memory goes to host memory; not confirmed */
	SLOT_ASLEEP,   /* has host memory, and a residue on its GPUs */
	SLOT_WAKING,   /* has a claim on its GPUs, or was told to wake */
};

/* How the slots of a model sleep. */
enum model_sleep {
	SLEEP_OFF,    /* they are stopped instead */
	SLEEP_DRIVER, /* the driver suspends the server, as it suspends tasks */
};

/* How a request ended, as the router tells. */
enum request_end {
	REQUEST_SUCCEEDED,
	REQUEST_FAILED, /* at the slot, or on the way there */
	REQUEST_GONE,   /* the client went away */
};

/* Why a node does not take the next tasks of a waiting job, apart from its GPUs: one reason. */
struct node_refusal {
	int32_t check;       /* enum check of core/place/place.h */
	bool clears;         /* it may go if work on that node ends */
	const char *subject; /* a resource, a rule, or why the node is not in the class */
	int subject_size;
	int64_t asked, free; /* of a resource */
};
typedef void node_refusal_say(void *context, const struct node_refusal *refusal);

#endif
