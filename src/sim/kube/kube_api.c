/* kube_api.c - an API server: objects, versions, watches, lists in pages, writes */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kube/kube_world.h"

/* Bindings that were on their way to, or decided from, the state before a set-back. */
#define SET_BACK_MS 60000
#define BUMP 1000000

const char *const kube_paths[KUBE_RESOURCES] = {
	[KUBE_NAMESPACES] = "/api/v1/namespaces",
	[KUBE_NODES_RESOURCE] = "/api/v1/nodes",
	[KUBE_PODS] = "/api/v1/pods",
};

static json_t *metadata_in(const json_t *object)
{
	return json_object_get(object, "metadata");
}

static const char *key_of_object(const json_t *object, char *key, size_t size)
{
	const char *namespace = member_text(metadata_in(object), "namespace");

	snprintf(key, size, "%s%s%s", namespace, *namespace ? "/" : "",
	         member_text(metadata_in(object), "name"));
	return key;
}

char *pod_key(const json_t *pod, char *key, size_t size)
{
	key_of_object(pod, key, size);
	return key;
}

bool api_is_down(const struct kube *kube)
{
	return kube->now_ms < kube->api.down_until_ms;
}

json_t *api_get(const struct kube *kube, enum kube_resource resource, const char *key)
{
	return json_object_get(kube->api.objects[resource], key);
}

char *api_new_uid(struct kube *kube, char *uid, size_t size)
{
	snprintf(uid, size, "u%lld", (long long)++kube->api.last_uid);
	return uid;
}

static void log_change(struct kube *kube, enum kube_resource resource, const char *type,
                       json_t *object)
{
	struct kube_api *api = &kube->api;
	char version[24];

	snprintf(version, sizeof(version), "%lld", (long long)++api->version);
	json_object_set_new(metadata_in(object), "resourceVersion", json_string(version));
	array_reserve(api->changes, api->change_capacity, api->change_count + 1);
	api->changes[api->change_count++] = (struct kube_change){ .version = api->version,
		                                                  .resource = resource,
		                                                  .type = type,
		                                                  .object = json_incref(object) };
}

void api_put(struct kube *kube, enum kube_resource resource, json_t *object)
{
	char key[128];
	bool known = api_get(kube, resource, key_of_object(object, key, sizeof(key))) != NULL;

	log_change(kube, resource, known ? "MODIFIED" : "ADDED", object);
	json_object_set_new(kube->api.objects[resource], key, object);
}

void api_delete(struct kube *kube, enum kube_resource resource, const char *key)
{
	const json_t *object = api_get(kube, resource, key);

	if (!object)
		return;
	json_t *last = json_deep_copy(object);
	log_change(kube, resource, "DELETED", last);
	json_decref(last);
	json_object_del(kube->api.objects[resource], key);
}

void api_delete_pod(struct kube *kube, const char *key, bool by_force)
{
	const json_t *pod = api_get(kube, KUBE_PODS, key);

	if (!pod)
		return;
	bool bound = *member_text(json_object_get(pod, "spec"), "nodeName") != '\0';
	if (by_force || !bound) {
		kube_note(kube, "pod %s is deleted%s", key, by_force ? " by force" : "");
		if (by_force)
			text_map_put(&kube->forced, member_text(metadata_in(pod), "uid"), kube);
		api_delete(kube, KUBE_PODS, key);
		return;
	}
	if (member_has(metadata_in(pod), "deletionTimestamp"))
		return;
	kube_note(kube, "pod %s is to go", key);
	json_t *copy = json_deep_copy(pod);
	json_object_set_new(metadata_in(copy), "deletionTimestamp",
	                    json_string("2026-01-01T00:00:00Z"));
	api_put(kube, KUBE_PODS, copy);
}

static void free_snapshot(struct kube_snapshot *snapshot)
{
	for (int i = 0; i < KUBE_RESOURCES; i++)
		json_decref(snapshot->objects[i]);
	*snapshot = (struct kube_snapshot){ 0 };
}

/* Objects are never changed, so that a shallow copy keeps them as they are. */
static struct kube_snapshot snapshot_now(const struct kube *kube)
{
	struct kube_snapshot snapshot = { .version = kube->api.version };

