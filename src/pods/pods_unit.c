/* pods_unit.c - a pod, or the pods of a group, as one job */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "pods/pods_local.h"

#define RETRY_MS 15000
#define FIRST_WHY_MS 400

static void not_vacant(struct pods *pods, struct unit *unit)
{
	pods->vacant_count -= unit->vacant_ms > 0;
	unit->vacant_ms = 0;
}

struct unit *unit_new(struct pods *pods, const char *key)
{
	struct unit *unit = NEW(struct unit);

	unit->serial = ++pods->last_serial;
	unit->key = memory_text(key);
	unit->why_ms = pods->now_ms + FIRST_WHY_MS;
	text_map_put(&pods->units, key, unit);
	map_put(&pods->serials, unit->serial, unit);
	return unit;
}

void unit_free(struct pods *pods, struct unit *unit)
{
	for (int i = 0; i < unit->task_count; i++) {
		struct unit_task *task = &unit->tasks[i];
		if (task->pod)
			task->pod->unit = NULL;
		if (task->reservation_id)
			map_remove(&pods->reservations, task->reservation_id);
		free(task->node);
		free(task->uuids);
		free(task->limits);
		free(task->parts);
	}
	not_vacant(pods, unit);
	if (text_map_get(&pods->units, unit->key) == unit)
		text_map_remove(&pods->units, unit->key);
	map_remove(&pods->serials, unit->serial);
	if (unit->job_id && map_get(&pods->jobs, unit->job_id) == unit)
		map_remove(&pods->jobs, unit->job_id);
	if (unit->class)
		class_unuse(pods, unit->class);
	free(unit->key);
	free(unit->job_key);
	free(unit->join);
	free(unit->tenant);
	free(unit->group_name);
	free(unit->namespace);
	free(unit->class);
	free(unit->tasks);
	free(unit);
}

int unit_filled(const struct unit *unit)
{
	int filled = 0;

	for (int i = 0; i < unit->task_count; i++)
		filled += unit->tasks[i].pod != NULL;
	return filled;
}

/* The first place that waits for a pod; -1: none. */
static int vacancy(const struct unit *unit)
{
	for (int i = 0; i < unit->task_count; i++)
		if (!unit->tasks[i].pod && !unit->tasks[i].ended && !unit->tasks[i].reservation_id)
			return i;
	return -1;
}

/* A job from before this start has a class that is to be kept up to date again. */
static void use_class_again(struct pods *pods, struct unit *unit, const struct pod *pod)
{
	struct ask ask;
	struct error error;
	/* As it was before it was bound. */
	json_t *object = json_copy(pod->object), *spec = json_object_get(object, "spec");

	json_object_set_new(object, "spec", json_copy(spec));
	json_object_del(json_object_get(object, "spec"), "nodeName");
	if (ask_read(pods, object, &ask, &error)) {
		unit->class = memory_text(ask.node_class.data);
		class_use(pods, unit->class, object,
		          ask.gpus.kind == POD_GPU_FRACTION || ask.gpus.kind == POD_GPU_MEMORY);
	}
	ask_free(&ask);
	json_decref(object);
}

void unit_put_pod(struct pods *pods, struct unit *unit, int place, struct pod *pod)
{
	INVARIANT(!pod->unit && place < unit->task_count && !unit->tasks[place].pod);
	unit->tasks[place].pod = pod;
	pod->unit = unit;
	pod->place = place;
	if (!unit->class && unit->state == UNIT_QUEUED)
		use_class_again(pods, unit, pod);
}

void unit_wait_for_pods(struct pods *pods, struct unit *unit)
{
	if (unit->vacant_ms == 0) {
		unit->vacant_ms = max64(pods->now_ms, 1);
		pods->vacant_count++;
	}
	if (!unit->held && unit->job_id) {
		unit->held = true;
		pods_send_job(pods, COMMAND_HOLD, unit->job_id);
	}
}

static bool has_reservations(const struct unit *unit)
{
	for (int i = 0; i < unit->task_count; i++)
		if (unit->tasks[i].reservation_id)
			return true;
	return false;
}

