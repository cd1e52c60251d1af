/* pod_volumes.h - which nodes can mount the volumes of a pod */
#ifndef KUBE_POD_VOLUMES_H
#define KUBE_POD_VOLUMES_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"

/* Finds the claim (volume false) or the volume of that name; NULL: it is not there. */
typedef const json_t *pod_volume_finder(const void *context, bool volume, const char *namespace,
                                        const char *name);

/* The volumes that the pod's claims are bound to, as a new array of their objects; NULL with a
 * reason if a claim is not there, or not bound, or its volume is not known. */
json_t *pod_volumes(const json_t *pod, pod_volume_finder *find, const void *context,
                    struct error *error);
/* Whether the node can mount all of them; appends which it cannot, as in pod_judge_node(). */
bool pod_volumes_suit(const json_t *volumes, const json_t *node, struct buffer *reasons);
/* A text that is equal for volumes that the same nodes can mount; appends it. */
void pod_volumes_class(const json_t *volumes, struct buffer *name);

#endif
