/* pods_order.c - orders of the core as bindings and evictions, and what came of them */
#include <stdlib.h>
#include <string.h>

#include "pods/pods_local.h"

static char *dump_and_drop(json_t *object)
{
	char *text = json_dumps(object, JSON_COMPACT);

	json_decref(object);
	return text;
}

static char *pod_path(const struct pod *pod, const char *under)
{
	return text_print("/api/v1/namespaces/%s/pods/%s%s", pod->namespace, pod->name, under);
}

/* The pod with that uid, there or gone and not released; NULL. */
static struct pod *pod_of(const struct pods *pods, const char *uid)
{
	struct pod *pod = text_map_get(&pods->pods, uid);

	for (size_t i = 0; !pod && i < pods->lingering_count; i++)
		if (strcmp(pods->lingering[i]->uid, uid) == 0)
			pod = pods->lingering[i];
	return pod;
}

static char *binding_body(const struct pods *pods, const struct pod *pod)
{
	const struct unit *unit = pod->unit;
	const struct unit_task *task = &unit->tasks[pod->place];
	char *job = text_print("job-%lld/%d", (long long)unit->job_id, pod->place);
	char *term = text_print("%lld", (long long)pods->port.term(pods->port.context));
	json_t *annotations = json_pack("{s:s, s:s}", JOB_ANNOTATION, job, TERM_ANNOTATION, term);

	if (task->named && task->uuids && *task->uuids) {
		json_object_set_new(annotations, GPUS_ANNOTATION, json_string(task->uuids));
		json_object_set_new(annotations, LIMITS_ANNOTATION, json_string(task->limits));
	}
	free(job);
	free(term);
	return dump_and_drop(json_pack("{s:s, s:s, s:{s:s, s:s, s:s, s:o}, s:{s:s, s:s, s:s}}",
	                               "apiVersion", "v1", "kind", "Binding", "metadata", "name",
	                               pod->name, "namespace", pod->namespace, "uid", pod->uid,
	                               "annotations", annotations, "target", "apiVersion", "v1",
	                               "kind", "Node", "name", task->node));
}

static void refuse(struct pods *pods, struct unit *unit, int place, const char *message)
{
	struct unit_task *task = &unit->tasks[place];

	if (!task->reservation_id)
		return;
	pods_send(pods,
	          &(struct command){
		      .kind = task->stopping ? COMMAND_MEMORY_RELEASED : COMMAND_TASK_REFUSED,
		      .task = { .reservation_id = task->reservation_id, .message = message } });
	task->stopping = false;
	order_forget(pods, unit, place);
}

void order_bind(struct pods *pods, struct pod *pod)
{
	struct write *write = write_new(WRITE_BIND, pod->uid, "POST", pod_path(pod, "/binding"),
	                                binding_body(pods, pod));

	write->look_path = pod_path(pod, "");
	pod->binding = BINDING_SENT;
	writer_drop(&pods->writer, pod->uid, WRITE_STATUS);
	writer_put(&pods->writer, write);
}

static void deliver(struct pods *pods, struct pod *pod)
{
	if (pod_has_claims(pod->object))
		claims_deliver(pods, pod);
	else
		order_bind(pods, pod);
}

void order_bind_again(struct pods *pods, struct pod *pod)
{
	const struct unit_task *task = &pod->unit->tasks[pod->place];

	pods_note(pods, "pod %s/%s is not bound any more: its API server was set back",
	          pod->namespace, pod->name);
	if (task->reservation_id && !task->stopping && task->parts && !pod->gone) {
		deliver(pods, pod);
		return;
	}
	pod->binding = BINDING_NONE;
	if (task->stopping)
		refuse(pods, pod->unit, pod->place, "");
	else if (pod->unit->job_id)
		pods_send_job(pods, COMMAND_REQUEUE, pod->unit->job_id);
}