void unit_remove_pod(struct pods *pods, struct pod *pod)
{
	struct unit *unit = pod->unit;
	struct unit_task *task = &unit->tasks[pod->place];
	bool evicted = task->stopping && !task->ended;

	task->pod = NULL;
	task->started = task->stopping = false;
	pod->unit = NULL;
	if (unit->state == UNIT_GATHERING) {
		/* The places of a group that gathers are filled without holes. */
		unit->tasks[pod->place] = unit->tasks[unit->task_count - 1];
		if (unit->tasks[pod->place].pod)
			unit->tasks[pod->place].pod->place = pod->place;
		unit->task_count--;
	}
	if (unit_filled(unit) == 0 &&
	    (unit->state == UNIT_GATHERING || unit->state == UNIT_ENDED)) {
		unit_free(pods, unit);
		return;
	}
	if (unit->state != UNIT_QUEUED)
		return;
	if (evicted || (unit->is_group && !task->ended && !has_reservations(unit)))
		unit_wait_for_pods(pods, unit);
}

bool ask_read(const struct pods *pods, const json_t *object, struct ask *ask, struct error *error)
{
	const struct pod_settings settings = { .ignored_resources = pods->gpu_resources,
		                               .namespaces = pods->namespaces };

	*ask = (struct ask){ 0 };
	buffer_text(&ask->rules, "");
	if (!pod_gpus_read(object, &ask->gpus, error) ||
	    !claims_ask(pods, object, &ask->gpus, error) ||
	    !pod_request_read(object, &settings, &ask->request, error) ||
	    !pod_rules(object, &settings, &ask->rules, error))
		return false;
	pod_marks(object, &ask->marks);
	bool parts = ask->gpus.kind == POD_GPU_FRACTION || ask->gpus.kind == POD_GPU_MEMORY;
	pod_node_class(object, parts, &ask->node_class);
	if (pod_has_claims(object))
		buffer_text(&ask->node_class, "-claims");
	json_t *volumes = class_volumes(pods, object, error);
	pod_volumes_class(volumes, &ask->node_class);
	json_decref(volumes);
	return volumes != NULL;
}

void ask_free(struct ask *ask)
{
	buffer_free(&ask->request.counts);
	buffer_free(&ask->marks);
	buffer_free(&ask->rules);
	buffer_free(&ask->node_class);
}

static bool same_gpus(const struct pod_gpus *a, const struct pod_gpus *b)
{
	return a->kind == b->kind && a->count == b->count && a->fraction == b->fraction &&
	       a->memory_mib == b->memory_mib;
}

/* All tasks of a job ask for the same. Of CPU and memory each gets what the largest asks for. */
static bool combine(struct ask *ask, const struct ask *other, struct error *error)
{
	if (!same_gpus(&ask->gpus, &other->gpus) ||
	    strcmp(ask->node_class.data, other->node_class.data) != 0 ||
	    strcmp(ask->request.counts.data, other->request.counts.data) != 0 ||
	    strcmp(ask->rules.data, other->rules.data) != 0)
		return error_set(error, ERROR_INVALID,
		                 "the pods of its group ask for different GPUs, resources or "
		                 "nodes, which this scheduler cannot start together");
	ask->request.cpu_milli = max64(ask->request.cpu_milli, other->request.cpu_milli);
	ask->request.memory_bytes = max64(ask->request.memory_bytes, other->request.memory_bytes);
	return true;
}

static bool unit_ask(struct pods *pods, const struct unit *unit, struct ask *ask,
                     struct error *error)
{
	bool right = true;

	for (int i = 0; right && i < unit->task_count; i++) {
		struct ask other;
		if (i == 0) {
			right = ask_read(pods, unit->tasks[0].pod->object, ask, error);
			continue;
		}
		right = ask_read(pods, unit->tasks[i].pod->object, &other, error) &&
		        combine(ask, &other, error);
		ask_free(&other);
	}
	return right;
}

/* The queue of KAI that the unit is in; "": none. */
static const char *queue_of(const struct pods *pods, const struct unit *unit, const struct pod *pod)
{
	bool is_queue, unknown;
	const char *named = pod_tenant(pod->object, &is_queue);
	const char *of_group = group_rank(pods, unit).queue;
	struct pod_group group;

	if (!pods->settings.kai_queues || (*named && !is_queue))
		return "";
	if (*of_group || *named)
		return *of_group ? of_group : named;
	return pod_queue_label(group_of_owner(pods, pod, &group, &unknown));
}

