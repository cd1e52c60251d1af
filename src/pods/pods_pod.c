/* pods_pod.c - pods as they come, change and go */
#include <stdlib.h>
#include <string.h>

#include "pods/pods_local.h"

/* A pod that was bound so long ago, and that the watch does not show as bound. */
#define UNSEEN_MS INT64_C(60000)

static const json_t *metadata_of(const json_t *object)
{
	return json_object_get(object, "metadata");
}

static struct pod *pod_new(struct pods *pods, const json_t *object)
{
	const json_t *metadata = metadata_of(object);
	struct pod *pod = NEW(struct pod);

	pod->uid = memory_text(member_text(metadata, "uid"));
	pod->namespace = memory_text(member_text(metadata, "namespace"));
	pod->name = memory_text(member_text(metadata, "name"));
	text_map_put(&pods->pods, pod->uid, pod);
	return pod;
}

static void pod_free(struct pod *pod)
{
	free(pod->uid);
	free(pod->namespace);
	free(pod->name);
	free(pod->node);
	free(pod->said);
	json_decref(pod->claim);
	json_decref(pod->object);
	free(pod);
}

static bool is_leaving(const struct pod *pod)
{
	return member_has(metadata_of(pod->object), "deletionTimestamp");
}

void pod_arrives(struct pods *pods, struct pod *pod)
{
	pod->queued = true;
	array_reserve(pods->arrivals, pods->arrival_capacity, pods->arrival_count + 1);
	pods->arrivals[pods->arrival_count++] = pod;
}

static void queue_arrival(struct pods *pods, struct pod *pod)
{
	if (pod->queued || pod->unit || pod->node || is_leaving(pod) ||
	    pod_has_ended(pod->object) || !pods_are_ours(pods, pod->object) ||
	    pod_is_gated(pod->object))
		return;
	pod_arrives(pods, pod);
}

static void forget_arrival(struct pods *pods, const struct pod *pod)
{
	for (size_t i = 0; pod->queued && i < pods->arrival_count; i++)
		if (pods->arrivals[i] == pod)
			pods->arrivals[i] = NULL;
}

/* Somebody else bound it: it is theirs now, and no job of ours. */
static void give_away(struct pods *pods, struct pod *pod)
{
	struct unit *unit = pod->unit;
	int place = pod->place;

	pods_note(pods, "pod %s/%s was bound to node %s by somebody else", pod->namespace,
	          pod->name, pod->node);
	writer_drop(&pods->writer, pod->uid, WRITE_BIND);
	writer_drop(&pods->writer, pod->uid, WRITE_CLAIM);
	claims_forget(pod);
	if (!unit->is_group && unit->job_id)
		pods_send_job(pods, COMMAND_CANCEL, unit->job_id);
	order_released(pods, unit, place,
	               &(struct pod_end){ .message = "its pod was bound by somebody else" });
	unit_remove_pod(pods, pod);
	pod->binding = BINDING_NONE;
}

static void is_bound(struct pods *pods, struct pod *pod, const char *node)
{
	bool known = pod->node != NULL;

	if (!known) {
		pod->node = memory_text(node);
		node_add_pod(pods, pod);
	}
	if (!pod->unit)
		return;
	const struct unit_task *task = &pod->unit->tasks[pod->place];
	bool right = task->reservation_id && task->node && strcmp(task->node, node) == 0;
	if (right && pod->binding != BINDING_DONE) {
		/* The watch may say so before the answer to the binding comes. */
		pod->binding = BINDING_DONE;
		pod->bound_ms = pods->now_ms;
		order_watch(pods, pod);
	} else if (!right && !task->ended && !known) {
		give_away(pods, pod);
	}
	/* It was told to stop while its binding was on its way. */
	if (pod->unit && task->stopping && pod->binding == BINDING_DONE)
		order_evict(pods, pod, true);
}

/* Its API server was set back: by what it says now the pod was never bound, and whatever ran of
 * it is ended. The decision stands. */
static void is_unbound(struct pods *pods, struct pod *pod)
{
	node_remove_pod(pods, pod);
	free(pod->node);
	pod->node = NULL;
	if (pod->is_guest)
		pods_send(pods, &(struct command){ .kind = COMMAND_REMOVE_GUEST,
		                                   .guest_name = pod->uid });
	pod->is_guest = false;
	if (pod->unit && pod->binding == BINDING_DONE)
		order_bind_again(pods, pod);
}

