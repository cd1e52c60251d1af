/* record.h - what the core must remember: plain rows that a store keeps */
#ifndef CORE_RECORD_RECORD_H
#define CORE_RECORD_RECORD_H

#include "core/record/field.h"
#include "core/record/types.h"

/* Everything that influences a later decision is in a record, and a core loaded
 * from the records behaves as if it had never stopped. A record is a
 * plain struct of numbers, flags, texts and lists of rows of numbers; its
 * fields are described in a table (field.h), so that stores, logs and
 * tests handle all kinds alike. Texts are never NULL. */

enum record_kind {
	RECORD_META,
	RECORD_CONFIG,
	RECORD_TENANT,
	RECORD_NODE,
	RECORD_GPU,
	RECORD_JOB,       /* what was asked: written once */
	RECORD_JOB_STATE, /* what became of it: the same row in a store's table of jobs */
	RECORD_TASK,
	RECORD_MODEL,
	RECORD_SLOT,
	RECORD_RESERVATION,
	RECORD_PROMISE,
	RECORD_GUESS,
	RECORD_OUTCOME,
	RECORD_MIX,
	RECORD_BACKOFF,
	RECORD_NODE_CLASS,
	RECORD_GUEST,
	RECORD_TRIAL,
	RECORD_MARGIN,
	RECORD_ACCURACY,
	RECORD_WINDOW,
	RECORD_DECISION, /* from here on: kept for readers, never loaded */
	RECORD_RUN,
	RECORD_PRICE,
	RECORD_KINDS,
};

/* Counters and the clock. One row, id 1. */
struct meta_record {
	int64_t id;
	int64_t now_ms; /* the time of the last command */
	int64_t term;   /* grows with each start of a scheduler */
	int64_t last_tenant_id, last_node_id, last_gpu_id, last_job_id, last_reservation_id,
	    last_decision_id, last_model_id;
	int64_t last_start;       /* numbers starts and checkpoints: the order of victims */
	int64_t last_event;       /* numbers events */
	int64_t timed_ms;         /* what time alone changes about jobs is done up to here */
	int64_t promise_after_ms; /* expected starts are not looked at again before */
	int64_t last_run_id;
	int64_t last_class_id, last_guest_id;
	int64_t last_window_id;
	int64_t quotas_ms; /* when quotas last followed use */
};

/* Settings. One row, id 1. */
struct config_record {
	int64_t id;
	int32_t policy; /* enum policy: for jobs */
	bool enable_preemption, enable_gangs, enable_thermal, enable_consolidation, enable_backfill;
	bool move_any_job;                   /* consolidate jobs without checkpoints too */
	int64_t queue_max, tenant_queue_max; /* waiting tasks in all, waiting jobs of one tenant */
	int32_t default_priority;
	int64_t ageing_per_minute; /* points of priority that a minute of waiting adds */
	int64_t ageing_cap;        /* points that waiting can add at the most */
	int64_t thermal_threshold_c, thermal_resume_c; /* see heat.h; 0: by the GPU */
	int64_t usage_half_life_ms;
	int64_t usage_influence;    /* thousandths: how strongly past use lowers a share */
	int64_t min_runtime_ms;     /* no task is a victim before it ran that long */
	int64_t release_timeout_ms; /* releasing for longer is late: claims on it are planned again
	                             */
	int64_t gang_grace_ms;      /* a gang below its minimum is stopped after that */
	int64_t refuse_backoff_ms; /* wait after a node refused, doubled each time up to 64 times */
	int64_t grace_ms;          /* between notice and kill, told to the node */
	int64_t retention_ms;      /* a finished job stays in memory that long */
	int64_t predict_jobs;      /* finished jobs to predict from, up to twice that; 0: off */
	int64_t predict_experts;   /* keys by which durations are learned, at the most */
	int64_t promise_jobs;      /* how many waiting jobs have a promised start */
	int64_t promise_gpus;      /* thousandths: jobs that ask for less get none */
	int64_t foreign_tolerance_mib; /* foreign memory that a GPU given whole may have on it */
	int64_t search_pause_us;  /* pause after a search without victims, for each one examined */
	int64_t search_width;     /* nodes scored for one task before the best is taken */
	int32_t time_sharing;     /* enum time_sharing */
	int64_t sharing_wait_ms;  /* who waited that long goes before all who share with it */
	int64_t sharing_turn_ms;  /* and then runs for that long at the least */
	int64_t sharing_delay_ms; /* nobody is stopped or moved for who waited less */
	int64_t lease_ms;         /* a request in flight ends if it is not renewed for this long */
	int64_t foreign_requeues; /* of a job that failed while foreign memory took its own */
	int64_t loads_per_gpu;    /* slots that load onto one GPU at once, beside overdue ones */
	int64_t request_goal_ms;  /* requests are to be served within that time; late ones go behind
	                           */
	int64_t turn_wait_ms;     /* a model that waited so long gets a turn on a busy GPU */
	int64_t slot_stay_ms;     /* a slot is not closed for others before it was ready so long */
	int64_t loading;          /* thousandths of a GPU's time that swaps of models may take */
	int32_t suspend;          /* enum suspend_consent: of jobs that say nothing */
	int64_t suspend_host;     /* thousandths of a node's host memory, for suspended tasks */
	int64_t suspend_wait_ms;  /* a suspended job waits that long for its GPUs at the least */
	int64_t deadline_risk; /* thousandths: chances to miss a deadline that are told; 0: none */
	bool deadline_first;   /* such jobs go first in their tenant's queue */
	int32_t sharing_compute; /* enum sharing_compute: of parts of GPUs that ask for none */
	bool sharing_mixed;      /* tenants may share a GPU's compute with each other */
	int64_t quota_follow_ms; /* quotas follow use that often; 0: they do not */
};