/* The tenant whose namespaces include the pod's, as it asks or by default; NULL with a reason. */
static const char *tenant_name(const struct pods *pods, const struct unit *unit,
                               const struct pod *pod, struct error *error)
{
	bool queue;
	const char *asked = pod_tenant(pod->object, &queue);
	size_t size = strlen(pod->namespace);

	if (*queue_of(pods, unit, pod))
		return queue_of(pods, unit, pod);
	for (size_t i = 0; pods->settings.tenants[i]; i++) {
		const char *pair = pods->settings.tenants[i];
		bool its = strncmp(pair, pod->namespace, size) == 0 && pair[size] == '=';
		if (its && (!*asked || strcmp(pair + size + 1, asked) == 0))
			return pair + size + 1;
	}
	if (*asked && strcmp(asked, pod->namespace) != 0) {
		error_set(error, ERROR_FORBIDDEN,
		          "namespace %.63s may not use tenant %.80s: list %.63s=%.40s in "
		          "kubernetes.tenants",
		          pod->namespace, asked, pod->namespace, asked);
		return NULL;
	}
	if (pods->port.tenant(pods->port.context, pod->namespace))
		return pod->namespace;
	if (*pods->settings.default_tenant)
		return pods->settings.default_tenant;
	error_set(error, ERROR_NOT_FOUND,
	          "namespace %.63s has no tenant: create one of that name, list the namespace in "
	          "kubernetes.tenants, or set kubernetes.default_tenant",
	          pod->namespace);
	return NULL;
}

static int64_t tenant_of(const struct pods *pods, const struct unit *unit, const struct pod *pod,
                         struct error *error)
{
	const char *name = tenant_name(pods, unit, pod, error);
	int64_t id = name ? pods->port.tenant(pods->port.context, name) : 0;

	if (name && !id)
		error_set(error, ERROR_NOT_FOUND, "there is no %s %.120s",
		          *queue_of(pods, unit, pod) ? "queue, and no tenant," : "tenant", name);
	return id;
}

static struct job_record job_of(const struct pods *pods, const struct unit *unit,
                                const struct ask *ask, int64_t tenant_id, int64_t least)
{
	static const enum gpu_kind kinds[] = { GPU_NONE, GPU_WHOLE, GPU_FRACTION, GPU_MEMORY };
	const struct pod *pod = unit->tasks[0].pod;
	const struct pod_gpus *gpus = &ask->gpus;
	const struct pod_group_rank rank = group_rank(pods, unit);
	int64_t priority = pod_priority(pod->object);
	bool preemptible = pod_is_preemptible(pod->object);

	if (*rank.priority_class) {
		priority = group_priority(pods, rank.priority_class);
		preemptible = priority < POD_PREEMPTIBLE_BELOW;
	}
	if (rank.preemptible >= 0)
		preemptible = rank.preemptible;
	return (struct job_record){
		.tenant_id = tenant_id,
		.gpu_models = "",
		.node_labels = "",
		.user = "",
		.idempotency_key = unit->job_key,
		.priority = min64(max64(priority, INT32_MIN), INT32_MAX),
		.preemptible = preemptible,
		.gpu_kind = (int32_t)kinds[gpus->kind],
		.gpu_count = (int32_t)(gpus->kind == POD_GPU_NONE ? 0 : gpus->count),
		.fraction = (int32_t)(gpus->kind == POD_GPU_FRACTION ? gpus->fraction : 0),
		.memory_mib = gpus->kind == POD_GPU_MEMORY ? gpus->memory_mib : 0,
		.cpu_milli = min64(ask->request.cpu_milli, CPU_MILLI_MAX),
		.host_bytes = min64(ask->request.memory_bytes, HOST_BYTES_MAX),
		.tasks = unit->task_count,
		.min_available = least,
		.resources = ask->request.counts.data,
		.rules = ask->rules.data,
		.marks = ask->marks.data,
		.node_class = ask->node_class.data,
		.request_hash = 0,
	};
}

/* Labels by which people find the job: the pod, and its group. */
static char *payload_of(const struct unit *unit)
{
	const struct pod *pod = unit->tasks[0].pod;
	json_t *labels = json_object(), *payload = json_object();
	char *name = text_print("%s/%s", pod->namespace, pod->name);

	json_object_set_new(labels, "pod", json_string(name));
	json_object_set_new(labels, "namespace", json_string(pod->namespace));
	if (unit->is_group)
		json_object_set_new(labels, "group", json_string(unit->group_name));
	for (int i = 0; i < unit->task_count && i < 128; i++) {
		char *key = text_print("pod/%s/%s", pod->namespace, unit->tasks[i].pod->name);
		json_object_set_new(labels, key, json_string("true"));
		free(key);
	}
	json_object_set_new(payload, "labels", labels);
	char *text = json_dumps(payload, JSON_COMPACT);
	json_decref(payload);
	free(name);
	return text;
}