	for (int i = 0; i < KUBE_RESOURCES; i++)
		snapshot.objects[i] = json_copy(kube->api.objects[i]);
	return snapshot;
}

void api_snapshot(struct kube *kube)
{
	struct kube_api *api = &kube->api;

	if (api->snapshot_count == KUBE_SNAPSHOTS) {
		free_snapshot(&api->snapshots[0]);
		memmove(api->snapshots, api->snapshots + 1,
		        (KUBE_SNAPSHOTS - 1) * sizeof(api->snapshots[0]));
		api->snapshot_count--;
	}
	api->snapshots[api->snapshot_count++] = snapshot_now(kube);
}

void api_forget(struct kube *kube)
{
	kube->api.oldest = kube->api.version;
	free_snapshot(&kube->api.page);
}

void api_init(struct kube *kube)
{
	for (int i = 0; i < KUBE_RESOURCES; i++)
		kube->api.objects[i] = json_object();
	kube->api.no_watch_lists = kube_chance(&kube->random, 30);
	api_put(kube, KUBE_NAMESPACES,
	        json_pack("{s:{s:s, s:s, s:{s:s}}}", "metadata", "name", "default", "uid",
	                  "u-default", "labels", "kubernetes.io/metadata.name", "default"));
}

static void drop_changes(struct kube_api *api, size_t from)
{
	for (size_t i = from; i < api->change_count; i++)
		json_decref(api->changes[i].object);
	api->change_count = from;
}

void api_free(struct kube *kube)
{
	struct kube_api *api = &kube->api;

	drop_changes(api, 0);
	free(api->changes);
	for (size_t i = 0; i < api->snapshot_count; i++)
		free_snapshot(&api->snapshots[i]);
	free_snapshot(&api->page);
	for (int i = 0; i < KUBE_RESOURCES; i++)
		json_decref(api->objects[i]);
}

void api_restart(struct kube *kube, int64_t down_ms)
{
	kube_note(kube, "the API server is away for %lld ms", (long long)down_ms);
	kube->api.down_until_ms = max64(kube->api.down_until_ms, kube->now_ms + down_ms);
	for (int i = 0; i < 2; i++)
		if (kube->leaders[i])
			leader_cut(kube, kube->leaders[i], 0);
}

static bool is_same_pod(const json_t *a, const json_t *b)
{
	return a && b &&
	       strcmp(member_text(metadata_in(a), "uid"), member_text(metadata_in(b), "uid")) ==
	           0 &&
	       strcmp(member_text(json_object_get(a, "spec"), "nodeName"),
	              member_text(json_object_get(b, "spec"), "nodeName")) == 0 &&
	       strcmp(member_text(json_object_get(a, "status"), "phase"),
	              member_text(json_object_get(b, "status"), "phase")) == 0;
}

static void doubt_changed(struct kube *kube, json_t *pods, json_t *others)
{
	const char *key;
	json_t *pod;

	json_object_foreach(pods, key, pod)
	{
		if (!is_same_pod(pod, json_object_get(others, key)))
			text_map_put(&kube->doubtful, member_text(metadata_in(pod), "uid"), kube);
	}
}

/* Whoever restores a store can have its versions continue behind the highest that was ever given
 * out, or not know that one should. */
void api_roll_back(struct kube *kube)
{
	struct kube_api *api = &kube->api;
	uint64_t *dice = &kube->dice[KUBE_ROLLBACK];

	if (api->snapshot_count == 0)
		return;
	size_t at = random_below(dice, api->snapshot_count);
	const struct kube_snapshot *snapshot = &api->snapshots[at];
	kube_note(kube, "the store is set back from version %lld to %lld", (long long)api->version,
	          (long long)snapshot->version);
	doubt_changed(kube, snapshot->objects[KUBE_PODS], api->objects[KUBE_PODS]);
	doubt_changed(kube, api->objects[KUBE_PODS], snapshot->objects[KUBE_PODS]);
	for (int i = 0; i < KUBE_RESOURCES; i++) {
		json_decref(api->objects[i]);
		api->objects[i] = json_copy(snapshot->objects[i]);
	}
	size_t keep = 0;
	while (keep < api->change_count && api->changes[keep].version <= snapshot->version)
		keep++;
	drop_changes(api, keep);
	if (kube_chance(dice, 50)) {
		api->version += BUMP;
		api->oldest = api->version;
	} else {
		api->version = snapshot->version;
		api->oldest = min64(api->oldest, api->version);
	}
	for (size_t i = at + 1; i < api->snapshot_count; i++)
		free_snapshot(&api->snapshots[i]);
	api->snapshot_count = at + 1;
	free_snapshot(&api->page);
	api->rolled_back_ms = kube->now_ms;
	api_restart(kube, kube_between(dice, 1000, 20000));
}

