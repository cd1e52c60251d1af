/* pods_local.h - the inside of the pods: what its files share */
#ifndef PODS_PODS_LOCAL_H
#define PODS_PODS_LOCAL_H

#include "base/map.h"
#include "base/memory.h"
#include "base/number.h"
#include "core/cluster/cluster.h"
#include "core/record/orchestrator.h"
#include "kube/pod.h"
#include "kube/pod_claims.h"
#include "kube/pod_gpus.h"
#include "kube/pod_group.h"
#include "kube/pod_owner.h"
#include "kube/pod_volumes.h"
#include "pods/pods.h"
#include "json/member.h"

#define JOB_ANNOTATION "gpu-scheduler.io/job"
#define GPUS_ANNOTATION "gpu-scheduler.io/gpus"
#define LIMITS_ANNOTATION "gpu-scheduler.io/limits"
#define TERM_ANNOTATION "gpu-scheduler.io/term"
/* The boot of a node that has no agent is NODE_BOOT_KUBERNETES, and its label NODE_ORCHESTRATOR
 * keeps everything but pods off it: see core/record/orchestrator.h. */
#define KUBERNETES_BOOT NODE_BOOT_KUBERNETES

/* Between the key of a group and what tells apart its jobs, one after the other. */
#define JOB_KEY_RUN "#"

enum binding {
	BINDING_NONE,
	BINDING_SENT, /* nobody knows yet */
	BINDING_DONE,
};

/* What becomes of the claims of a pod that is not bound. */
enum claim_goal {
	CLAIM_GOAL_NONE,
	CLAIM_GOAL_ALLOCATED, /* its binding follows */
	CLAIM_GOAL_RELEASED,
};

struct unit;
struct kube_node;
struct kube_queue;

/* A pod that was not deleted yet, or (gone) whose memory is not confirmed as free. */
struct pod {
	char *uid, *namespace, *name;
	json_t *object;
	struct unit *unit; /* NULL: not ours, or not taken in (yet) */
	int place;         /* its task of the unit */
	enum binding binding;
	char *node;       /* that it is bound to; NULL */
	bool seen;        /* bound, by the watch and not only by an answer */
	int64_t bound_ms; /* when the answer came */
	bool gone;        /* deleted; release_ms: when its memory counts as free */
	int64_t release_ms;
	bool is_guest; /* the core was told of it as somebody else's */
	bool evicting;
	int64_t evicted_ms; /* when that was last asked for */
	bool crossed;       /* it gives way to another scheduler's */
	bool queued;        /* in pods.arrivals */
	enum claim_goal claim_goal;
	enum claim_step claim_step; /* the last that was written */
	json_t *claim;              /* as the last answer showed it; NULL */
	char *said;                 /* why it waits, as it was last written */
	int64_t said_ms;
	char *succeeded; /* its key in pods.succeeded; NULL: it has not, or has no group */
	struct pod *next_succeeded;
};

/* What a pod asks for, in the words of the core. */
struct ask {
	struct pod_gpus gpus;
	struct pod_request request;
	struct buffer marks, rules, node_class;
};

struct unit_task {
	struct pod *pod;        /* NULL: vacant */
	int64_t reservation_id; /* 0: none */
	bool stopping;          /* the core told it to stop */
	bool started, ended;    /* the core was told */
	char *node;             /* of its reservation */
	char *uuids;            /* of its GPUs, with commas */
	char *limits;           /* MiB of each, with commas */
	int64_t node_id;
	struct effect start; /* to be passed to an agent; its rows are `parts` */
	int64_t *parts;
	bool named; /* the node knows its GPUs by these names */
};

enum unit_state {
	UNIT_GATHERING, /* its minimum is not there yet */
	UNIT_ASKED,     /* the core was asked to take it */
	UNIT_QUEUED,    /* it is a job */
	UNIT_ENDED,     /* the job has ended; its pods are on their way out */
};

/* A job: a pod, or the pods of a group. */
struct unit {
	int64_t serial, job_id;
	enum unit_state state;
	char *key; /* in pods.units; a group of the same name may come when this one has ended */
	char *job_key; /* the job's idempotency key, once it was asked for; NULL */
	char *join;    /* what a replacement has in common with it; "" : nothing */
	char *tenant;
	const char *group_resource; /* NULL: its pods say how many they are */
	char *group_name, *namespace;
	bool is_group;
	bool held;              /* by us: it waits for pods */
	int64_t declared_least; /* by its pods; 0: see the PodGroup */
	struct unit_task *tasks;
	int task_count;
	size_t task_capacity;
	char *class;       /* of nodes; NULL: not yet */
	int64_t vacant_ms; /* since when it waits for pods; 0: it does not */
	int64_t retry_ms;  /* the core refused it: not before */
	int64_t why_ms;    /* when it was last explained */
};

