/* claim.h - what a ResourceClaim of Kubernetes gives a pod: memory on GPUs of this node */
#ifndef KUBELET_CLAIM_H
#define KUBELET_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#define CLAIM_DRIVER "gpu.gpu-scheduler.io"
#define CLAIM_CAPACITY "memory" /* the capacity of a device that claims share */
enum { CLAIM_DEVICES_MAX = 64, CLAIM_PODS_MAX = 256, CLAIM_TEXT_MAX = 253 };

/* One result of the allocation. `memory_mib` 0: the device was given as a whole. */
struct claim_device {
	const char *request, *pool, *device;
	const char *share; /* "": the device is not shared */
	int64_t memory_mib;
	/* Found when the claim is prepared, and kept: */
	const char *uuid;
	int64_t unexplained_mib; /* memory that no process explained before this claim had any */
};

/* Texts and lists are in the arena of the claim. Names and uids have no more in them than
 * Kubernetes allows, so they can be parts of paths. */
struct claim {
	struct arena arena;
	const char *uid, *namespace, *name;
	const char *pods[CLAIM_PODS_MAX]; /* uids of the pods that it is reserved for */
	int64_t pod_count;
	struct claim_device devices[CLAIM_DEVICES_MAX]; /* of this driver, on this node */
	int64_t device_count;
};

/* True for what can be a uid: letters, digits and '-', 1 to 63. */
bool claim_uid_is_valid(const char *uid);
/* True for what can be the name of an object or a namespace: lower case letters, digits, '-' and
 * '.', 1 to 253, not beginning with '.'. */
bool claim_name_is_valid(const char *name);

/* Reads a ResourceClaim of resource.k8s.io: what it allocates from the pool. NULL with a reason
 * where it is none, is not allocated or reserved, or has no device of this driver and pool. */
struct claim *claim_read(struct text json, const char *pool, struct error *error);

/* What is kept of a prepared claim, as a line of JSON; and back. NULL with a reason. */
void claim_write(const struct claim *claim, struct buffer *json);
struct claim *claim_load(struct text json, struct error *error);

/* A copy of its own. */
struct claim *claim_copy(const struct claim *claim);
void claim_free(struct claim *claim);

#endif