static void unit_refused(struct pods *pods, struct unit *unit, const char *text)
{
	unit->state = UNIT_GATHERING;
	unit->retry_ms = pods->now_ms + RETRY_MS;
	for (int i = 0; i < unit->task_count; i++)
		if (unit->tasks[i].pod)
			say_waits(pods, unit->tasks[i].pod, "Rejected", text);
}

static void submit(struct pods *pods, struct unit *unit, int64_t least)
{
	struct ask ask = { 0 };
	struct error error = { 0 };
	const struct pod *pod = unit->tasks[0].pod;
	int64_t tenant_id = tenant_of(pods, unit, pod, &error);

	if (!tenant_id || !unit_ask(pods, unit, &ask, &error)) {
		unit_refused(pods, unit, error.text);
		ask_free(&ask);
		return;
	}
	bool parts = ask.gpus.kind == POD_GPU_FRACTION || ask.gpus.kind == POD_GPU_MEMORY;
	if (!unit->class) {
		unit->class = memory_text(ask.node_class.data);
		class_use(pods, unit->class, pod->object, parts);
	}
	if (!unit->job_key)
		unit->job_key = unit->is_group ? text_print("%s" JOB_KEY_RUN "%016llx", unit->key,
		                                            (unsigned long long)hash_text(pod->uid))
		                               : memory_text(unit->key);
	struct command command = { .kind = COMMAND_SUBMIT };
	char *payload = payload_of(unit);
	char *name = text_print("%.63s/%.180s", pod->namespace,
	                        unit->is_group ? unit->group_name : pod->name);
	command.submit.job = job_of(pods, unit, &ask, tenant_id, least);
	command.submit.job.payload = payload;
	command.submit.job.name = name;
	unit->state = UNIT_ASKED;
	unit->why_ms = pods->now_ms + FIRST_WHY_MS;
	pods->port.command(pods->port.context, &command, unit->serial);
	free(name);
	free(payload);
	ask_free(&ask);
}

void unit_try(struct pods *pods, struct unit *unit)
{
	if (unit->state == UNIT_QUEUED && unit->held && vacancy(unit) < 0 &&
	    unit_filled(unit) > 0) {
		unit->held = false;
		not_vacant(pods, unit);
		pods_send_job(pods, COMMAND_UNHOLD, unit->job_id);
	}
	if (unit->state != UNIT_GATHERING || unit->retry_ms > pods->now_ms || unit->task_count == 0)
		return;
	int64_t least = unit_least(pods, unit);
	/* Those that have succeeded are not made again, and the others can do without them. */
	if (unit->is_group && unit->task_count < least)
		least = max64(least - group_succeeded(pods, unit, least), 1);
	if (least > 0 && unit->task_count >= least) {
		submit(pods, unit, least);
		return;
	}
	unit->retry_ms = pods->now_ms + RETRY_MS;
	for (int i = 0; i < unit->task_count; i++) {
		char *text = least > 0
		                 ? text_print("its group %s has %d of %lld pods", unit->group_name,
		                              unit->task_count, (long long)least)
		                 : text_print("its PodGroup %s does not exist", unit->group_name);
		say_waits(pods, unit->tasks[i].pod, "Gathering", text);
		free(text);
	}
}

/* Its job is one that ended before this start, and whose end nobody heard of. */
static void run_again(struct pods *pods, struct unit *unit, bool cancelled)
{
	char *key = text_print("%s" JOB_KEY_RUN "%016llx", unit->key,
	                       (unsigned long long)hash_text(unit->job_key));

	free(unit->job_key);
	unit->job_key = key;
	unit->state = cancelled ? UNIT_ENDED : UNIT_GATHERING;
	unit->retry_ms = 0;
	for (int i = 0; cancelled && i < unit->task_count; i++)
		if (unit->tasks[i].pod && !unit->tasks[i].pod->gone)
			order_evict(pods, unit->tasks[i].pod, false);
	if (unit_filled(unit) == 0)
		unit_free(pods, unit);
}

