/* pod_group.h - which group a pod starts with, whose it is, and how it ranks */
#ifndef KUBE_POD_GROUP_H
#define KUBE_POD_GROUP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

/* A group as its pods name it. */
struct pod_group {
	char name[320]; /* "kind/name"; empty: the pod is by itself */
	int64_t least;  /* pods that start together, as the pods themselves say; 0: see `object` */
	const char *resource; /* the API path of the PodGroups where its object is; NULL: none */
};

/* The first that applies: spec.schedulingGroup; the annotation pod-group-name (KAI); the label
 * scheduling.x-k8s.io/pod-group; the annotation scheduling.k8s.io/group-name (Volcano); the
 * labels of a LeaderWorkerSet; the annotations gpu-scheduler.io/group and group-size. */
void pod_group_read(const json_t *pod, struct pod_group *group);
/* The minimum that a PodGroup of any of these kinds asks for; at least 1. */
int64_t pod_group_minimum(const json_t *object);
/* The paths of PodGroups that may be read, in the order above; ends with NULL. */
extern const char *const pod_group_resources[];
/* What a PodGroup of KAI says of all its pods. The texts are the object's. */
struct pod_group_rank {
	const char *queue, *priority_class; /* "": nothing */
	int preemptible;                    /* 1, 0, or -1: nothing */
};
struct pod_group_rank pod_group_rank(const char *resource, const json_t *object);

/* The uid of the controller that would replace the pod; "". */
const char *pod_controller(const json_t *pod);
/* The tenant that its labels name: gpu-scheduler.io/tenant, kai.scheduler/queue, runai/queue; "".
 * `*queue`: it is one of KAI's queues. */
const char *pod_tenant(const json_t *pod, bool *queue);
/* Its priority, and whether it may be stopped for others. */
int64_t pod_priority(const json_t *pod);
bool pod_is_preemptible(const json_t *pod);
/* Where nothing else is said, those of a lower priority may be stopped for others. */
#define POD_PREEMPTIBLE_BELOW 100
/* KAI's names of priorities, which need no PriorityClass; 0: it is none. */
int64_t pod_priority_of_name(const char *name);
/* The label that names a queue of KAI, on a pod or its owner; "". */
const char *pod_queue_label(const json_t *object);

/* The class of nodes that the pod shares with all pods that ask for the same nodes. */
void pod_node_class(const json_t *pod, bool parts, struct buffer *name);

#endif