struct tenant_record {
	int64_t id, parent_id;
	const char *name;
	const char *payload; /* what the core does not read: e-mail, notifications, ... */
	int64_t limit_gpu, limit_cpu, limit_host, limit_gpu_memory, limit_jobs; /* UNLIMITED: none
	                                                                         */
	int64_t quota_gpu, quota_cpu, quota_host; /* UNLIMITED, or QUOTA_UNSET */
	int64_t quota_gpu_least, quota_gpu_most;  /* between which quota_gpu follows use; most 0: it
	                                           * does not */
	int64_t weight;                           /* thousandths */
	int64_t priority;                         /* higher is served first among siblings */
	bool allow_preemption;                    /* what its jobs default to */
	bool can_preempt_others;
	int64_t max_preemptions;   /* of one job, which is protected after that; UNLIMITED */
	int64_t queue_max;         /* waiting jobs; UNLIMITED */
	int64_t cost_per_gpu_hour; /* millionths of the currency */
	int64_t budget_per_month;  /* millionths of the currency; UNLIMITED */
	/* Of what it asks models, by all gateways together; 0: no limit. */
	int64_t requests_per_minute, tokens_per_minute, max_streams;
	/* What it used, as of `metered_ms`; what it holds is added from there on. */
	int64_t metered_ms;
	int64_t usage_gpu, usage_cpu, usage_host; /* decayed amount x seconds; of host memory MiB x
	                                             seconds */
	int64_t gpu_ms;                           /* thousandths of GPUs x ms, ever */
	int64_t cost, month, month_cost; /* ever; the month (year * 12 + month - 1) and its cost */
	int64_t token_cost;              /* the part of `cost` that was for tokens of models */
	int64_t token_credit;            /* what others were charged for tokens of its models */
	int64_t jobs_completed, jobs_failed, jobs_cancelled;
};

struct node_record {
	int64_t id;
	const char *name, *boot, *zone, *rack;
	const char *labels; /* "key=value" pairs, sorted, separated by newlines */
	int64_t cpu_milli, host_bytes;
	int32_t state; /* enum node_state */
	bool draining;
	bool reported;         /* since the scheduler's last start */
	const char *resources; /* counted: "name=n" pairs, one a line */
	/* What others than this scheduler take of it: facts, like foreign memory. */
	const char *taken; /* of counted resources, in the same form */
	int64_t taken_cpu_milli, taken_host_bytes;
	/* Learned: what moving 1 GiB of GPU memory to host memory takes, and back; 0: unknown. */
	int64_t suspend_ms, resume_ms;
	const char *drain_reason; /* why people drained it; empty: they did not say */
};