void pods_submitted(struct pods *pods, int64_t ticket, int64_t job_id, const struct error *error)
{
	struct unit *unit = map_get(&pods->serials, ticket);
	bool cancelled = false;

	if (!unit) {
		if (job_id)
			pods_send_job(pods, COMMAND_CANCEL, job_id);
		return;
	}
	if (unit->state != UNIT_ASKED)
		return;
	if (!job_id) {
		unit_refused(pods, unit, error->text);
		return;
	}
	if (pods->port.job_is_over(pods->port.context, job_id, &cancelled)) {
		run_again(pods, unit, cancelled);
		return;
	}
	unit->job_id = job_id;
	unit->state = UNIT_QUEUED;
	map_put(&pods->jobs, job_id, unit);
	if (unit_filled(unit) == 0) {
		pods_send_job(pods, COMMAND_CANCEL, job_id);
		unit_free(pods, unit);
	}
}

static void append_pod(struct pods *pods, struct unit *unit, struct pod *pod)
{
	array_reserve(unit->tasks, unit->task_capacity, (size_t)unit->task_count + 1);
	unit->tasks[unit->task_count++] = (struct unit_task){ 0 };
	unit_put_pod(pods, unit, unit->task_count - 1, pod);
}

/* An evicted pod that its controller made again takes the place of the old one. */
static struct unit *find_vacant(const struct pods *pods, const char *join)
{
	struct unit *oldest = NULL;

	if (pods->vacant_count == 0)
		return NULL;
	for (size_t i = 0; i < pods->serials.capacity; i++) {
		struct unit *unit = pods->serials.entries[i].value;
		if (unit && unit->state == UNIT_QUEUED && unit->join && *join &&
		    strcmp(unit->join, join) == 0 && vacancy(unit) >= 0 &&
		    (!oldest || unit->serial < oldest->serial))
			oldest = unit;
	}
	return oldest;
}

static char *join_of(const struct pods *pods, const struct pod *pod)
{
	const char *controller = pod_controller(pod->object);
	struct ask ask;
	struct error error;
	uint64_t hash = 0;

	if (!*controller)
		return memory_text("");
	if (ask_read(pods, pod->object, &ask, &error)) {
		hash = hash_combine(hash_text(ask.node_class.data),
		                    hash_text(ask.request.counts.data));
		hash = hash_combine(hash, (uint64_t)ask.request.cpu_milli);
		hash = hash_combine(hash, (uint64_t)ask.request.memory_bytes);
		hash = hash_combine(hash, hash_text(ask.rules.data));
		hash = hash_combine(hash, (uint64_t)ask.gpus.kind << 40 ^
		                              (uint64_t)ask.gpus.count << 32 ^
		                              (uint64_t)(ask.gpus.memory_mib + ask.gpus.fraction));
	}
	ask_free(&ask);
	return text_print("%s %016llx", controller, (unsigned long long)hash);
}

/* A place for a pod that comes; -1: none. One with a reservation was decided before a restart: its
 * start is ordered again. */
static int open_place(const struct pods *pods, const struct unit *unit)
{
	int place = vacancy(unit);

	for (int i = 0; i < unit->task_count && place < 0; i++)
		if (!unit->tasks[i].pod && !unit->tasks[i].ended &&
		    !is_ghost(pods, unit->tasks[i].reservation_id))
			place = i;
	return place;
}

/* None of its pods runs, or is going to. */
static bool unit_is_over(const struct unit *unit)
{
	int ended = 0;

	for (int i = 0; i < unit->task_count; i++)
		ended += unit->tasks[i].ended;
	return unit->state == UNIT_ENDED || (unit->task_count > 0 && ended == unit->task_count);
}

static void join_by_itself(struct pods *pods, struct pod *pod)
{
	char *join = join_of(pods, pod), *key = text_print(PODS_KEY "pod/%s", pod->uid);
	struct unit *unit = pods_unit(pods, key);

	if (unit && unit_is_over(unit)) {
		text_map_remove(&pods->units, key);
		unit = NULL;
	}
	if (!unit)
		unit = find_vacant(pods, join);
	if (unit && open_place(pods, unit) >= 0) {
		unit_put_pod(pods, unit, open_place(pods, unit), pod);
	} else if (unit) {
		pod_arrives(pods, pod); /* again, when its old reservation is gone */
	} else {
		unit = unit_new(pods, key);
		append_pod(pods, unit, pod);
	}
	if (!unit->join)
		unit->join = memory_text(join);
	free(join);
	free(key);
	if (pod->unit)
		unit_try(pods, pod->unit);
}

