/* api.c - what the driver asks of the API server: claims, and the ResourceSlice of this node */
#include "agent/kubelet/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/credentials.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/number.h"
#include "kubelet/slice.h"
#include "json/json_reader.h"
#include "json/member.h"

#define USER_AGENT "gpu-agent/" GPU_SCHEDULER_VERSION
#define RESOURCES "/apis/resource.k8s.io/v1"
enum {
	FETCH_MS = 10000,
	WRITE_EVERY_MS = 10000, /* at the oftenest */
	LOOK_EVERY_MS = 60000,
	STEP_MIB = 256,
};

enum publish {
	PUBLISH_IDLE,
	PUBLISH_NODE,  /* asks for the node's uid */
	PUBLISH_LOOK,  /* asks for the slice */
	PUBLISH_WRITE, /* writes it */
};

struct fetch {
	struct kube_api *api;
	struct fetch *next;
	struct client_call *call;
	char *uid;
};

struct kube_api {
	struct kube_api_settings settings;
	struct credentials *credentials;
	struct client *client;
	bool refused;
	struct fetch *fetches;
	/* The slice. */
	json_t *wanted; /* NULL: not known yet */
	enum publish publish;
	struct client_call *call;
	char node_uid[64];
	bool looked; /* at the node */
	int64_t next_ms, written_ms;
	int told; /* the last status that was logged; 0: all is well */
};

struct kube_api *kube_api_new(const struct kube_api_settings *settings, struct error *error)
{
	struct kube_api *api = NEW(struct kube_api);
	struct client_settings client = { .loop = settings->loop, .user_agent = USER_AGENT };

	api->settings = *settings;
	api->credentials = credentials_new(settings->loop, settings->kubeconfig, "", error);
	if (!api->credentials) {
		free(api);
		return NULL;
	}
	credentials_fill(api->credentials, &client);
	api->client = client_new(&client, error);
	if (api->client)
		return api;
	credentials_free(api->credentials);
	free(api);
	return NULL;
}

static void fetch_free(struct fetch *fetch)
{
	struct fetch **at = &fetch->api->fetches;

	while (*at != fetch)
		at = &(*at)->next;
	*at = fetch->next;
	free(fetch->uid);
	free(fetch);
}

void kube_api_free(struct kube_api *api)
{
	if (!api)
		return;
	for (struct fetch *fetch = api->fetches, *next; fetch; fetch = next) {
		next = fetch->next;
		client_give_up(fetch->call);
		free(fetch->uid);
		free(fetch);
	}
	if (api->call)
		client_give_up(api->call);
	client_free(api->client);
	credentials_free(api->credentials);
	json_decref(api->wanted);
	free(api);
}

static void fetch_done(void *context, int status, int64_t retry_after_s, const struct buffer *body,
                       const char *reason)
{
	struct fetch *fetch = context;
	struct kube_api *api = fetch->api;
	char failure[ERROR_TEXT_MAX];

	(void)retry_after_s;
	api->refused = api->refused || status == 401;
	if (status == 200 && body)
		api->settings.fetched(api->settings.context, fetch->uid,
		                      (struct text){ body->data, body->size }, NULL);
	else {
		if (status == 0)
			snprintf(failure, sizeof(failure),
			         "the API server cannot be reached: %.180s", reason ? reason : "");
		else
			snprintf(failure, sizeof(failure),
			         "the API server answered with status %d to a request for the "
			         "ResourceClaim",
			         status);
		api->settings.fetched(api->settings.context, fetch->uid, (struct text){ 0 },
		                      failure);
	}
	fetch_free(fetch);
}

void kube_api_fetch(struct kube_api *api, const char *uid, const char *namespace, const char *name)
{
	struct fetch *fetch = NEW(struct fetch);
	struct buffer path = { 0 };

	INVARIANT(claim_name_is_valid(namespace) && claim_name_is_valid(name));
	fetch->api = api;
	fetch->uid = memory_text(uid);
	fetch->next = api->fetches;
	api->fetches = fetch;
	buffer_print(&path, RESOURCES "/namespaces/%s/resourceclaims/%s", namespace, name);
	fetch->call = client_start(api->client, &(struct client_request){ .method = "GET",
	                                                                  .path = path.data,
	                                                                  .timeout_ms = FETCH_MS,
	                                                                  .done = fetch_done,
	                                                                  .context = fetch });
	buffer_free(&path);
}

static int64_t api_now_ms(void)
{
	return clock_boot_ms();
}

static void tell_status(struct kube_api *api, int status, const char *reason)
{
	if (status == api->told)
		return;
	api->told = status;
	log_at(LOG_WARNING, "the GPUs of this node cannot be published as a ResourceSlice",
	       LOG_NUMBER("status", status), LOG_TEXT("reason", reason ? reason : ""));
}

static void publish_call(struct kube_api *api, const char *method, const char *path,
                         const char *body,
                         void (*done)(void *context, int status, int64_t retry_after_s,
                                      const struct buffer *answer, const char *reason))
{
	api->call = client_start(
	    api->client, &(struct client_request){ .method = method,
	                                           .path = path,
	                                           .content_type = body ? "application/json" : NULL,
	                                           .body = body,
	                                           .timeout_ms = FETCH_MS,
	                                           .done = done,
	                                           .context = api });
}

static void publish_end(struct kube_api *api, int64_t wait_ms)
{
	api->publish = PUBLISH_IDLE;
	api->next_ms = api_now_ms() + wait_ms;
}

/* A refusal: 409 is another write in between, 404 a server without the resource. */
static void publish_failed(struct kube_api *api, int status, const char *reason)
{
	api->refused = api->refused || status == 401;
	tell_status(api, status, reason);
	publish_end(api, status == 404 ? LOOK_EVERY_MS : WRITE_EVERY_MS);
}