static void print_event(struct kube_follow *follow, const char *type, json_t *object)
{
	json_t *event = json_pack("{s:s, s:O}", "type", type, "object", object);
	char *text = json_dumps(event, JSON_COMPACT);

	buffer_print(&follow->bytes, "%s\n", text);
	free(text);
	json_decref(event);
}

static void print_bookmark(const struct kube *kube, struct kube_follow *follow, bool ends)
{
	char version[24];

	snprintf(version, sizeof(version), "%lld", (long long)kube->api.version);
	json_t *object =
	    json_pack("{s:{s:s, s:{}}}", "metadata", "resourceVersion", version, "annotations");
	if (ends)
		json_object_set_new(json_object_get(metadata_in(object), "annotations"),
		                    "k8s.io/initial-events-end", json_string("true"));
	print_event(follow, "BOOKMARK", object);
	json_decref(object);
}

/* What a server that has forgotten the version answers, in one of two ways. */
static int is_too_old(struct kube *kube, struct kube_follow *follow)
{
	if (kube_chance(&kube->random, 50))
		return 410;
	json_t *status = json_pack("{s:s, s:i, s:s}", "kind", "Status", "code", 410, "message",
	                           "too old resource version");
	print_event(follow, "ERROR", status);
	json_decref(status);
	follow->ends = true;
	return 200;
}

static int list_page(struct kube *kube, struct kube_follow *follow, const char *path, int resource)
{
	struct kube_api *api = &kube->api;
	const char *from = strstr(path, "continue=");
	int64_t version = from ? strtoll(from + 9, NULL, 10) : 0;
	int64_t first = from ? strtoll(strchr(from, '-') + 1, NULL, 10) : 0, at = 0;
	int64_t size = kube_between(&kube->random, 2, 30);
	json_t *items = json_array(), *object;
	char token[64] = "", text[24];
	const char *key;

	if (!from) {
		free_snapshot(&api->page);
		api->page = snapshot_now(kube);
	} else if (api->page.version != version || !api->page.objects[0]) {
		json_decref(items);
		return 410;
	}
	json_object_foreach(api->page.objects[resource], key, object)
	{
		if (at >= first && at < first + size)
			json_array_append(items, object);
		at++;
	}
	snprintf(text, sizeof(text), "%lld", (long long)api->page.version);
	if (first + size < at)
		snprintf(token, sizeof(token), "%s-%lld", text, (long long)(first + size));
	json_t *list = json_pack("{s:{s:s, s:s}, s:o}", "metadata", "resourceVersion", text,
	                         "continue", token, "items", items);
	char *body = json_dumps(list, JSON_COMPACT);
	buffer_text(&follow->bytes, body);
	free(body);
	json_decref(list);
	follow->ends = true;
	return 200;
}

static size_t change_after(const struct kube_api *api, int64_t version)
{
	size_t at = api->change_count;

	while (at > 0 && api->changes[at - 1].version > version)
		at--;
	return at;
}

