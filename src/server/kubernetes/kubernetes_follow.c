/* kubernetes_follow.c - watches of the API server, and writes to it */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/number.h"
#include "kube/pod_group.h"
#include "kube/pod_owner.h"
#include "server/kubernetes/kubernetes_local.h"

enum {
	WATCH_QUIET_MS = 330000, /* a watch ends by itself after 290 s */
	WAIT_LEAST_MS = 100,
	WAIT_MOST_MS = 10000,
	ABSENT_MS = 60000, /* a resource that the server does not have, or hides, is looked for
	                      again */
};

static int64_t follow_now_ms(const struct kubernetes *kubernetes)
{
	return (int64_t)uv_now(kubernetes->loop);
}

static void sink_node(void *context, enum reflector_event event, const json_t *object)
{
	struct followed *followed = context;
	pods_node(followed->kubernetes->pods, event, object);
}

static void sink_pod(void *context, enum reflector_event event, const json_t *object)
{
	struct followed *followed = context;
	pods_pod(followed->kubernetes->pods, event, object);
}

static void sink_namespace(void *context, enum reflector_event event, const json_t *object)
{
	struct followed *followed = context;
	pods_namespace(followed->kubernetes->pods, event, object);
}

static void sink_group(void *context, enum reflector_event event, const json_t *object)
{
	struct followed *followed = context;
	pods_group(followed->kubernetes->pods, followed->reflector.path, event, object);
}

static void sink_queue(void *context, enum reflector_event event, const json_t *object)
{
	struct followed *followed = context;
	pods_queue(followed->kubernetes->pods, event, object);
}

static void follow(struct kubernetes *kubernetes, const char *path, bool optional,
                   reflector_sink *sink)
{
	INVARIANT(kubernetes->followed_count < FOLLOWED_MAX);
	struct followed *followed = &kubernetes->followed[kubernetes->followed_count++];

	followed->kubernetes = kubernetes;
	followed->optional = optional;
	followed->reflector =
	    (struct reflector){ .path = path, .query = "", .sink = sink, .context = followed };
}

void kubernetes_follow(struct kubernetes *kubernetes)
{
	follow(kubernetes, "/api/v1/namespaces", false, sink_namespace);
	follow(kubernetes, "/api/v1/nodes", false, sink_node);
	follow(kubernetes, "/api/v1/pods", false, sink_pod);
	for (size_t i = 0; pod_group_resources[i]; i++)
		follow(kubernetes, pod_group_resources[i], true, sink_group);
	for (size_t i = 0; pod_owner_resources[i]; i++)
		follow(kubernetes, pod_owner_resources[i], true, sink_group);
	follow(kubernetes, PODS_PRIORITY_CLASSES, true, sink_group);
	follow(kubernetes, PODS_CLAIM_CLASSES, true, sink_group);
	follow(kubernetes, PODS_SLICES, true, sink_group);
	follow(kubernetes, PODS_CLAIMS, true, sink_group);
	follow(kubernetes, PODS_VOLUMES, true, sink_group);
	follow(kubernetes, PODS_VOLUME_CLAIMS, true, sink_group);
	if (kubernetes->config->kubernetes.kai_queues)
		follow(kubernetes, PODS_QUEUES, true, sink_queue);
}

void kubernetes_unfollow(struct kubernetes *kubernetes)
{
	for (size_t i = 0; i < kubernetes->followed_count; i++) {
		if (kubernetes->followed[i].call)
			client_give_up(kubernetes->followed[i].call);
		kubernetes->followed[i].call = NULL;
	}
}

static bool followed_data(void *context, const char *data, size_t size)
{
	struct followed *followed = context;
	struct error error;

	if (followed->reason[0])
		return false;
	followed->kubernetes->dirty = true;
	pods_time(followed->kubernetes->pods,
	          followed->kubernetes->port->time_ms(followed->kubernetes->port));
	if (reflector_feed(&followed->reflector, data, size, &error)) {
		followed->wait_ms = 0;
		return true;
	}
	memcpy(followed->reason, error.text, sizeof(followed->reason));
	return false;
}