struct gpu_record {
	int64_t id, node_id;
	const char *uuid, *model, *mig_parent;
	int64_t place; /* index on its node */
	int64_t capacity_mib, overhead_mib, foreign_mib;
	int64_t temperature_c, slowdown_c; /* slowdown_c: see struct node_report_command */
	int64_t nvlink_group; /* GPUs of a node with the same number are linked; 0: not */
	int64_t aliases;      /* devices that the node advertised under this UUID */
	bool hot, healthy, mig_mode;
	bool present;            /* in the node's last report */
	int64_t loading_ms;      /* time in which slots were loaded onto it, in all */
	int64_t paid_ms;         /* no slot goes for another before: see rotation.h */
	int64_t unexplained_mib; /* of foreign_mib: no process explains it */
};

struct job_record {
	int64_t id, tenant_id;
	const char *name;
	const char *payload; /* what the core does not read: command, environment, ... */
	int64_t priority;
	int32_t gpu_kind, gpu_count, fraction;
	int64_t memory_mib, cpu_milli, host_bytes;
	struct rows uneven; /* memory_mib */
	int64_t tasks, min_available;
	int64_t split_gpus; /* whole GPUs to be spread over as few nodes as possible; 0: not */
	bool preemptible, movable; /* movable: has checkpoints, may be moved to consolidate */
	const char *gpu_models;    /* allowed models, separated by '|'; empty: any */
	const char *node_labels;   /* required "key=value" pairs, sorted, separated by newlines */
	/* As in queue/demand.h; empty in most jobs. */
	const char *resources;  /* counted, of each task: "name=n", one a line */
	const char *rules;      /* about other tasks, one a line */
	const char *marks;      /* by which rules select its tasks: "key=value", one a line */
	const char *node_class; /* its tasks go to the nodes of this class alone */
	const char *window;     /* its tasks start in this window alone; empty: any time */
	int32_t closeness;
	bool closeness_required;
	int32_t lease_loss;
	int64_t max_runtime_ms, deadline_ms; /* 0: none */
	int64_t estimate_ms;        /* how long it should run, as its owner says; 0: says nothing */
	struct rows depends;        /* job id, enum dependency */
	struct rows depends_arrays; /* first job's id, enum dependency, jobs of the array */
	int64_t begin_ms;           /* does not start before; 0: any time */
	int64_t array_id, array_index, array_limit; /* array_id: the first job's id; 0: not an array
	                                             */
	int64_t array_first, array_last, array_count; /* the least and the greatest index of its
	                                                 array, and how many jobs that has */
	const char *idempotency_key;
	const char *user; /* who submitted it; empty: unknown */
	int64_t submitted_ms;
	int64_t request_hash; /* of the request that the key came with; 0: any request may repeat it
	                       */
	int32_t suspend;      /* enum suspend_consent */
	int64_t program;      /* hash of what it runs: command and image; 0: unknown */
	int32_t compute;      /* thousandths of its GPU's compute; 0: takes turns */
	int32_t compute_processes; /* of a task, that divide it; 0: one */
};

struct job_state_record {
	int64_t id;    /* the job's */
	int32_t state; /* enum job_state */
	bool held;
	int64_t queued_ms;     /* its age in the queue counts from here */
	int64_t not_before_ms; /* not tried before: a node refused it */
	int64_t refusals;
	int64_t expected_ms;     /* expected duration, the median; 0: unknown */
	int64_t expected_p90_ms; /* nine of ten such jobs end by then; 0: unknown */
	int64_t confidence;      /* of that, thousandths */
	int64_t guess;           /* id of what was said when it was submitted; 0: none */
	int64_t start;           /* number of its last start or checkpoint; 0: never started */
	int64_t started_ms, checkpoint_ms, completed_ms, short_since_ms; /* short: below its minimum
	                                                                  */
	int64_t preempted_count;
	int64_t served_ms; /* how long it ran before it was last stopped, in all */
	int64_t exit_code;
	const char *message;
	int64_t foreign_requeues;           /* queued again because foreign memory took its own */
	int64_t suspended_ms;               /* since when it is being suspended, or is; 0: not */
	int64_t paused_ms;                  /* of this run, without the time since `suspended_ms` */
	int64_t suspends;                   /* how often it was suspended */
	bool parked;                        /* by a person: only a person lets it resume */
	int64_t promised_ms;                /* the start that nine of ten such jobs keep; 0: none */
	int64_t likely_ms, promise_made_ms; /* the likely start when that was promised, and when */
	int64_t deadline_risk; /* thousandths: the chance to miss its deadline; 0: not known */
	int64_t look_ms;       /* its deadline is looked at again then; 0: not */
	int64_t urgent_ms;     /* it goes first since then, for its deadline; 0: it does not */
};

