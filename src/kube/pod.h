/* pod.h - what a pod asks for, in the words of the core */
#ifndef KUBE_POD_H
#define KUBE_POD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

/* Pods and nodes are JSON objects as the API server gives them, or as they were written, with
 * nothing defaulted. Members of a wrong type read as missing. */

/* What a pod takes of its node: all containers, the largest init container, sidecars, overhead
 * and what the pod asks for as a whole, and no less than what was allocated. `counts`: lines
 * name=n, of all that is counted (core/queue/demand.h), with 1 of `pods`. */
struct pod_request {
	int64_t cpu_milli, memory_bytes;
	struct buffer counts;
};

/* What the scheduler is set to; all may be NULL. */
struct pod_settings {
	const json_t *ignored_resources, *ignored_groups; /* arrays of texts */
	const json_t *default_constraints; /* for pods without topologySpreadConstraints */
	const json_t *services, *replica_sets;
	const json_t *namespaces; /* objects of all namespaces, for namespace selectors */
};

/* False with a reason if a quantity is malformed. The buffer is to be freed in any case. */
bool pod_request_read(const json_t *pod, const struct pod_settings *settings,
                      struct pod_request *request, struct error *error);
/* What a node declares, in the same form. */
bool pod_node_capacity(const json_t *node, struct pod_request *capacity, struct error *error);

/* By which rules select it: its namespace, as @namespace, and its labels; @preempts if it never
 * does. */
void pod_marks(const json_t *pod, struct buffer *marks);
/* Its host ports, required affinity to pods, and topology spread, as rules of the core. False
 * with a reason if one of them is malformed. */
bool pod_rules(const json_t *pod, const struct pod_settings *settings, struct buffer *rules,
               struct error *error);
/* True if it must not be placed yet. */
bool pod_is_gated(const json_t *pod);
/* True if it has ended and takes nothing any more. */
bool pod_has_ended(const json_t *pod);

/* What is fixed about a pod and a node, as enum node_class_bit of the core: whether the node may
 * take it, is selected, is tolerated. Appends what keeps it off as sentences that "; " joins.
 * `enforced`: an affinity to nodes that the scheduler adds to all pods; NULL. */
unsigned pod_judge_node(const json_t *pod, const json_t *node, const json_t *enforced,
                        struct buffer *reasons);
#define POD_JUDGE_NAME "it asks for node "
#define POD_JUDGE_UNSCHEDULABLE "the node is unschedulable"
#define POD_JUDGE_SELECTOR "its node selector or affinity does not match"
#define POD_JUDGE_ENFORCED "the scheduler's own node affinity does not match"
#define POD_JUDGE_TAINT "it does not tolerate the taint "

#endif