void order_evict(struct pods *pods, struct pod *pod, bool by_eviction)
{
	json_t *options = json_pack("{s:{s:s}}", "preconditions", "uid", pod->uid);
	struct write *write;

	if (pod->evicting || pod->gone) {
		json_decref(options);
		return;
	}
	pod->evicting = true;
	pod->evicted_ms = pods->now_ms;
	pods->figures.evictions++;
	if (by_eviction) {
		json_t *body = json_pack("{s:s, s:s, s:{s:s, s:s}, s:o}", "apiVersion", "policy/v1",
		                         "kind", "Eviction", "metadata", "name", pod->name,
		                         "namespace", pod->namespace, "deleteOptions", options);
		write = write_new(WRITE_EVICT, pod->uid, "POST", pod_path(pod, "/eviction"),
		                  dump_and_drop(body));
	} else {
		json_object_set_new(options, "apiVersion", json_string("v1"));
		json_object_set_new(options, "kind", json_string("DeleteOptions"));
		write = write_new(WRITE_DELETE, pod->uid, "DELETE", pod_path(pod, ""),
		                  dump_and_drop(options));
	}
	writer_put(&pods->writer, write);
}

void order_forget(struct pods *pods, struct unit *unit, int place)
{
	struct unit_task *task = &unit->tasks[place];

	if (task->reservation_id)
		map_remove(&pods->reservations, task->reservation_id);
	task->reservation_id = 0;
	free(task->node);
	free(task->uuids);
	free(task->limits);
	free(task->parts);
	task->node = task->uuids = task->limits = NULL;
	task->parts = NULL;
}

static bool is_watched(const struct pods *pods, const char *node)
{
	return node && pods->port.node_is_watched(pods->port.context, node);
}

bool pod_is_watched(const struct pods *pods, const struct pod *pod)
{
	return pod->unit && is_watched(pods, pod->unit->tasks[pod->place].node);
}

void order_watch(struct pods *pods, const struct pod *pod)
{
	const struct unit_task *task = &pod->unit->tasks[pod->place];
	struct effect effect = task->start;

	if (pods->ending || !task->parts || !is_watched(pods, task->node))
		return;
	effect.order.parts.at = task->parts;
	effect.order.pod = pod->uid;
	pods->port.order(pods->port.context, &effect);
}

/* The agent confirms when nothing is left of it. */
static void order_unwatch(struct pods *pods, const struct unit_task *task)
{
	struct effect effect = { .kind = EFFECT_STOP, .order = task->start.order };

	effect.order.reservation_id = task->reservation_id;
	effect.order.node_id = task->node_id;
	effect.order.parts = (struct rows){ 0 };
	if (!pods->ending)
		pods->port.order(pods->port.context, &effect);
}

void order_released(struct pods *pods, struct unit *unit, int place, const struct pod_end *end)
{
	const struct unit_task *task = &unit->tasks[place];

	if (!task->reservation_id)
		return;
	bool watched = is_watched(pods, task->node);
	pods_send(pods, &(struct command){ .kind = COMMAND_TASK_EXITED,
	                                   .task = { .reservation_id = task->reservation_id,
	                                             .exit_code = end->exit_code,
	                                             .message = end->message,
	                                             .finished = end->finished,
	                                             .released = !watched } });
	if (watched)
		order_unwatch(pods, task);
	order_forget(pods, unit, place);
}

static void take_parts(struct pods *pods, struct unit_task *task, const struct task_order *order)
{
	struct buffer uuids = { 0 }, limits = { 0 }, node = { 0 };

	buffer_text(&uuids, "");
	buffer_text(&limits, "");
	for (int64_t i = 0; i < order->parts.count; i++) {
		const int64_t *row = order->parts.at + i * PART_WIDTH;
		if (i > 0)
			buffer_text(&uuids, ",");
		pods->port.gpu_uuid(pods->port.context, row[PART_GPU], &uuids);
		buffer_print(&limits, "%s%lld", i > 0 ? "," : "", (long long)row[PART_MIB]);
	}
	buffer_text(&node, "");
	pods->port.node_name(pods->port.context, order->node_id, &node);
	size_t bytes = (size_t)order->parts.count * PART_WIDTH * sizeof(*task->parts);
	free(task->node);
	free(task->uuids);
	free(task->limits);
	free(task->parts);
	task->parts = memory_alloc(bytes + 1);
	if (bytes > 0)
		memcpy(task->parts, order->parts.at, bytes);
	task->start = (struct effect){ .kind = EFFECT_START, .order = *order };
	task->node_id = order->node_id;
	task->node = node.data;
	task->uuids = uuids.data;
	task->limits = limits.data;
}