static void wrote_slice(void *context, int status, int64_t retry_after_s, const struct buffer *body,
                        const char *reason)
{
	struct kube_api *api = context;

	(void)retry_after_s, (void)body;
	api->call = NULL;
	if (status != 200 && status != 201) {
		publish_failed(api, status, reason);
		return;
	}
	if (api->written_ms == 0 || api->told != 0)
		log_at(LOG_INFO, "the GPUs of this node are published as a ResourceSlice",
		       LOG_TEXT("node", api->settings.node));
	api->told = 0;
	api->written_ms = api_now_ms();
	publish_end(api, LOOK_EVERY_MS);
}

static char *slice_path(const struct kube_api *api, bool named)
{
	struct buffer path = { 0 };

	buffer_print(&path, RESOURCES "/resourceslices");
	if (named)
		buffer_print(&path, "/%s-" CLAIM_DRIVER, api->settings.node);
	return path.data;
}

static void write_slice(struct kube_api *api, const json_t *there)
{
	json_t *slice = slice_update(api->wanted, there, STEP_MIB);

	if (!slice) {
		api->told = 0;
		publish_end(api, LOOK_EVERY_MS);
		return;
	}
	char *path = slice_path(api, there != NULL);
	char *body = json_dumps(slice, JSON_COMPACT);
	api->publish = PUBLISH_WRITE;
	publish_call(api, there ? "PUT" : "POST", path, body, wrote_slice);
	free(path);
	free(body);
	json_decref(slice);
}

static void saw_slice(void *context, int status, int64_t retry_after_s, const struct buffer *body,
                      const char *reason)
{
	struct kube_api *api = context;
	struct error error = { 0 };

	(void)retry_after_s;
	api->call = NULL;
	if (status == 404) {
		write_slice(api, NULL);
		return;
	}
	json_t *there = status == 200 && body
	                    ? json_read((struct text){ body->data, body->size }, NULL, &error)
	                    : NULL;
	if (there)
		write_slice(api, there);
	else
		publish_failed(api, status, status == 200 ? error.text : reason);
	json_decref(there);
}

static void look_at_slice(struct kube_api *api)
{
	char *path = slice_path(api, true);

	api->publish = PUBLISH_LOOK;
	publish_call(api, "GET", path, NULL, saw_slice);
	free(path);
}

static void set_owner(struct kube_api *api)
{
	json_t *metadata = json_object_get(api->wanted, "metadata");
	json_t *owner = json_pack("[{s:s,s:s,s:s,s:s}]", "apiVersion", "v1", "kind", "Node", "name",
	                          api->settings.node, "uid", api->node_uid);

	if (*api->node_uid && owner)
		json_object_set(metadata, "ownerReferences", owner);
	json_decref(owner);
}

/* Without a node there is no owner: the slice stays when the node goes. */
static void saw_node(void *context, int status, int64_t retry_after_s, const struct buffer *body,
                     const char *reason)
{
	struct kube_api *api = context;
	struct error error = { 0 };

	(void)retry_after_s, (void)reason;
	api->call = NULL;
	json_t *node = status == 200 && body
	                   ? json_read((struct text){ body->data, body->size }, NULL, &error)
	                   : NULL;
	const char *uid = member_text(json_object_get(node, "metadata"), "uid");
	if (strlen(uid) < sizeof(api->node_uid))
		memcpy(api->node_uid, uid, strlen(uid) + 1);
	api->looked = *api->node_uid != '\0';
	json_decref(node);
	set_owner(api);
	if (status == 0 || status == 401)
		publish_failed(api, status, reason);
	else
		look_at_slice(api);
}

static void begin_to_publish(struct kube_api *api)
{
	struct buffer path = { 0 };

	if (api->looked) {
		look_at_slice(api);
		return;
	}
	api->publish = PUBLISH_NODE;
	buffer_print(&path, "/api/v1/nodes/%s", api->settings.node);
	publish_call(api, "GET", path.data, NULL, saw_node);
	buffer_free(&path);
}

void kube_api_offer(struct kube_api *api, const struct slice_gpu *gpus, int64_t gpu_count)
{
	json_t *wanted = slice_make(api->settings.node, api->node_uid, gpus, gpu_count);
	json_t *change = api->wanted ? slice_update(wanted, api->wanted, STEP_MIB) : NULL;

	if (api->wanted && !change) {
		json_decref(wanted);
		return;
	}
	json_decref(change);
	json_decref(api->wanted);
	api->wanted = wanted;
	if (api->publish == PUBLISH_IDLE)
		api->next_ms = min64(api->next_ms, api->written_ms + WRITE_EVERY_MS);
}

void kube_api_look(struct kube_api *api)
{
	api->next_ms = min64(api->next_ms, api_now_ms());
}

void kube_api_time(struct kube_api *api)
{
	struct client_settings client = { .loop = api->settings.loop, .user_agent = USER_AGENT };
	struct error error = { 0 };

	if (api->refused)
		credentials_were_refused(api->credentials);
	api->refused = false;
	if (credentials_time(api->credentials, clock_unix_ms())) {
		credentials_fill(api->credentials, &client);
		if (!client_renew(api->client, &client, &error))
			log_at(LOG_ERROR,
			       "the changed credentials for the API server cannot be used",
			       LOG_TEXT("reason", error.text));
	}
	if (api->wanted && api->publish == PUBLISH_IDLE && api_now_ms() >= api->next_ms &&
	    credentials_are_there(api->credentials))
		begin_to_publish(api);
}

void kube_api_flush(struct kube_api *api)
{
	client_flush(api->client);
}