/* An API server that was set back has it again. */
static bool was_to_go(const struct pods *pods, const struct pod *pod)
{
	return pod->evicting && pods->now_ms - pod->evicted_ms > UNSEEN_MS && !is_leaving(pod) &&
	       !pod_has_ended(pod->object) && !writer_has(&pods->writer, pod->uid, WRITE_EVICT) &&
	       !writer_has(&pods->writer, pod->uid, WRITE_DELETE);
}

/* The watch follows an answer soon, or it never will. */
void pods_look_for_unbound(struct pods *pods)
{
	for (size_t i = 0; i < pods->pods.capacity; i++) {
		struct pod *pod = pods->pods.entries[i].value;
		if (pod && was_to_go(pods, pod)) {
			pod->evicting = false;
			order_evict(pods, pod, false);
		}
		if (pod && pod->unit && pod->binding == BINDING_DONE && !pod->seen &&
		    pods->now_ms - pod->bound_ms > UNSEEN_MS)
			is_unbound(pods, pod);
	}
}

static int64_t exit_code_of(const json_t *object)
{
	const json_t *status = json_object_get(object, "status");
	const json_t *container;
	int64_t code = strcmp(member_text(status, "phase"), "Failed") == 0;
	size_t i;

	json_array_foreach(json_object_get(status, "containerStatuses"), i, container)
	{
		const json_t *ended =
		    json_object_get(json_object_get(container, "state"), "terminated");
		int64_t its = member_integer(ended, "exitCode");
		if (its != 0)
			return its;
	}
	return code;
}

void pod_look_at_phase(struct pods *pods, struct pod *pod)
{
	struct unit *unit = pod->unit;
	struct unit_task *task = unit ? &unit->tasks[pod->place] : NULL;
	const char *phase = member_text(json_object_get(pod->object, "status"), "phase");

	if (!task || !task->reservation_id || !pods->ready || pod->binding != BINDING_DONE)
		return;
	bool ended = pod_has_ended(pod->object);
	bool runs = !pod_is_watched(pods, pod) && strcmp(phase, "Running") == 0;
	if (!task->started && (ended || runs)) {
		task->started = true;
		pods_send(pods,
		          &(struct command){ .kind = COMMAND_TASK_STARTED,
		                             .task = { .reservation_id = task->reservation_id } });
	}
	if (!ended)
		return;
	int64_t code = exit_code_of(pod->object);
	/* A pod that is deleted may end well because it was told to. */
	bool finished = strcmp(phase, "Succeeded") == 0 && !is_leaving(pod);
	/* What a pod of a group that failed means is for its controller to say. */
	order_released(pods, unit, pod->place,
	               &(struct pod_end){ .exit_code = unit->is_group ? 0 : code,
	                                  .message = code ? "its pod failed" : "",
	                                  .finished = finished });
	/* One that was evicted is to be run again, when its controller has made it again. */
	task->ended = finished || !task->stopping;
	if (!task->ended)
		unit_wait_for_pods(pods, unit);
}

static void put_pod(struct pods *pods, const json_t *object)
{
	const char *uid = member_text(metadata_of(object), "uid");
	const char *node = member_text(json_object_get(object, "spec"), "nodeName");
	struct pod *pod = text_map_get(&pods->pods, uid);

	if (!pod)
		pod = pod_new(pods, object);
	json_decref(pod->object);
	pod->object = json_incref((json_t *)object);
	if (*node)
		is_bound(pods, pod, node);
	else if (pod->seen)
		is_unbound(pods, pod);
	pod->seen = *node != '\0';
	if (!pod->unit && pod->node && node_of_name(pods, pod->node))
		node_of_name(pods, pod->node)->dirty = true;
	pod_look_at_phase(pods, pod);
	group_note_success(pods, pod);
	queue_arrival(pods, pod);
}

static bool node_can_tell(struct pods *pods, const char *name)
{
	const struct kube_node *node = name ? node_of_name(pods, name) : NULL;
	const json_t *conditions, *condition;
	size_t i;

	if (!node || !node->object)
		return true; /* removed: whatever ran there does not any more */
	conditions = json_object_get(json_object_get(node->object, "status"), "conditions");
	json_array_foreach(conditions, i,
	                   condition) if (strcmp(member_text(condition, "type"), "Ready") ==
	                                  0) return strcmp(member_text(condition, "status"),
	                                                   "True") == 0;
	return false;
}

bool pod_may_run_on(struct pods *pods, const struct pod *pod)
{
	const struct unit_task *task = &pod->unit->tasks[pod->place];

	return task->reservation_id && pod->binding != BINDING_NONE &&
	       !pod_has_ended(pod->object) && !pod_is_watched(pods, pod) &&
	       !node_can_tell(pods, pod->node);
}