struct use_of_class {
	char *name;
	json_t *sample;  /* a pod that asks for it */
	json_t *volumes; /* that such pods mount */
	bool parts;
	int64_t uses;
	char *told; /* the lines that the core has */
};

struct kube_node {
	char *name;
	json_t *object;
	struct pod **pods; /* that are bound to it, ours and others' */
	size_t pod_count, pod_capacity;
	bool dirty, reported, gone;
	uint64_t told; /* a hash of the last report */
	uint64_t told_facts;
	int64_t guest_ms; /* when a pod of somebody else was last seen to come; 0: never */
};

/* A reservation that was live before this start, and whose pod is not there: it may have been
 * deleted by force, and run on. */
struct ghost {
	int64_t reservation_id, release_ms;
	char *node;
};

struct known_job {
	int64_t job_id, tasks;
	char *key;
	bool held, over;            /* over: it ended since */
	struct pods_known_task *at; /* by place */
	bool *has;
};

struct pods {
	struct pods_settings settings;
	struct pods_port port;
	struct writer writer;
	json_t *gpu_resources, *namespaces;
	struct text_map nodes;     /* struct kube_node by name */
	struct text_map pods;      /* struct pod by uid */
	struct text_map units;     /* struct unit by its key */
	struct text_map succeeded; /* struct pod: the first of a group's that have succeeded */
	struct text_map groups;    /* json_t * of PodGroups: "resource namespace/name" */
	struct text_map slices;    /* json_t * of our driver, by the name of the node */
	struct text_map queues;    /* struct kube_queue by name */
	struct text_map classes;   /* struct use_of_class by name */
	struct map jobs;           /* struct unit by job */
	struct map serials;        /* struct unit */
	struct map reservations;   /* struct unit */
	struct map known;          /* struct known_job, until pods_begin() */
	struct pod **arrivals;     /* to be taken in */
	size_t arrival_count, arrival_capacity;
	int64_t now_ms, last_serial;
	bool ending; /* nobody hears of anything any more */
	bool nodes_synced, pods_synced, claims_synced, begun, ready, classes_dirty;
	struct pod **lingering; /* gone, and not released */
	size_t lingering_count, lingering_capacity;
	struct ghost *ghosts;
	size_t ghost_count, ghost_capacity;
	size_t why_at;
	int64_t vacant_count; /* units that wait for pods to be made again */
	int64_t units_ms;     /* when units_time() last ran */
	int64_t queues_ms;    /* when kube_queues_flush() last looked at them */
	struct pods_figures figures;
};

