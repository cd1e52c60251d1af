/* pod_claims.h - ResourceClaims of a pod: what they ask for, and the writes that allocate them */
#ifndef KUBE_POD_CLAIMS_H
#define KUBE_POD_CLAIMS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "kube/pod_gpus.h"

#define POD_CLAIM_DRIVER "gpu.gpu-scheduler.io"
#define POD_CLAIMS "/apis/resource.k8s.io/v1/resourceclaims"
#define POD_CLAIM_CLASSES "/apis/resource.k8s.io/v1/deviceclasses"
enum { POD_CLAIMS_MAX = 16 };

/* Finds the object of that resource, POD_CLAIMS or POD_CLAIM_CLASSES; NULL: it is not there. */
typedef const json_t *pod_claim_finder(const void *context, const char *resource,
                                       const char *namespace, const char *name);

bool pod_has_claims(const json_t *pod);

/* The names of the pod's claims. Those of templates are in its status once they were made; false:
 * one was not made yet. The names are the object's. */
struct pod_claim_names {
	const char *at[POD_CLAIMS_MAX];
	int count;
};
bool pod_claim_names(const json_t *pod, struct pod_claim_names *names);

/* What the claims ask for in sum: whole GPUs, or the same memory of each. False with a reason if
 * one is not there, asks for something else than devices of our driver, has a part that is not
 * evaluated here, or belongs to another pod. */
bool pod_claims_read(const json_t *pod, pod_claim_finder *find, const void *context,
                     struct pod_gpus *gpus, struct error *error);
/* How many devices the claim asks for. */
int64_t pod_claim_devices(const json_t *claim);

/* A device that a claim gets. `memory_mib` 0: the whole of it. */
struct claim_result {
	const char *pool, *device;
	int64_t memory_mib;
};

/* What brings a claim nearer to what it is to be. */
enum claim_step {
	CLAIM_STEP_NONE,     /* it is so */
	CLAIM_STEP_PROTECT,  /* PATCH of the claim: nobody can delete it while it is allocated */
	CLAIM_STEP_ALLOCATE, /* PATCH of its status */
	CLAIM_STEP_RELEASE,  /* PATCH of its status: an allocation that no pod uses is removed */
	CLAIM_STEP_REFUSED,  /* it is another pod's, or on its way out; with a reason */
};
/* The next step to a claim that is allocated with the first of `results` on the node, as many as
 * it asks for, and reserved for the pod; `node` NULL: to one that is not the pod's. `*patch`: a
 * merge patch, new, that is refused (409) if the claim has changed since; NULL where there is none.
 */
enum claim_step claim_next_step(const json_t *claim, const json_t *pod, const char *node,
                                const struct claim_result *results, int64_t result_count,
                                json_t **patch, struct error *error);

#endif