enum task_state {
	TASK_PENDING,
	TASK_PLACED,
	TASK_RUNNING,
	TASK_STOPPING,
	TASK_ENDED,
	TASK_SUSPENDING,
	TASK_SUSPENDED,
	TASK_RESUMING,
};

/* Written from a task's first placement on. */
struct task_record {
	int64_t job_id, place;  /* its number in the job: the key */
	int32_t state;          /* enum task_state */
	int64_t reservation_id; /* the one that it runs under, or is stopping under */
	int64_t claim_id;       /* where it will start when memory is back */
	int64_t started_ms, ended_ms, exit_code;
	/* struct task_use, of all its runs. */
	int64_t peak_mib, gpu_ms, energy_mj, host_peak_bytes, cpu_ms;
	int64_t limit_mib, guard_peak_mib, refusals, refused_mib;
	bool unguarded;
};

/* A model that can be served. Put by a person, but for the last five. */
struct model_record {
	int64_t id, tenant_id; /* tenant_id: whose limits, quota and bill its slots count for */
	const char *name;
	int32_t runtime;     /* enum runtime */
	const char *command; /* RUNTIME_CUSTOM: what starts it; set by administrators alone */
	const char *payload; /* what the core does not read: image, path, environment, ... */
	int64_t memory_mib;  /* of one slot, over all its GPUs */
	struct rows splits;  /* MODEL_SPLIT_WIDTH: GPU counts allowed, ascending, and the MiB on
	                        each GPU then (0: memory_mib divided, rounded up). Empty: any
	                        count, divided */
	bool uneven;         /* parts need not be equal, as long as they add up */
	int64_t cpu_milli, host_bytes; /* of one slot */
	int64_t context, parallel; /* tokens, and requests that the runtime batches; 0: its own */
	const char *kv_cache;      /* type of the KV cache: "f16", "q8_0", ...; empty: its own */
	int64_t concurrency;       /* requests in flight in one slot; 0: by runtime */
	int64_t min_replicas, max_replicas; /* max 0: the minimum, and at least 1 */
	bool prewarm;            /* wanted loaded, where there is room, before anyone asks */
	bool pinned;             /* never evicted; so bound by the tenant's quota */
	int64_t idle_ttl_ms;     /* idle time after which it may be evicted; 0: 10 s */
	int64_t load_timeout_ms; /* 0: 10 min */
	int64_t priority;
	bool shared;       /* all tenants may use it */
	struct rows users; /* 1 wide: ids of tenants that may, with all below them, beside its own
	                    */
	int32_t policy;    /* enum slot_policy */
	int32_t sleep;     /* enum model_sleep */
	const char *gpu_models, *node_labels; /* where it may be loaded; as for a job */
	/* For gateways. The prices are for a million tokens, in millionths of the currency. */
	int64_t price_input, price_cached, price_output;
	int64_t queue_timeout_ms; /* how long a request waits at most; 0: the gateway's own */
	int32_t keep_alive;       /* enum keep_alive */
	/* What became of it: kept by the core. */
	bool removed;    /* no more requests; gone with its last slot */
	int64_t load_ms; /* what loading it takes, from the loads so far; 0: unknown */
	int64_t wake_ms; /* what waking takes, likewise */
	/* Of a slot that slept, as measured the last time: on each of its GPUs, and on the host.
	 * 0: unknown. */
	int64_t sleep_residue_mib, sleep_host_bytes;
	int64_t failures;                 /* in a row: loads that failed, slots that died */
	int64_t failed_ms, not_before_ms; /* the last one; no new slot before */
	const char *message;              /* of the last one */
};
#define MODEL_SPLIT_WIDTH 2