/* pods.c */
void pods_send(struct pods *pods, const struct command *command);
void pods_send_job(struct pods *pods, enum command_kind kind, int64_t job_id);
/* The unit with that key, or idempotency key of a job; NULL. */
struct unit *pods_unit(struct pods *pods, const char *key);
void pods_note(struct pods *pods, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool pods_are_ours(const struct pods *pods, const json_t *object);
char *text_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* pods_node.c */
struct kube_node *node_of_name(struct pods *pods, const char *name);
void node_add_pod(struct pods *pods, struct pod *pod);
void node_remove_pod(struct pods *pods, struct pod *pod);
void nodes_flush(struct pods *pods);
/* The first report after a start, with what is there. */
void nodes_begin(struct pods *pods);
/* Adds lines name=n to those in `sum`, a map of numbers. */
void counts_add_lines(json_t *sum, const char *lines);

/* pods_cross.c */
/* Pods of ours give way if the node has too little for them and for what others have just bound
 * there. */
void node_uncross(struct pods *pods, struct kube_node *node);

/* pods_class.c */
void class_use(struct pods *pods, const char *name, const json_t *pod, bool parts);
/* The volumes of the pod, to be given back with json_decref; NULL with a reason. */
json_t *class_volumes(const struct pods *pods, const json_t *pod, struct error *error);
void class_unuse(struct pods *pods, const char *name);
void classes_flush(struct pods *pods);

/* pods_pod.c */
/* It is taken in with the next round. */
void pod_arrives(struct pods *pods, struct pod *pod);
void pod_take_in(struct pods *pods, struct pod *pod);
/* It was deleted by force on a node that does not answer. */
bool pod_may_run_on(struct pods *pods, const struct pod *pod);
void pod_released(struct pods *pods, struct pod *pod);
void pods_adopt(struct pods *pods);
/* Pods that the API server said were bound, or were to go, and that it has as they were before. */
void pods_look_for_unbound(struct pods *pods);
/* Gives the memory of those back whose time has come. */
void ghosts_time(struct pods *pods);
bool is_ghost(const struct pods *pods, int64_t reservation_id);
void pod_look_at_phase(struct pods *pods, struct pod *pod);

/* pods_unit.c */
struct unit *unit_new(struct pods *pods, const char *key);
void unit_free(struct pods *pods, struct unit *unit);
void unit_put_pod(struct pods *pods, struct unit *unit, int place, struct pod *pod);
void unit_remove_pod(struct pods *pods, struct pod *pod);
/* Asks the core to take it, if all is there. */
void unit_try(struct pods *pods, struct unit *unit);
void unit_join(struct pods *pods, struct pod *pod);
/* It is not placed, and waits for a while for its pods to be made again. */
void unit_wait_for_pods(struct pods *pods, struct unit *unit);
void units_time(struct pods *pods);
int unit_filled(const struct unit *unit);
bool ask_read(const struct pods *pods, const json_t *object, struct ask *ask, struct error *error);
void ask_free(struct ask *ask);

/* pods_group.c */
/* How many of its pods start together; 0: nobody says. */
int64_t unit_least(const struct pods *pods, const struct unit *unit);
void group_note_success(struct pods *pods, struct pod *pod);
void group_forget_success(struct pods *pods, struct pod *pod);
/* How many pods of the unit's group have succeeded in its present run. `least`: its minimum. */
int64_t group_succeeded(const struct pods *pods, const struct unit *unit, int64_t least);
/* The job that it was bound for, and its place there, as its annotation says; 0: none. */
int64_t pod_job_id(const json_t *object, int64_t *place);

/* What the object of its group says of all pods; nothing if there is none. */
struct pod_group_rank group_rank(const struct pods *pods, const struct unit *unit);
/* The value of the PriorityClass, or of KAI's of that name; 0: there is none. */
int64_t group_priority(const struct pods *pods, const char *class);
/* The object of an owner that makes a gang of the pod, with the gang; NULL with `*unknown`: there
 * is such an owner, and it is not known (yet). */
const json_t *group_of_owner(const struct pods *pods, const struct pod *pod,
                             struct pod_group *group, bool *unknown);

/* pods_queue.c */
void kube_queue_free(struct kube_queue *queue);
/* Makes tenants of Queues, and changes those that differ. */
void kube_queues_flush(struct pods *pods);

/* pods_order.c */
void order_forget(struct pods *pods, struct unit *unit, int place);
/* The agent of the node, where it follows pods, does so with this one. */
void order_watch(struct pods *pods, const struct pod *pod);
bool pod_is_watched(const struct pods *pods, const struct pod *pod);
/* How a pod came to its end. `finished`: it did its work, also if it was told to stop. */
struct pod_end {
	int64_t exit_code;
	const char *message;
	bool finished;
};
/* Tells the core that the task's memory is free. */
void order_released(struct pods *pods, struct unit *unit, int place, const struct pod_end *end);
/* Binds as was decided once more, or sends its job back to the queue. */
void order_bind_again(struct pods *pods, struct pod *pod);
void order_evict(struct pods *pods, struct pod *pod, bool by_eviction);
bool order_answer(void *context, const struct write *write, enum outcome outcome,
                  const json_t *object, const char *reason);

void order_bind(struct pods *pods, struct pod *pod);
/* It cannot be bound: the core is told, and has to decide again. */
void order_not_bound(struct pods *pods, struct pod *pod, const char *text);
/* It was told to stop before it was bound. */
void order_give_back(struct pods *pods, struct pod *pod);

/* pods_claim.c */
/* Adds what its claims ask for. False with a reason. */
bool claims_ask(const struct pods *pods, const json_t *pod, struct pod_gpus *gpus,
                struct error *error);
/* False: a claim of the pod was not made, or not heard of, yet. */
bool claims_are_there(const struct pods *pods, const json_t *pod);
/* Whether the driver of the node offers what claims can allocate. */
bool claims_suit_node(const struct pods *pods, const json_t *pod, const char *node);
void claims_slice(struct pods *pods, enum reflector_event event, const json_t *object);
/* Allocates the pod's claims by the reservation of its task, and then binds it. */
void claims_deliver(struct pods *pods, struct pod *pod);
/* Takes back what was allocated of a pod that is not bound. */
void claims_release(struct pods *pods, struct pod *pod);
void claims_forget(struct pod *pod);
void claims_answer(struct pods *pods, struct pod *pod, enum outcome outcome, const json_t *object,
                   const char *reason);

/* pods_say.c */
/* RFC 3339, with microseconds where the API wants them; to be freed. */
char *time_print(int64_t unix_ms, bool micro);
/* Writes an event and the condition PodScheduled=False, unless that was said before. */
void say_waits(struct pods *pods, struct pod *pod, const char *reason, const char *text);
void say_event(struct pods *pods, const struct pod *pod, const char *type, const char *reason,
               const char *text);

#endif