/* GPUs that a node advertises have names of our own, which mean nothing to it. */
static void drop_made_up_names(struct pods *pods, struct unit_task *task)
{
	const struct kube_node *node = node_of_name(pods, task->node);
	struct node_gpu gpus[NODE_GPUS_MAX];
	bool shared;

	if (!node || !node->object || pods->port.node_has_agent(pods->port.context, task->node))
		return;
	node_gpus_read(node->object, gpus, &shared);
	task->named = shared;
}

static void order_start(struct pods *pods, struct unit *unit, const struct task_order *order)
{
	struct unit_task *task = &unit->tasks[order->task];
	struct pod *pod = task->pod;

	if (task->reservation_id && task->reservation_id != order->reservation_id)
		order_forget(pods, unit, (int)order->task);
	task->reservation_id = order->reservation_id;
	task->stopping = task->ended = false;
	map_put(&pods->reservations, task->reservation_id, unit);
	task->named = true;
	take_parts(pods, task, order);
	drop_made_up_names(pods, task);
	if (!pod || pod->gone || pod->evicting || pod_has_ended(pod->object) ||
	    member_has(json_object_get(pod->object, "metadata"), "deletionTimestamp")) {
		refuse(pods, unit, (int)order->task, "its pod is not there any more");
		return;
	}
	if (pod->binding == BINDING_DONE || pod->node) {
		if (pod->node && strcmp(pod->node, task->node) == 0) {
			pod->binding = BINDING_DONE;
			pod->bound_ms = pods->now_ms;
			order_watch(pods, pod);
			pod_look_at_phase(pods, pod);
		} else {
			refuse(pods, unit, (int)order->task, "its pod is bound to another node");
		}
		return;
	}
	if (writer_has(&pods->writer, pod->uid, WRITE_BIND))
		return;
	deliver(pods, pod);
}

static void order_stop(struct pods *pods, const struct task_order *order)
{
	struct unit *unit = map_get(&pods->reservations, order->reservation_id);
	int place = 0;

	while (unit && place < unit->task_count &&
	       unit->tasks[place].reservation_id != order->reservation_id)
		place++;
	if (is_ghost(pods, order->reservation_id)) {
		if (unit && place < unit->task_count)
			unit->tasks[place].stopping = true;
		return;
	}
	if (!unit || place == unit->task_count) {
		struct buffer node = { 0 };
		struct effect effect = { .kind = EFFECT_STOP, .order = *order };
		bool watched = pods->port.node_name(pods->port.context, order->node_id, &node) &&
		               is_watched(pods, node.data);
		buffer_free(&node);
		if (watched) {
			pods->port.order(pods->port.context, &effect);
			return;
		}
		pods_send(pods,
		          &(struct command){ .kind = COMMAND_MEMORY_RELEASED,
		                             .task = { .reservation_id = order->reservation_id } });
		return;
	}
	struct unit_task *task = &unit->tasks[place];
	struct pod *pod = task->pod;
	task->stopping = true;
	if (pod && pod->binding == BINDING_SENT) {
		writer_drop(&pods->writer, pod->uid, WRITE_BIND);
		writer_drop(&pods->writer, pod->uid, WRITE_CLAIM);
		if (writer_has(&pods->writer, pod->uid, WRITE_BIND) ||
		    writer_has(&pods->writer, pod->uid, WRITE_CLAIM))
			return; /* its answer says what is to be done */
		pod->binding = BINDING_NONE;
	}
	if (!pod || pod->binding == BINDING_NONE) {
		refuse(pods, unit, place, "");
		if (pod)
			claims_release(pods, pod);
		return;
	}
	const json_t *status = json_object_get(pod->object, "status");
	order_evict(pods, pod,
	            json_array_size(json_object_get(status, "containerStatuses")) > 0 ||
	                strcmp(member_text(status, "phase"), "Running") == 0);
}

