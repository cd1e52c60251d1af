/* pods.h - the pods of a Kubernetes cluster as jobs of the core, without I/O */
#ifndef PODS_PODS_H
#define PODS_PODS_H

#include <jansson.h>

#include "core/record/command.h"
#include "core/record/effects.h"
#include "kube/pod_claims.h"
#include "kube/reflector.h"
#include "kube/writer.h"

/* Objects of the API server come in, commands for the core go out; orders of the core come in,
 * writes to the API server go out. A pod that names our scheduler is a job with one task, and the
 * pods of a group are a job with several. All other pods are what others take of their nodes.
 *
 * Nothing is sent before all nodes and pods have been heard of, and what the core knows of
 * earlier jobs has been told (pods_known, pods_begin). A reservation is the truth from the
 * decision until its pod is gone: no answer and no silence of the API server frees it. */
struct pods;

struct pods_settings {
	const char *const *scheduler_names; /* ends with NULL; live as long as the pods */
	const char *default_tenant;         /* "" : none */
	/* NAMESPACE=TENANT: the namespace may use the tenant, the first of them by default. */
	const char *const *tenants; /* ends with NULL */
	bool kai_queues;            /* labels that name a queue are taken as tenants */
	int64_t force_release_ms;   /* a pod deleted by force holds its memory that long */
	int64_t replace_ms;         /* an evicted pod has that long to be made again */
};

struct pods_port {
	/* A command for the core, copied by the callee; those that are sent one after the other are
	 * applied in this order. `ticket` of a SUBMIT comes back with pods_submitted(). */
	void (*command)(void *context, const struct command *command, int64_t ticket);
	/* What the core knows; appends, false if it does not. */
	bool (*node_name)(void *context, int64_t node_id, struct buffer *name);
	bool (*gpu_uuid)(void *context, int64_t gpu_id, struct buffer *uuid);
	int64_t (*tenant)(void *context, const char *name); /* 0: there is none */
	/* The tenant as it is, or with id 0 as a new one of that name would be; in the arena. */
	void (*tenant_record)(void *context, const char *name, struct arena *arena,
	                      struct tenant_record *tenant);
	bool (*node_has_agent)(void *context, const char *name);
	/* The agent follows pods: it says when they run, and when their memory is free. */
	bool (*node_is_watched)(void *context, const char *name);
	/* What its agent says that it has; 0: there is none. */
	void (*node_amounts)(void *context, const char *name, int64_t *cpu_milli,
	                     int64_t *host_bytes);
	/* The job has ended; `*cancelled`: by a person. */
	bool (*job_is_over)(void *context, int64_t job_id, bool *cancelled);
	/* START with the uid of a pod, or STOP, for the agent of its node. */
	void (*order)(void *context, const struct effect *effect);
	int64_t (*term)(void *context);
	/* A sentence for the log. */
	void (*note)(void *context, const char *sentence);
	void *context;
};

struct pods *pods_new(const struct pods_settings *settings, const struct pods_port *port);
void pods_free(struct pods *pods);

/* What the core has of a job that was a pod's, before pods_begin(). */
struct pods_known {
	int64_t job_id;
	const char *key; /* the job's idempotency key */
	bool held;
	int64_t tasks;
};
struct pods_known_task {
	int64_t job_id, task, reservation_id, node_id; /* reservation_id 0: it has none */
	bool stopping;
	bool live;         /* its pod was said to run */
	bool ended;        /* it does not run again */
	struct rows parts; /* enum part_column */
};
void pods_know(struct pods *pods, const struct pods_known *known);
void pods_know_task(struct pods *pods, const struct pods_known_task *task);
/* Prefix of the idempotency keys of all jobs that are pods. */
#define PODS_KEY "kubernetes/"

/* From the reflectors; each says once that it is synced. */
void pods_node(struct pods *pods, enum reflector_event event, const json_t *object);
void pods_pod(struct pods *pods, enum reflector_event event, const json_t *object);
void pods_namespace(struct pods *pods, enum reflector_event event, const json_t *object);
/* `resource`: one of pod_group_resources or pod_owner_resources, or one of
 * these. */
#define PODS_VOLUMES "/api/v1/persistentvolumes"
#define PODS_VOLUME_CLAIMS "/api/v1/persistentvolumeclaims"
#define PODS_CLAIMS POD_CLAIMS
#define PODS_CLAIM_CLASSES POD_CLAIM_CLASSES
#define PODS_SLICES "/apis/resource.k8s.io/v1/resourceslices"
#define PODS_PRIORITY_CLASSES "/apis/scheduling.k8s.io/v1/priorityclasses"
void pods_group(struct pods *pods, const char *resource, enum reflector_event event,
                const json_t *object);

/* A Queue of KAI, if kai_queues is set. */
#define PODS_QUEUES "/apis/scheduling.run.ai/v2/queues"
void pods_queue(struct pods *pods, enum reflector_event event, const json_t *object);

/* The core is loaded, and all that it knows was told. */
void pods_begin(struct pods *pods);
bool pods_is_ready(const struct pods *pods);

/* START and STOP of a job whose idempotency key begins with PODS_KEY, and that it has ended. An
 * order may come before pods_submitted(). STOP: the key may be unknown, "". */
void pods_effect(struct pods *pods, const char *key, const struct effect *effect);
void pods_job_ended(struct pods *pods, const char *key);
void pods_submitted(struct pods *pods, int64_t ticket, int64_t job_id, const struct error *error);

/* To be called after a round of the others, and when pods_wake_ms() has come. */
void pods_time(struct pods *pods, int64_t now_ms);
void pods_flush(struct pods *pods);
int64_t pods_wake_ms(const struct pods *pods);

/* The writes that may leave; answers are told to writer_answer(), and then pods_flush(). */
struct writer *pods_writer(struct pods *pods);

/* The next waiting job whose explanation is wanted, 0: none now; and the explanation. */
int64_t pods_wants_why(struct pods *pods);
void pods_why(struct pods *pods, int64_t job_id, const char *text);

/* For metrics and tests. */
struct pods_figures {
	int64_t nodes, pods, ours, bound, waiting, binds, binds_refused, evictions;
};
struct pods_figures pods_figures(const struct pods *pods);

#endif