static void wait_to_follow(struct followed *followed, int status)
{
	int64_t wait_ms = max64(followed->wait_ms, WAIT_LEAST_MS);

	followed->wait_ms = min64(wait_ms * 2, WAIT_MOST_MS);
	if ((status == 404 || status == 403) && followed->optional)
		wait_ms = ABSENT_MS;
	followed->retry_ms = follow_now_ms(followed->kubernetes) + wait_ms;
}

static void followed_done(void *context, int status, int64_t retry_after_s,
                          const struct buffer *body, const char *reason)
{
	struct followed *followed = context;
	struct kubernetes *kubernetes = followed->kubernetes;
	struct error error = { 0 };

	(void)retry_after_s, (void)body;
	followed->call = NULL;
	kubernetes->dirty = true;
	bool good =
	    status == 200 && !followed->reason[0] && reflector_end(&followed->reflector, &error);
	if (status != 200 && status != 0)
		reflector_status(&followed->reflector, status, &error);
	if (status == 401)
		kubernetes->refused = true;
	if (good) {
		followed->retry_ms = 0;
		return;
	}
	if (status == 0)
		reflector_lost(&followed->reflector);
	wait_to_follow(followed, status);
	if (status == 404 && followed->optional)
		return;
	log_at(LOG_WARNING, "a watch of the API server ended",
	       LOG_TEXT("resource", followed->reflector.path), LOG_NUMBER("status", status),
	       LOG_TEXT("reason", followed->reason[0] ? followed->reason
	                          : error.text[0]     ? error.text
	                                              : reason));
}

static void begin_to_follow(struct followed *followed)
{
	struct buffer path = { 0 };

	followed->reason[0] = '\0';
	reflector_request(&followed->reflector, &path);
	followed->call = client_start(followed->kubernetes->watches,
	                              &(struct client_request){ .method = "GET",
	                                                        .path = path.data,
	                                                        .timeout_ms = WATCH_QUIET_MS,
	                                                        .data = followed_data,
	                                                        .done = followed_done,
	                                                        .context = followed });
	buffer_free(&path);
}

void kubernetes_follow_due(struct kubernetes *kubernetes)
{
	int64_t now_ms = follow_now_ms(kubernetes);

	for (size_t i = 0; i < kubernetes->followed_count; i++) {
		struct followed *followed = &kubernetes->followed[i];
		if (!followed->call && followed->retry_ms <= now_ms)
			begin_to_follow(followed);
	}
}

/* A write on its way. */
struct sent {
	struct kubernetes *kubernetes;
	struct write *write;
};

static void write_done(void *context, int status, int64_t retry_after_s, const struct buffer *body,
                       const char *reason)
{
	struct sent *sent = context;
	struct kubernetes *kubernetes = sent->kubernetes;
	struct write *write = sent->write;

	free(sent);
	if (kubernetes->stopped)
		return;
	kubernetes->dirty = true;
	if (status == 401)
		kubernetes->refused = true;
	pods_time(kubernetes->pods, kubernetes->port->time_ms(kubernetes->port));
	writer_answer(pods_writer(kubernetes->pods), write, status, retry_after_s,
	              status == 0 ? reason : body->data,
	              kubernetes->port->time_ms(kubernetes->port));
}

void kubernetes_write_due(struct kubernetes *kubernetes)
{
	int64_t now_ms = kubernetes->port->time_ms(kubernetes->port);
	struct write *write;

	while ((write = writer_next(pods_writer(kubernetes->pods), now_ms))) {
		struct sent *sent = NEW(struct sent);
		sent->kubernetes = kubernetes;
		sent->write = write;
		client_start(
		    kubernetes->writes,
		    &(struct client_request){ .method = write->looks ? "GET" : write->method,
		                              .path = write->looks ? write->look_path : write->path,
		                              .content_type = write->content_type,
		                              .body = write->looks ? NULL : write->body,
		                              .done = write_done,
		                              .context = sent });
	}
}