/* Nobody knows yet whether its pod is bound: it is evicted, or found to be gone, when all is known.
 */
static void stop_known(struct pods *pods, const struct task_order *order)
{
	struct known_job *known = map_get(&pods->known, order->job_id);

	for (int64_t i = 0; known && i < known->tasks; i++)
		if (known->has[i] && known->at[i].reservation_id == order->reservation_id)
			known->at[i].stopping = true;
}

void pods_effect(struct pods *pods, const char *key, const struct effect *effect)
{
	if (effect->kind == EFFECT_STOP) {
		if (pods->ready)
			order_stop(pods, &effect->order);
		else
			stop_known(pods, &effect->order);
		return;
	}
	if (effect->kind != EFFECT_START)
		return;
	/* Before all is known, the core has said this already in its records, and says it again
	 * when the nodes report. */
	if (!pods->ready)
		return;
	struct unit *unit = pods_unit(pods, key);
	if (!unit || effect->order.task < 0 || effect->order.task >= unit->task_count) {
		pods_send(pods, &(struct command){
				    .kind = COMMAND_TASK_REFUSED,
				    .task = { .reservation_id = effect->order.reservation_id,
		                              .message = "its pod is not there any more" } });
		return;
	}
	if (!unit->job_id) {
		unit->job_id = effect->order.job_id;
		map_put(&pods->jobs, unit->job_id, unit);
	}
	order_start(pods, unit, &effect->order);
}

/* The job was cancelled, or failed: its pods go. One that ended by itself has none that run. */
void pods_job_ended(struct pods *pods, const char *key)
{
	struct unit *unit = pods_unit(pods, key);

	for (size_t i = 0; !pods->ready && i < pods->known.capacity; i++) {
		struct known_job *known = pods->known.entries[i].value;
		if (known && strcmp(known->key, key) == 0)
			known->over = true;
	}
	if (!unit)
		return;
	unit->state = UNIT_ENDED;
	for (int i = 0; i < unit->task_count; i++) {
		struct pod *pod = unit->tasks[i].pod;
		if (pod && !pod->gone && !unit->tasks[i].ended && !pod_has_ended(pod->object))
			order_evict(pods, pod, false);
	}
	if (unit_filled(unit) == 0)
		unit_free(pods, unit);
}

static void bound(struct pods *pods, struct pod *pod)
{
	struct unit_task *task = &pod->unit->tasks[pod->place];

	pod->binding = BINDING_DONE;
	pod->bound_ms = pods->now_ms;
	pods->figures.binds++;
	if (!pod->node && task->node) {
		pod->node = memory_text(task->node);
		node_add_pod(pods, pod);
	}
	free(pod->said);
	pod->said = NULL;
	order_watch(pods, pod);
	if (task->stopping)
		order_evict(pods, pod, false);
	else
		pod_look_at_phase(pods, pod);
}

/* A gang starts whole or not at all: those of its pods that are bound go, and it waits again. */
void order_not_bound(struct pods *pods, struct pod *pod, const char *text)
{
	struct unit *unit = pod->unit;
	struct unit_task *task = &unit->tasks[pod->place];

	pod->binding = BINDING_NONE;
	pods->figures.binds_refused++;
	say_event(pods, pod, "Warning", "FailedBinding", text);
	/* It ran before its API server was set back: the core ends it, and decides again. */
	if (task->started && task->reservation_id && unit->job_id) {
		task->started = false;
		pods_send_job(pods, COMMAND_REQUEUE, unit->job_id);
		claims_release(pods, pod);
		return;
	}
	refuse(pods, unit, pod->place, text);
	if (unit->is_group && unit->task_count > 1 && unit->job_id)
		pods_send_job(pods, COMMAND_REQUEUE, unit->job_id);
	claims_release(pods, pod);
}