int api_watch(struct kube *kube, struct kube_follow *follow, const char *path)
{
	struct kube_api *api = &kube->api;
	const char *from = strstr(path, "&resourceVersion=");
	json_t *object;
	const char *key;
	size_t size = strcspn(path, "?");
	int resource = 0;

	while (resource < KUBE_RESOURCES &&
	       (strncmp(path, kube_paths[resource], size) != 0 || kube_paths[resource][size]))
		resource++;
	INVARIANT(resource < KUBE_RESOURCES);
	follow->ends = false;
	buffer_clear(&follow->bytes);
	follow->sent = 0;
	if (strstr(path, "?limit="))
		return list_page(kube, follow, path, resource);
	if (!from && api->no_watch_lists)
		return 400;
	follow->streaming = true;
	if (from) {
		follow->after_version = strtoll(from + 17, NULL, 10);
		if (follow->after_version < api->oldest)
			return is_too_old(kube, follow);
		follow->change = change_after(api, follow->after_version);
		return 200;
	}
	json_object_foreach(api->objects[resource], key, object)
	    print_event(follow, "ADDED", object);
	print_bookmark(kube, follow, true);
	follow->change = api->change_count;
	follow->after_version = api->version;
	return 200;
}

void api_feed(struct kube *kube, struct kube_follow *follow)
{
	struct kube_api *api = &kube->api;
	enum kube_resource resource = (enum kube_resource)(follow - follow->leader->follows);

	if (!follow->streaming || follow->ends)
		return;
	for (; follow->change < api->change_count; follow->change++) {
		const struct kube_change *change = &api->changes[follow->change];
		if (change->resource == resource && change->version > follow->after_version)
			print_event(follow, change->type, change->object);
	}
	if (kube_chance(&kube->random, 2) && api->version > follow->after_version)
		print_bookmark(kube, follow, false);
}

static int answer(struct kube_request *request, int status, const char *message)
{
	json_t *body = json_pack("{s:s, s:s}", "kind", "Status", "message", message);
	request->answer = json_dumps(body, JSON_COMPACT);
	json_decref(body);
	return status;
}

/* The pod that a path names: /api/v1/namespaces/NS/pods/NAME[/...]. */
static bool pod_of_path(const char *path, char *key, size_t size, const char **under)
{
	char namespace[64], name[96];
	int end = 0;

	if (sscanf(path, "/api/v1/namespaces/%63[^/]/pods/%95[^/]%n", namespace, name, &end) != 2)
		return false;
	snprintf(key, size, "%s/%s", namespace, name);
	*under = path + end;
	return true;
}

static void set_scheduled(json_t *pod, json_t *condition)
{
	json_t *status = json_object_get(pod, "status");

	json_object_set_new(status, "conditions", json_pack("[o]", condition));
}

static bool has_other_uid(const json_t *pod, const char *uid)
{
	return *uid && strcmp(uid, member_text(metadata_in(pod), "uid")) != 0;
}

static int write_binding(struct kube *kube, struct kube_request *request, const char *key,
                         const json_t *pod, const json_t *body)
{
	const json_t *metadata = metadata_in(body);
	const char *node = member_text(json_object_get(body, "target"), "name");
	const char *version = member_text(metadata, "resourceVersion");

	if (kube->now_ms < kube->api.refused_until_ms && strcmp(kube->api.refused, key) == 0)
		return answer(request, 422, "an admission webhook denied the request");
	if (has_other_uid(pod, member_text(metadata, "uid")) ||
	    (*version && strcmp(version, member_text(metadata_in(pod), "resourceVersion")) != 0))
		return answer(request, 409, "the precondition does not hold");
	if (member_has(metadata_in(pod), "deletionTimestamp") ||
	    *member_text(json_object_get(pod, "spec"), "nodeName"))
		return answer(request, 409, "the pod is bound or on its way out");
	json_t *copy = json_deep_copy(pod);
	json_t *annotations = json_object_get(metadata_in(copy), "annotations");
	json_object_update(annotations, json_object_get(metadata, "annotations"));
	json_object_set_new(json_object_get(copy, "spec"), "nodeName", json_string(node));
	set_scheduled(copy, json_pack("{s:s, s:s}", "type", "PodScheduled", "status", "True"));
	if (kube->now_ms - kube->api.rolled_back_ms < SET_BACK_MS)
		text_map_put(&kube->doubtful, member_text(metadata_in(pod), "uid"), kube);
	kube_check_binding(kube, copy);
	kube_note(kube, "pod %s is bound to %s as %s", key, node,
	          member_text(annotations, "gpu-scheduler.io/job"));
	api_put(kube, KUBE_PODS, copy);
	kube->result->starts++;
	return answer(request, 201, "");
}

