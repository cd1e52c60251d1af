/* api.h - what the driver asks of the API server: claims, and the ResourceSlice of this node */
#ifndef AGENT_KUBELET_API_H
#define AGENT_KUBELET_API_H

#include <jansson.h>
#include <uv.h>

#include "base/error.h"
#include "base/text.h"

/* In the loop's thread alone. */
struct kube_api;

struct kube_api_settings {
	uv_loop_t *loop;
	const char *kubeconfig, *node; /* kubeconfig "": the account of the pod that we run in */
	/* A claim as it is, or why it could not be had. Never from within a call here. */
	void (*fetched)(void *context, const char *uid, struct text json, const char *failure);
	void *context;
};

/* NULL with a reason, such as a kubeconfig that cannot be read. */
struct kube_api *kube_api_new(const struct kube_api_settings *settings, struct error *error);
/* Calls that were not answered are given up. Freed when the loop has closed its handles. */
void kube_api_free(struct kube_api *api);

/* Asks for a claim. Names are valid as in claim.h. */
void kube_api_fetch(struct kube_api *api, const char *uid, const char *namespace, const char *name);
/* The devices that the node's slice is to have, as slice_make() wants them: written when they are
 * other than what the server has, at most every 10 s, and looked at every minute. */
struct slice_gpu;
void kube_api_offer(struct kube_api *api, const struct slice_gpu *gpus, int64_t gpu_count);
/* The kubelet has just registered the driver: it may have removed the slice. */
void kube_api_look(struct kube_api *api);
/* Once a second or so: renews credentials, and writes what is due. */
void kube_api_time(struct kube_api *api);
/* Sends what there is to send, when the loop is about to wait. */
void kube_api_flush(struct kube_api *api);

#endif