/* A place whose pod is on its way out: another that comes is to take it. */
static bool will_be_vacant(const struct unit *unit)
{
	for (int i = 0; i < unit->task_count; i++) {
		const struct unit_task *task = &unit->tasks[i];
		const struct pod *pod = task->pod;
		bool leaves =
		    !pod || task->stopping || pod->gone || pod->evicting || pod->crossed ||
		    member_has(json_object_get(pod->object, "metadata"), "deletionTimestamp");
		if (leaves && !task->ended)
			return true;
	}
	return false;
}

static void join_group(struct pods *pods, struct pod *pod, const struct pod_group *group)
{
	char *key = text_print(PODS_KEY "group/%s/%.190s", pod->namespace, group->name);
	struct unit *unit = pods_unit(pods, key);

	if (unit && unit_is_over(unit)) {
		text_map_remove(&pods->units, key);
		unit = NULL;
	}
	if (!unit) {
		unit = unit_new(pods, key);
		unit->is_group = true;
	}
	free(key);
	if (!unit->group_name) {
		unit->group_name = memory_text(group->name);
		unit->namespace = memory_text(pod->namespace);
		unit->group_resource = group->resource;
		unit->declared_least = group->least;
	}
	if (unit->state == UNIT_GATHERING) {
		unit->declared_least = group->least;
		append_pod(pods, unit, pod);
		unit->retry_ms = 0;
	} else if (open_place(pods, unit) >= 0) {
		unit_put_pod(pods, unit, open_place(pods, unit), pod);
	} else if (unit->state == UNIT_ASKED || will_be_vacant(unit)) {
		pod_arrives(pods, pod); /* again */
	} else {
		join_by_itself(pods, pod); /* above what the group starts with */
	}
}

void unit_join(struct pods *pods, struct pod *pod)
{
	struct pod_group group;
	bool unknown = false;

	pod_group_read(pod->object, &group);
	if (!*group.name)
		group_of_owner(pods, pod, &group, &unknown);
	if (unknown) {
		say_waits(pods, pod, "Gathering",
		          "its owner is not known to this scheduler: may it read objects of that "
		          "kind?");
		pod_arrives(pods, pod);
		return;
	}
	if (*group.name)
		join_group(pods, pod, &group);
	else
		join_by_itself(pods, pod);
}

/* Nobody made its pods again: it is no job any more. */
static void give_up(struct pods *pods, struct unit *unit)
{
	pods_send_job(pods, COMMAND_CANCEL, unit->job_id);
	unit->state = UNIT_ENDED;
	not_vacant(pods, unit);
	for (int i = 0; i < unit->task_count; i++) {
		struct pod *pod = unit->tasks[i].pod;
		if (!pod || pod->gone || pod->node)
			continue;
		/* Those that are left begin a group of their own. */
		unit->tasks[i].pod = NULL;
		pod->unit = NULL;
		pod_arrives(pods, pod);
	}
	if (unit_filled(unit) == 0)
		unit_free(pods, unit);
}

static void unit_time(struct pods *pods, struct unit *unit)
{
	/* One without pods that has ended in part only would wait for ever. */
	bool vacant = unit->state == UNIT_QUEUED && !has_reservations(unit) &&
	              (vacancy(unit) >= 0 || unit_filled(unit) == 0);
	bool new_here = unit->vacant_ms == 0;

	/* A pod that was known from before this start and is not there any more: nothing says which
	 * other pod would replace it. A group has a name. */
	if (vacant && new_here && (unit_filled(unit) > 0 || unit->is_group))
		unit_wait_for_pods(pods, unit);
	else if (vacant &&
	         (new_here || pods->now_ms - unit->vacant_ms >= pods->settings.replace_ms)) {
		give_up(pods, unit);
		return;
	}
	unit_try(pods, unit);
}

void units_time(struct pods *pods)
{
	int64_t *serials = memory_zero(pods->serials.count + 1, sizeof(*serials));
	size_t count = 0;

	for (size_t i = 0; i < pods->serials.capacity; i++)
		if (pods->serials.entries[i].value)
			serials[count++] = pods->serials.entries[i].key;
	for (size_t i = 0; i < count; i++) {
		struct unit *unit = map_get(&pods->serials, serials[i]);
		if (unit)
			unit_time(pods, unit);
	}
	free(serials);
}