static int write_status(struct kube *kube, struct kube_request *request, const json_t *pod,
                        const json_t *body)
{
	json_t *conditions = json_object_get(json_object_get(body, "status"), "conditions");

	if (has_other_uid(pod, member_text(metadata_in(body), "uid")))
		return answer(request, 409, "the uid is another");
	json_t *copy = json_deep_copy(pod);
	set_scheduled(copy, json_deep_copy(json_array_get(conditions, 0)));
	kube_note(kube, "pod %s waits: %.190s", member_text(metadata_in(pod), "name"),
	          member_text(json_array_get(conditions, 0), "message"));
	api_put(kube, KUBE_PODS, copy);
	return answer(request, 200, "");
}

static int write_removal(struct kube *kube, struct kube_request *request, const char *key,
                         const json_t *pod, const json_t *options, bool eviction)
{
	const char *uid = member_text(json_object_get(options, "preconditions"), "uid");

	if (has_other_uid(pod, uid))
		return answer(request, 409, "the uid is another");
	if (eviction && kube_fails(kube, KUBE_ANSWER, 200))
		return answer(request, 429, "the disruption budget has no room");
	api_delete_pod(kube, key, false);
	return answer(request, eviction ? 201 : 200, "");
}

static int do_write(struct kube *kube, struct kube_request *request)
{
	char key[192];
	const char *under;

	if (!pod_of_path(request->path, key, sizeof(key), &under))
		return answer(request, 201, "");
	const json_t *pod = api_get(kube, KUBE_PODS, key);
	if (!pod)
		return answer(request, 404, "there is no such pod");
	if (strcmp(request->method, "GET") == 0) {
		request->answer = json_dumps(pod, JSON_COMPACT);
		return 200;
	}
	json_t *body = json_loads(request->body ? request->body : "{}", 0, NULL);
	int status = 405;
	if (strcmp(under, "/binding") == 0)
		status = write_binding(kube, request, key, pod, body);
	else if (strcmp(under, "/status") == 0)
		status = write_status(kube, request, pod, body);
	else if (strcmp(under, "/eviction") == 0)
		status = write_removal(kube, request, key, pod,
		                       json_object_get(body, "deleteOptions"), true);
	else if (strcmp(request->method, "DELETE") == 0)
		status = write_removal(kube, request, key, pod, body, false);
	json_decref(body);
	return status;
}

/* An answer that says nothing about the object. */
static bool fails_before(struct kube *kube, struct kube_request *request)
{
	static const int answers[] = { 409, 429, 429, 500, 503 };
	uint64_t *dice = &kube->dice[KUBE_ANSWER];

	if (api_is_down(kube) || kube_fails(kube, KUBE_TIMEOUT, 20)) {
		request->status = 0;
		return true;
	}
	if (!kube_fails(kube, KUBE_ANSWER, 80))
		return false;
	bool read = strcmp(request->method, "GET") == 0;
	request->status = answers[random_below(dice, sizeof(answers) / sizeof(answers[0]))];
	if (request->status == 409 && read)
		request->status = 500;
	if (request->status == 429)
		request->retry_after_s = kube_between(dice, 0, 3);
	answer(request, request->status, "the server is busy");
	return true;
}

static void refuse_for_a_while(struct kube *kube, const char *path)
{
	uint64_t *dice = &kube->dice[KUBE_ANSWER];
	char key[192];
	const char *under;

	if (!pod_of_path(path, key, sizeof(key), &under) || strcmp(under, "/binding") != 0)
		return;
	snprintf(kube->api.refused, sizeof(kube->api.refused), "%s", key);
	kube->api.refused_until_ms = kube->now_ms + kube_between(dice, 1000, 60000);
}

void api_write(struct kube *kube, struct kube_request *request)
{
	if (fails_before(kube, request))
		return;
	if (kube_fails(kube, KUBE_ANSWER, 10))
		refuse_for_a_while(kube, request->path);
	request->status = do_write(kube, request);
	/* It happened, and nobody says so. */
	if (kube_fails(kube, KUBE_TIMEOUT, 30)) {
		request->status = kube_chance(&kube->dice[KUBE_TIMEOUT], 50) ? 0 : 504;
		free(request->answer);
		request->answer = NULL;
	}
}
