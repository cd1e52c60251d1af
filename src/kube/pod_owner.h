/* pod_owner.h - the pods that an owner makes, as gangs: JobSet, PyTorchJob, MPIJob, RayCluster */
#ifndef KUBE_POD_OWNER_H
#define KUBE_POD_OWNER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* What a pod says of its owner. */
struct pod_owner {
	const char *resource; /* the API path of the owners of its kind */
	const char *name, *role;
};

/* The paths of owners that are understood; ends with NULL. */
extern const char *const pod_owner_resources[];

/* False if the pod has no owner of these kinds. The texts are the pod's. */
bool pod_owner_read(const json_t *pod, struct pod_owner *owner);

/* How many pods start together with one of that role. `*whole`: with those of all roles, which ask
 * for the same; otherwise with those of its own role alone. */
int64_t pod_owner_gang(const char *resource, const json_t *object, const char *role, bool *whole);

#endif