/* What a stream gets while it waits for a model to load. */
enum keep_alive { KEEP_ALIVE_COMMENT, KEEP_ALIVE_CHUNK, KEEP_ALIVE_OFF };

/* One loaded instance of a model. Its key is that of its reservation. */
struct slot_record {
	int64_t id, model_id;
	int32_t state;       /* enum slot_state */
	const char *address; /* where requests go; empty until it is ready */
	int64_t concurrency; /* as it was loaded */
	bool fixed;          /* its model was pinned then: counts for the quota */
	bool adopted;        /* found running on its node */
	int64_t ordered_ms;  /* when its node was told to load it; 0: not yet */
	int64_t ready_ms;    /* 0: not yet */
	int64_t used_ms;     /* a request began or ended then, at the latest; see route.h */
	int64_t held_ms;     /* until then routers may have requests there that they have not told
	                        since they were reset: it does not go for others */
	int64_t overdue_ms;  /* loading: from then on others load beside it; 0: they may now */
	int64_t closing_for; /* ready: takes no more requests, and goes for this model; 0: not */
	bool evicted;        /* takes no more requests, and stops when it has none */
	int32_t sleep;       /* enum model_sleep: how it was put to sleep; SLEEP_OFF: it is awake */
	bool sleepless;      /* it could not be put to sleep: it is stopped instead */
};

enum part_column { PART_GPU, PART_MIB, PART_SHARE, PART_MEASURED, PART_WHOLE, PART_WIDTH };

/* The owner is a task of a job, or (job_id 0) the slot with the same id. */
struct reservation_record {
	int64_t id, job_id, task, model_id, node_id;
	int32_t phase; /* enum phase */
	bool late;     /* releasing for longer than it should */
	bool requeue;  /* releasing: its task is to be run again */
	int64_t cpu_milli, host_bytes;
	int64_t since_ms;  /* in this phase */
	struct rows parts; /* enum part_column */
	/* What will be in its run. */
	int64_t counted_ms, started_ms; /* counts for its tenant, lives since; 0: not (yet) */
	int32_t ending;                 /* enum run_ending */
	int64_t run_id;                 /* it counts no more, and this is its run; 0: none */
	int64_t saved_ms;               /* with run_id: its work up to then was safe; 0: nothing */
	bool away;                      /* its GPU memory is in host memory */
	int64_t copy_bytes;             /* host memory for that, beside host_bytes */
	int64_t ended_ms;               /* when the run with `run_id` ended; 0: none */
	int64_t residue_mib;            /* of a slot that sleeps: stays on each of its GPUs */
};

/* How a run came to its end. */
enum run_ending {
	RUN_GOES_ON,
	RUN_COMPLETED,
	RUN_FAILED,
	RUN_PREEMPTED,
	RUN_REQUEUED, /* stopped to be run again: by a person, or with the rest of its gang */
	RUN_NODE_LOST,
	RUN_CANCELLED,
	RUN_REFUSED,   /* its node did not start it */
	RUN_WITHDRAWN, /* a claim that was given up */
	RUN_UNLOADED,  /* a slot that was stopped */
	RUN_SUSPENDED, /* its GPU memory went to host memory */
};

/* The period in which a reservation counted for its tenant, which is billed: from its claim or
 * grant until it is told to stop or ends. Numbered in the order of their ends. */
struct run_record {
	int64_t id;
	int64_t tenant_id, job_id, task, model_id; /* a task's, or (job_id 0) a slot's */
	int64_t reservation_id, node_id;
	int64_t share;      /* thousandths of GPUs, over all parts */
	int64_t memory_mib; /* of those parts that are not whole GPUs */
	int64_t cpu_milli;
	int64_t began_ms, started_ms, ended_ms; /* started_ms: on its node; 0: never was */
	int32_t ending;                         /* enum run_ending */
	/* Measured by the node; 0 until it has said. */
	int64_t exit_code, peak_mib, energy_mj;
	int64_t saved_ms; /* the job's last checkpoint in it; 0: there was none */
};

