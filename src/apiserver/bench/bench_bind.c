/* bench_bind.c - how fast a client alone binds pods: the yardstick of scripts/bench-kube
 *
 * bench_bind KUBECONFIG PODS NODES FLIGHT [watch]: binds the pods pod-0, pod-1, ... of the
 * namespace default to the nodes node-0, node-1, ... in turns, with FLIGHT requests on their way.
 * `watch`: beside watches of pods and nodes, whose bytes are read and thrown away. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/credentials.h"
#include "base/memory.h"

struct bare {
	uv_loop_t loop;
	struct client *writes, *watches;
	uv_prepare_t before_wait;
	int64_t pods, nodes, next, done, failed;
	int64_t began_ns;
};

static void start_bind(struct bare *bare);

static void bind_done(void *context, int status, int64_t retry_after_s, const struct buffer *body,
                      const char *reason)
{
	struct bare *bare = context;

	(void)retry_after_s, (void)reason;
	if (status != 201 && bare->failed++ == 0)
		fprintf(stderr, "bench_bind: %d: %.300s\n", status, body ? body->data : reason);
	bare->done++;
	if (bare->next < bare->pods)
		start_bind(bare);
	else if (bare->done == bare->pods)
		uv_stop(&bare->loop);
}

static void start_bind(struct bare *bare)
{
	char path[128], body[512];
	int64_t pod = bare->next++;

	snprintf(path, sizeof(path), "/api/v1/namespaces/default/pods/pod-%lld/binding",
	         (long long)pod);
	snprintf(body, sizeof(body),
	         "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"pod-%lld\","
	         "\"namespace\":\"default\",\"annotations\":{\"gpu-scheduler.io/job\":"
	         "\"job-%lld/0\",\"gpu-scheduler.io/term\":\"1\"}},\"target\":{\"apiVersion\":"
	         "\"v1\",\"kind\":\"Node\",\"name\":\"node-%lld\"}}",
	         (long long)pod, (long long)pod, (long long)(pod % bare->nodes));
	client_start(
	    bare->writes,
	    &(struct client_request){
		.method = "POST", .path = path, .body = body, .done = bind_done, .context = bare });
}

static bool watch_data(void *context, const char *data, size_t size)
{
	(void)context, (void)data, (void)size;
	return true;
}

static void watch_done(void *context, int status, int64_t retry_after_s, const struct buffer *body,
                       const char *reason)
{
	(void)context, (void)retry_after_s, (void)body;
	fprintf(stderr, "bench_bind: a watch ended: %d %s\n", status, reason ? reason : "");
}

static void start_watch(struct bare *bare, const char *resource)
{
	char path[256];

	snprintf(path, sizeof(path),
	         "/api/v1/%s?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	         "&allowWatchBookmarks=true",
	         resource);
	client_start(bare->watches, &(struct client_request){ .method = "GET",
	                                                      .path = path,
	                                                      .timeout_ms = 600000,
	                                                      .data = watch_data,
	                                                      .done = watch_done,
	                                                      .context = bare });
}

static void bare_flush(uv_prepare_t *handle)
{
	struct bare *bare = handle->data;

	client_flush(bare->writes);
	client_flush(bare->watches);
}

int main(int argc, char **argv)
{
	struct bare bare = { 0 };
	struct error error;

	if (argc < 5) {
		fprintf(stderr, "usage: bench_bind KUBECONFIG PODS NODES FLIGHT [watch]\n");
		return 2;
	}
	bare.pods = strtoll(argv[2], NULL, 10);
	bare.nodes = strtoll(argv[3], NULL, 10);
	uv_loop_init(&bare.loop);
	struct credentials *credentials = credentials_new(&bare.loop, argv[1], "", &error);
	struct client_settings settings = { .loop = &bare.loop, .user_agent = "bench_bind" };
	if (credentials) {
		credentials_fill(credentials, &settings);
		bare.writes = client_new(&settings, &error);
	}
	if (bare.writes)
		bare.watches = client_new(&settings, &error);
	if (!bare.watches) {
		fprintf(stderr, "bench_bind: %s\n", error.text);
		return 1;
	}
	uv_prepare_init(&bare.loop, &bare.before_wait);
	bare.before_wait.data = &bare;
	uv_prepare_start(&bare.before_wait, bare_flush);
	if (argc > 5) {
		start_watch(&bare, "pods");
		start_watch(&bare, "nodes");
	}
	bare.began_ns = (int64_t)uv_hrtime();
	for (int64_t i = strtoll(argv[4], NULL, 10); i > 0 && bare.next < bare.pods; i--)
		start_bind(&bare);
	uv_run(&bare.loop, UV_RUN_DEFAULT);
	double seconds = (double)((int64_t)uv_hrtime() - bare.began_ns) / 1e9;
	printf("{\"binds\": %lld, \"failed\": %lld, \"seconds\": %.3f}\n", (long long)bare.done,
	       (long long)bare.failed, seconds);
	return bare.failed > 0;
}