static void not_bound(struct pods *pods, struct pod *pod, const char *reason)
{
	char *text = text_print("the API server refused its binding: %.160s", reason);

	order_not_bound(pods, pod, text);
	free(text);
}

void order_give_back(struct pods *pods, struct pod *pod)
{
	pod->binding = BINDING_NONE;
	refuse(pods, pod->unit, pod->place, "");
	claims_release(pods, pod);
}

/* What the API server would not bind at any time. */
static bool may_be_bound(const json_t *object)
{
	return !member_has(json_object_get(object, "metadata"), "deletionTimestamp") &&
	       !pod_is_gated(object);
}

static bool is_as_decided(const struct pods *pods, const struct pod *pod, const struct write *write)
{
	char *body = binding_body(pods, pod);
	bool same = strcmp(body, write->body) == 0;

	free(body);
	return same;
}

/* It surely was not bound: the decision may be another by now, or none. True: the same again. */
static bool bind_as_decided(struct pods *pods, struct pod *pod, const struct write *write)
{
	const struct unit_task *task = &pod->unit->tasks[pod->place];

	if (!task->reservation_id || task->stopping) {
		order_give_back(pods, pod);
		return false;
	}
	if (is_as_decided(pods, pod, write))
		return true;
	deliver(pods, pod);
	return false;
}

static bool bind_answer(struct pods *pods, struct pod *pod, const struct write *write,
                        enum outcome outcome, const json_t *object, const char *reason)
{
	const char *node = member_text(json_object_get(object, "spec"), "nodeName");
	const char *uid = member_text(json_object_get(object, "metadata"), "uid");
	const struct unit_task *task = pod->unit ? &pod->unit->tasks[pod->place] : NULL;

	if (!task || pod->binding != BINDING_SENT)
		return false;
	switch (outcome) {
	case OUTCOME_WRITTEN:
		if (!task->reservation_id || is_as_decided(pods, pod, write))
			bound(pods, pod);
		else /* its node was removed meanwhile, and the core decided again */
			not_bound(pods, pod, "it was bound by an earlier decision");
		return false;
	case OUTCOME_LOOK:
		if (strcmp(uid, pod->uid) != 0)
			not_bound(pods, pod, "the pod was deleted");
		else if (!*node && may_be_bound(object))
			return bind_as_decided(pods, pod, write);
		else if (!*node)
			not_bound(pods, pod, "the pod is being deleted, or has scheduling gates");
		else if (task->node && strcmp(node, task->node) == 0)
			bound(pods, pod);
		else
			not_bound(pods, pod, "somebody else bound the pod");
		return false;
	default:
		not_bound(pods, pod, outcome == OUTCOME_GONE ? "the pod was deleted" : reason);
		return false;
	}
}

bool order_answer(void *context, const struct write *write, enum outcome outcome,
                  const json_t *object, const char *reason)
{
	struct pods *pods = context;
	struct pod *pod = pod_of(pods, write->object);

	if (!pod)
		return false;
	if (write->kind == WRITE_BIND)
		return bind_answer(pods, pod, write, outcome, object, reason);
	if (write->kind == WRITE_CLAIM) {
		claims_answer(pods, pod, outcome, object, reason);
		return false;
	}
	bool removes = write->kind == WRITE_EVICT || write->kind == WRITE_DELETE;
	if (!removes || outcome == OUTCOME_WRITTEN || outcome == OUTCOME_GONE)
		return false;
	pods_note(pods, "pod %s/%s could not be removed: %s", pod->namespace, pod->name, reason);
	/* Somebody who forbids evictions still has to give the memory back, and a busy API server
	 * calls it a conflict. Of a pod with another uid the watch will tell. */
	return outcome == OUTCOME_REFUSED || outcome == OUTCOME_CHANGED;
}