/* What a GPU-hour costs a tenant from then on. */
struct price_record {
	int64_t tenant_id, since_ms;
	int64_t cost_per_gpu_hour; /* millionths of the currency */
};

/* An expected start. `parts` are the GPUs that it counts on. */
struct promise_record {
	int64_t job_id;
	int64_t start_ms, made_ms;
	bool instead;                     /* of preempting: the victims are expected to end soon */
	int64_t wait_gpu_ms, lost_gpu_ms; /* what was compared then */
	struct rows parts;                /* task, gpu id, MiB, whole (0 or 1) */
};
#define PROMISE_WIDTH 4

/* How much later than likely starts are promised: see promise/margin.h. */
struct margin_record {
	int64_t id;
	int64_t margin;       /* log2 of the multiple, in 1/1024 */
	int64_t promised;     /* starts, of jobs that have started */
	int64_t kept, likely; /* of those: started as promised, and by the likely time */
};
#define MARGIN_BINS 6 /* ids from 1 on */

/* What was said about a job when it was submitted, or about several: see queue/predict.h. */
struct guess_record {
	int64_t id;         /* of the first of the jobs */
	int64_t key;        /* jobs of one key that are submitted before another ends share it */
	const char *voices; /* see core/predict/guess_text.h */
	int64_t after;      /* the last outcome by then */
	int64_t p50_ms, p90_ms, confidence, samples; /* of struct prediction */
	int32_t basis;
};

/* A job that ended: what it was known by, what it took, and what had been said. */
struct outcome_record {
	int64_t id, segment;
	bool closes; /* it filled its segment: the one before is not needed any more */
	int64_t tenant_id, user, tenant, name, pattern, size, limit_ms; /* struct traits */
	int64_t took_ms, ended_ms;
	int64_t peers;          /* jobs of its user that ran then */
	int64_t experts;        /* how many there could be then */
	int32_t basis;          /* of what was said */
	int64_t p50_ms, p90_ms; /* 0: nothing */
	const char *voices;     /* see core/predict/guess_text.h */
};

/* How predictions of one basis turned out, of jobs that have ended: see queue/predict.h. */
struct accuracy_record {
	int64_t id;                       /* the basis, from 1 on */
	int64_t jobs;                     /* that were predicted when they were submitted */
	int64_t within_p90, within_twice; /* took no longer; took half to twice the median */
};

/* The kinds of tasks that arrive, for the fragmentation policy. One row, id 1. */
struct mix_record {
	int64_t id;
	bool fixed;                   /* given from outside; not learned */
	int64_t arrivals, derived_at; /* tasks seen; how many when `classes` was derived */
	struct rows seen;             /* gpu thousandths, gpu count, cpu_milli, times */
	struct rows classes;          /* gpu thousandths, gpu count, cpu_milli, weight */
	int64_t asked_milli;          /* thousandths of GPUs that tasks seen asked for */
	const char *insisted; /* sets of models that jobs insist on, by line; see type_demand.h */
	struct rows insisted_milli; /* of asked_milli, by set */
};
#define MIX_WIDTH 4

/* A long search for victims that found nothing: not to be repeated before. */
struct backoff_record {
	int64_t id; /* hash of the tenant, what is asked for and the kind */
	int64_t until_ms;
	int64_t victims;  /* that were looked at */
	int64_t priority; /* of the jobs that it holds for, at the most */
};

/* How a window repeats: every 24 hours, or every 7 days. */
enum window_repeat { WINDOW_ONCE, WINDOW_DAILY, WINDOW_WEEKLY };

/* A time in which nodes or GPUs are for some jobs alone, or for none. It is gone when its last
 * time has passed. */