void pod_released(struct pods *pods, struct pod *pod)
{
	struct unit *unit = pod->unit;
	struct unit_task *task = &unit->tasks[pod->place];

	bool evicted = task->stopping;
	bool was_running = task->reservation_id > 0 && !evicted;
	if (!evicted && !task->ended && !unit->is_group && unit->job_id &&
	    unit->state == UNIT_QUEUED)
		pods_send_job(pods, COMMAND_CANCEL, unit->job_id);
	order_released(pods, unit, pod->place,
	               &(struct pod_end){ .message = evicted ? "" : "its pod was deleted" });
	/* So the core was told: one that is made again while the others run is not part of it. */
	task->ended |= was_running;
	node_remove_pod(pods, pod);
	unit_remove_pod(pods, pod);
	pod_free(pod);
}

static void remove_pod(struct pods *pods, const json_t *object)
{
	struct pod *pod = text_map_remove(&pods->pods, member_text(metadata_of(object), "uid"));

	if (!pod)
		return;
	if (object != pod->object) {
		json_decref(pod->object);
		pod->object = json_incref((json_t *)object);
	}
	writer_drop(&pods->writer, pod->uid, WRITE_STATUS);
	writer_drop(&pods->writer, pod->uid, WRITE_BIND);
	writer_drop(&pods->writer, pod->uid, WRITE_CLAIM);
	forget_arrival(pods, pod);
	group_forget_success(pods, pod);
	if (!pod->unit) {
		if (pod->is_guest)
			pods_send(pods, &(struct command){ .kind = COMMAND_REMOVE_GUEST,
			                                   .guest_name = pod->uid });
		node_remove_pod(pods, pod);
		pod_free(pod);
		return;
	}
	pod->gone = true;
	/* A kubelet says how a pod ended before it lets it go. Where nobody said that, the pod was
	 * deleted by force, and its processes may be there for a while. */
	bool by_force = pod->node && !pod_has_ended(pod->object) && !pod_is_watched(pods, pod);
	pod->release_ms = pods->now_ms + (by_force ? pods->settings.force_release_ms : 0);
	array_reserve(pods->lingering, pods->lingering_capacity, pods->lingering_count + 1);
	pods->lingering[pods->lingering_count++] = pod;
}

void pods_pod(struct pods *pods, enum reflector_event event, const json_t *object)
{
	switch (event) {
	case REFLECTOR_PUT:
		put_pod(pods, object);
		break;
	case REFLECTOR_GONE:
		remove_pod(pods, object);
		break;
	case REFLECTOR_SYNCED:
		pods->pods_synced = true;
		break;
	}
}

void pod_take_in(struct pods *pods, struct pod *pod)
{
	if (pod->unit || pod->node || is_leaving(pod))
		return;
	if (!claims_are_there(pods, pod->object)) {
		pod_arrives(pods, pod); /* again */
		return;
	}
	unit_join(pods, pod);
}

/* A pod that was bound before this start, with what its annotation and our own record agree on. */
static void adopt_pod(struct pods *pods, struct pod *pod)
{
	int64_t place, job_id = pod_job_id(pod->object, &place);
	struct unit *unit = job_id > 0 ? map_get(&pods->jobs, job_id) : NULL;

	if (!unit || place >= unit->task_count || unit->tasks[place].pod)
		return;
	const struct unit_task *task = &unit->tasks[place];
	if (!task->reservation_id || !task->node || strcmp(task->node, pod->node) != 0)
		return;
	unit_put_pod(pods, unit, (int)place, pod);
	pod->binding = BINDING_DONE;
}

/* One that ended without a pod that could run is not there any more. */
static bool is_to_be_adopted(const struct known_job *known)
{
	bool has = !known->over;

	for (int64_t i = 0; i < known->tasks; i++)
		has |= known->has[i] && known->at[i].reservation_id > 0;
	return has;
}

static void adopt_job(struct pods *pods, const struct known_job *known)
{
	if (!is_to_be_adopted(known))
		return;
	char *key = text_print("%.*s", (int)strcspn(known->key, JOB_KEY_RUN), known->key);
	/* Of two jobs of one group, the earlier is on its way out. */
	text_map_remove(&pods->units, key);
	struct unit *unit = unit_new(pods, key);
	struct buffer node = { 0 };

	free(key);
	unit->job_key = memory_text(known->key);
	unit->job_id = known->job_id;
	unit->state = known->over ? UNIT_ENDED : UNIT_QUEUED;
	unit->is_group = strncmp(known->key, PODS_KEY "group/", strlen(PODS_KEY "group/")) == 0;
	/* A pod's own job was held by a person: its evicted pod has another uid. */
	unit->held = known->held && unit->is_group;
	map_put(&pods->jobs, unit->job_id, unit);
	array_reserve(unit->tasks, unit->task_capacity, (size_t)known->tasks);
	memset(unit->tasks, 0, (size_t)known->tasks * sizeof(*unit->tasks));
	unit->task_count = (int)known->tasks;
	for (int i = 0; i < unit->task_count; i++) {
		struct unit_task *task = &unit->tasks[i];
		if (!known->has[i])
			continue;
		task->ended = known->at[i].ended;
		if (!known->at[i].reservation_id)
			continue;
		task->reservation_id = known->at[i].reservation_id;
		task->stopping = known->at[i].stopping;
		task->node_id = known->at[i].node_id;
		map_put(&pods->reservations, task->reservation_id, unit);
		buffer_clear(&node);
		if (pods->port.node_name(pods->port.context, known->at[i].node_id, &node))
			task->node = memory_text(node.data);
	}
	buffer_free(&node);
}

bool is_ghost(const struct pods *pods, int64_t reservation_id)
{
	for (size_t i = 0; i < pods->ghost_count; i++)
		if (pods->ghosts[i].reservation_id == reservation_id)
			return true;
	return false;
}

static void add_ghosts(struct pods *pods, const struct known_job *known)
{
	const struct unit *unit = map_get(&pods->jobs, known->job_id);

	for (int i = 0; unit && i < unit->task_count; i++) {
		const struct unit_task *task = &unit->tasks[i];
		if (task->pod || !known->has[i] || !known->at[i].live || !task->node ||
		    pods->port.node_is_watched(pods->port.context, task->node))
			continue;
		array_reserve(pods->ghosts, pods->ghost_capacity, pods->ghost_count + 1);
		pods->ghosts[pods->ghost_count++] =
		    (struct ghost){ .reservation_id = task->reservation_id,
			            .release_ms = pods->now_ms + pods->settings.force_release_ms,
			            .node = memory_text(task->node) };
	}
}

static void release_ghost(struct pods *pods, int64_t reservation_id)
{
	struct unit *unit = map_get(&pods->reservations, reservation_id);

	if (!unit) /* its job has ended since */
		pods_send(pods, &(struct command){ .kind = COMMAND_MEMORY_RELEASED,
		                                   .task = { .reservation_id = reservation_id } });
	for (int i = 0; unit && i < unit->task_count; i++) {
		struct unit_task *task = &unit->tasks[i];
		if (task->reservation_id != reservation_id)
			continue;
		bool evicted = task->stopping;
		order_released(
		    pods, unit, i,
		    &(struct pod_end){ .message = evicted ? "" : "its pod was deleted" });
		task->ended |= !evicted;
		task->stopping = false;
		if (unit->state == UNIT_ENDED && unit_filled(unit) == 0)
			unit_free(pods, unit);
		return;
	}
}

void ghosts_time(struct pods *pods)
{
	for (size_t i = 0; i < pods->ghost_count;) {
		struct ghost *ghost = &pods->ghosts[i];
		if (!node_can_tell(pods, ghost->node))
			ghost->release_ms = pods->now_ms + pods->settings.force_release_ms;
		if (ghost->release_ms > pods->now_ms) {
			i++;
			continue;
		}
		int64_t reservation_id = ghost->reservation_id;
		free(ghost->node);
		*ghost = pods->ghosts[--pods->ghost_count];
		release_ghost(pods, reservation_id);
	}
}

void pods_adopt(struct pods *pods)
{
	for (size_t i = 0; i < pods->known.capacity; i++)
		if (pods->known.entries[i].value)
			adopt_job(pods, pods->known.entries[i].value);
	for (size_t i = 0; i < pods->pods.capacity; i++) {
		struct pod *pod = pods->pods.entries[i].value;
		if (pod && pod->node && pods_are_ours(pods, pod->object))
			adopt_pod(pods, pod);
	}
	for (size_t i = 0; i < pods->known.capacity; i++)
		if (pods->known.entries[i].value)
			add_ghosts(pods, pods->known.entries[i].value);
	for (size_t i = 0; i < pods->pods.capacity; i++) {
		struct pod *pod = pods->pods.entries[i].value;
		if (!pod || !pod->unit)
			continue;
		pod_look_at_phase(pods, pod);
		const struct unit_task *task = &pod->unit->tasks[pod->place];
		if (task->reservation_id && (task->stopping || pod->unit->state == UNIT_ENDED))
			order_evict(pods, pod, true);
	}
}