struct window_record {
	int64_t id;
	const char *name, *reason, *user; /* user: who made it */
	bool maintenance;                 /* nothing runs there */
	int64_t tenant_id; /* whose jobs may run there, with those of the tenants below; 0: any
	                      job that names the window */
	int64_t start_ms, length_ms; /* of the first time */
	int32_t repeat;              /* enum window_repeat */
	const char *nodes; /* names, one a line: all that is on them, and all their GPUs */
	const char *gpus;  /* UUIDs, one a line */
	int64_t lead_ms;   /* work of unknown length does not start in that time before */
	bool evict;        /* what still runs when it begins is stopped and queued again */
	int64_t grace_ms;  /* evict: so long after it began */
	int64_t made_ms;
	bool open; /* as of the last command that let time pass; kept by the core */
};

/* Which nodes may take tasks of one class, as found by whoever knows what the class asks for. */
struct node_class_record {
	int64_t id;
	const char *name;
	const char *nodes; /* lines "mask name<tab>reason": enum node_class_bit; see cluster.h */
};

/* A guest: work on a node that another scheduler placed there. What it takes is in the node's
 * record; rules of tasks select it by its marks, and its own keep tasks away. */
struct guest_record {
	int64_t id, node_id;
	const char *name; /* unique */
	const char *marks, *rules;
	bool ending; /* on its way out: it counts for no spread */
};

/* What is known about suspending one program on one model of GPU. */
struct trial_record {
	int64_t id; /* hash of both */
	int64_t program;
	const char *gpu_model;
	int64_t done, lost; /* suspended and resumed; lost by it */
};

enum decision_kind {
	DECISION_START,     /* placed where it fits now */
	DECISION_CLAIM,     /* promised memory that is being freed */
	DECISION_RECLAIM,   /* victims of other tenants make room */
	DECISION_PREEMPT,   /* victims of the same tenant and lower priority make room */
	DECISION_MOVE,      /* others move so that it fits */
	DECISION_WAIT,      /* not preempted for: the victims end soon */
	DECISION_PROMISE,   /* expected start given or changed */
	DECISION_EVICTED,   /* this job was stopped for another */
	DECISION_LAPSED,    /* a claim was given up: the release took too long */
	DECISION_GANG,      /* a gang below its minimum was stopped */
	DECISION_GROW,      /* an elastic job got another task */
	DECISION_EVICT,     /* idle slots make room for a job or a slot */
	DECISION_LOAD,      /* a slot was placed where it fits now, or its memory is back */
	DECISION_UNLOAD,    /* this slot goes: for another, or because its model is removed */
	DECISION_ADOPT,     /* a slot that a node had is known now */
	DECISION_FAIL,      /* a load failed or took too long, or a slot died */
	DECISION_SHARE,     /* others of its tenant and priority, who take longer, make room */
	DECISION_SUSPENDED, /* this job's GPU memory goes to host memory, for another or a person */
	DECISION_RESUME,    /* and comes back */
	DECISION_CLOSE,     /* this slot takes no more requests: it is the turn of another model */
	DECISION_REOPEN,    /* it does again: that model needs it no more */
	DECISION_AWAITED,   /* another job waits for this one to end, rather than preempting it */
	DECISION_SLEEP,     /* this slot goes to sleep, for another */
	DECISION_WAKE,      /* this slot gets its GPUs back, or a claim on them */
};

/* One row per GPU that mattered, with the arithmetic of the memory invariant. */
enum gpu_line {
	LINE_GPU,
	LINE_CAPACITY,
	LINE_OVERHEAD,
	LINE_FOREIGN,
	LINE_USED_BEFORE,
	LINE_RELEASING,
	LINE_CLAIMED,
	LINE_ASKED,
	LINE_USED_AFTER,
	LINE_WIDTH,
};

/* Why GPUs were refused: the check, how many failed on it, how far short the
 * nearest was (MiB, or thousandths of a core, or bytes). */
enum refusal_column { REFUSAL_CHECK, REFUSAL_COUNT, REFUSAL_SHORT, REFUSAL_NEAREST, REFUSAL_WIDTH };

struct decision_record {
	int64_t id, time_ms;
	int32_t kind; /* enum decision_kind */
	int64_t job_id, tenant_id;
	int64_t tasks;             /* how many tasks it is about */
	int64_t for_job_id;        /* DECISION_EVICTED, UNLOAD: for whom */
	int64_t model_id, slot_id; /* about a slot: job_id is 0 */
	int64_t for_model_id;      /* DECISION_EVICTED, UNLOAD: for whom */
	int64_t score;             /* of the policy, for the last task; lower is better */
	int64_t premium_milli;     /* part of the score: how much more free GPUs of their model are
	                              worth to those who insist on it, in thousandths */
	int64_t candidates;        /* nodes that fit, for the last task */
	int64_t until_ms;          /* promised start, or when a claim expires; 0: none */
	int64_t wait_gpu_ms, lost_gpu_ms; /* compared: waiting against work lost */
	struct rows gpus;                 /* enum gpu_line */
	struct rows unexplained;          /* of LINE_FOREIGN of each row of `gpus`: no process
	                                     explains it; no rows: none of any */
	struct rows victims;              /* job id, task, enum victim_fate, GPU-ms lost */
	struct rows refusals;             /* enum refusal_column */
	struct rows evicted;              /* enum evicted_column: idle slots that go */
	const char *message;              /* DECISION_FAIL: what the node said */
};
/* Of the foreign memory of a row of `gpus`. */
static inline int64_t decision_unexplained_mib(const struct decision_record *decision, int64_t row)
{
	return row < decision->unexplained.count ? decision->unexplained.at[row] : 0;
}
#define VICTIM_WIDTH 4
enum victim_fate { VICTIM_STOPPED, VICTIM_MOVED, VICTIM_SUSPENDED };

/* One row per slot that goes: what was compared. */
enum evicted_column {
	EVICTED_SLOT,
	EVICTED_MODEL,
	EVICTED_MIB,       /* over all its GPUs */
	EVICTED_RELOAD_MS, /* what loading it again is expected to take */
	EVICTED_IDLE_MS,
	EVICTED_WIDTH,
};

/* The names of the values of the enums above and in types.h. */
extern const struct words window_repeat_words, policy_words, node_state_words, gpu_kind_words,
    closeness_words, lease_loss_words, suspend_words, sharing_compute_words, dependency_words,
    job_state_words, task_state_words, phase_words, decision_words, runtime_words,
    slot_policy_words, model_sleep_words, keep_alive_words, slot_state_words, request_end_words,
    task_notice_words, time_sharing_words, run_ending_words;

/* The descriptions, by kind. */
extern const struct record_type record_types[RECORD_KINDS];
const struct record_type *record_type(enum record_kind kind);

/* Whether readers alone want it: what happened. The core does not load it. */
static inline bool record_is_history(enum record_kind kind) { return kind >= RECORD_DECISION; }

/* The key of a record: its first field, and the second where there are two (else 0). */
struct record_key {
	int64_t first, second;
};
struct record_key record_key(enum record_kind kind, const void *record);

/* A copy whose texts and rows live in the arena too. */
void *record_copy(struct arena *arena, enum record_kind kind, const void *record);
/* Copies the record into one piece of memory, to be freed with free(). */
void *record_clone(enum record_kind kind, const void *record);

/* Appends an encoding that is the same for equal records and on every machine. */
void record_encode(struct buffer *buffer, enum record_kind kind, const void *record);
/* Reads what record_encode wrote from `data`, moves `*data` on and returns the
 * record, in the arena; NULL with a reason if the bytes are not such a record. */
void *record_decode(struct arena *arena, enum record_kind kind, const uint8_t **data,
                    const uint8_t *end, struct error *error);
bool record_equal(enum record_kind kind, const void *a, const void *b);
/* Appends it as one line of text for people, without a newline:
 * `tenant id=3 name="lab" ...`. What is 0, false or empty is left out. */
void record_print(struct buffer *buffer, enum record_kind kind, const void *record);

/* The settings that a new scheduler starts with. */
struct config_record config_default(void);
/* A tenant that nothing limits, of weight 1. */
struct tenant_record tenant_default(const char *name);
/* Whether a scheduler can work with these settings; a sentence that names the
 * field and what to do about it where not. */
bool config_check(const struct config_record *config, struct error *error);

#endif
