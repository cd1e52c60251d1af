/* model.c - models: what people put, and what became of it */
#include "core/model/model.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/state.h"

#define TEXT_MAX 4096
#define PAYLOAD_MAX (1 << 20)
#define USERS_MAX 4096
#define FAILURE_DOUBLINGS 6
#define FAILURES_APART_MS 600000 /* further apart, they do not add up */
#define LOAD_MIB_PER_MS 8        /* no disk and no bus is faster */
#define WAKE_MIB_PER_MS 16       /* until one has woken */
#define WAKE_LEAST_MS 300

struct model *models_find(const struct models *models, int64_t id)
{
	return map_get(&models->by_id, id);
}

static char *make_key(struct arena *arena, int64_t tenant_id, const char *name)
{
	struct buffer text = { 0 };

	buffer_print(&text, "%" PRId64 "/%s", tenant_id, name);
	char *key = arena_string(arena, text.data);
	buffer_free(&text);
	return key;
}

struct model *models_named(const struct models *models, int64_t tenant_id, const char *name)
{
	struct arena scratch = { 0 };
	struct model *model = text_map_get(&models->by_name, make_key(&scratch, tenant_id, name));

	arena_free(&scratch);
	return model;
}

struct model *models_only_named(const struct models *models, const char *name)
{
	struct model *found = NULL;

	for (size_t i = 0; i < models->count; i++) {
		if (strcmp(models->all[i]->r.name, name) != 0)
			continue;
		if (found)
			return NULL;
		found = models->all[i];
	}
	return found;
}

static int64_t default_concurrency(int32_t runtime)
{
	switch (runtime) {
	case RUNTIME_VLLM:
		return 256;
	case RUNTIME_OLLAMA:
		return 2;
	default:
		return 1;
	}
}

static const char *text_or_empty(const char *text)
{
	return text ? text : "";
}

struct model_record model_complete(const struct model_record *given)
{
	struct model_record model = *given;

	model.name = text_or_empty(given->name);
	model.command = text_or_empty(given->command);
	model.payload = text_or_empty(given->payload);
	model.kv_cache = text_or_empty(given->kv_cache);
	model.gpu_models = text_or_empty(given->gpu_models);
	model.node_labels = text_or_empty(given->node_labels);
	model.message = "";
	if (model.concurrency == 0)
		model.concurrency = default_concurrency(model.runtime);
	if (model.max_replicas == 0)
		model.max_replicas = max64(model.min_replicas, 1);
	if (model.idle_ttl_ms == 0)
		model.idle_ttl_ms = IDLE_TTL_DEFAULT_MS;
	if (model.load_timeout_ms == 0)
		model.load_timeout_ms = LOAD_TIMEOUT_DEFAULT_MS;
	model.removed = false;
	model.load_ms = model.failures = model.failed_ms = model.not_before_ms = 0;
	model.wake_ms = model.sleep_residue_mib = model.sleep_host_bytes = 0;
	return model;
}

/* What a number may be. */
struct range {
	const char *name;
	int64_t value, least, most;
};

static bool check_ranges(const struct model_record *model, struct error *error)
{
	const struct range ranges[] = {
		{ "memory_mib", model->memory_mib, 1, MIB_MAX },
		{ "cpu", model->cpu_milli, 0, CPU_MILLI_MAX },
		{ "host memory", model->host_bytes, 0, HOST_BYTES_MAX },
		{ "context", model->context, 0, INT32_MAX },
		{ "parallel", model->parallel, 0, CONCURRENCY_MAX },
		{ "concurrency", model->concurrency, 1, CONCURRENCY_MAX },
		{ "min_replicas", model->min_replicas, 0, REPLICAS_MAX },
		{ "max_replicas", model->max_replicas, 1, REPLICAS_MAX },
		{ "idle_ttl_ms", model->idle_ttl_ms, 1, TIME_MS_MAX },
		{ "load_timeout_ms", model->load_timeout_ms, 1, TIME_MS_MAX },
		{ "priority", model->priority, INT_MIN, INT_MAX },
		{ "price_input", model->price_input, 0, CHARGE_MOST },
		{ "price_cached", model->price_cached, 0, CHARGE_MOST },
		{ "price_output", model->price_output, 0, CHARGE_MOST },
		{ "queue_timeout_ms", model->queue_timeout_ms, 0, TIME_MS_MAX },
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (ranges[i].value < ranges[i].least || ranges[i].value > ranges[i].most)
			return error_set(
			    error, ERROR_INVALID,
			    "%s of a model is %" PRId64 ": it must be from %" PRId64 " to %" PRId64,
			    ranges[i].name, ranges[i].value, ranges[i].least, ranges[i].most);
	return model->min_replicas <= model->max_replicas ||
	       error_set(error, ERROR_INVALID,
	                 "min_replicas is %" PRId64 ", more than max_replicas, %" PRId64,
	                 model->min_replicas, model->max_replicas);
}

static bool check_splits(const struct model_record *model, struct error *error)
{
	int64_t before = 0;

	for (int64_t i = 0; i < model->splits.count; i++) {
		const int64_t *row = model->splits.at + i * MODEL_SPLIT_WIDTH;
		if (row[0] <= before || row[0] > PARTS_MAX)
			return error_set(error, ERROR_INVALID,
			                 "a model is split over %" PRId64
			                 " GPUs: the counts must rise, from 1 to at most %d",
			                 row[0], PARTS_MAX);
		if (row[1] < 0 || row[1] > MIB_MAX)
			return error_set(error, ERROR_INVALID,
			                 "a model split over %" PRId64 " GPUs takes %" PRId64
			                 " MiB of each: that cannot be",
			                 row[0], row[1]);
		before = row[0];
	}
	return true;
}

static bool check_texts(const struct model_record *model, struct error *error)
{
	const struct {
		const char *name, *text;
		size_t most;
	} texts[] = { { "name", model->name, TEXT_MAX },
		      { "command", model->command, PAYLOAD_MAX },
		      { "payload", model->payload, PAYLOAD_MAX },
		      { "kv_cache", model->kv_cache, TEXT_MAX },
		      { "gpu_models", model->gpu_models, TEXT_MAX },
		      { "node_labels", model->node_labels, 4 * TEXT_MAX } };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strlen(texts[i].text) > texts[i].most)
			return error_set(error, ERROR_INVALID,
			                 "the %s of a model is longer than %zu bytes",
			                 texts[i].name, texts[i].most);
	if (!*model->name)
		return error_set(error, ERROR_INVALID, "a model needs a name");
	if ((model->runtime == RUNTIME_CUSTOM) != (*model->command != 0))
		return error_set(error, ERROR_INVALID,
		                 "a command is for the runtime custom, and needed there");
	return true;
}

bool model_check(const struct model_record *record, struct error *error)
{
	if (!word_of(&runtime_words, record->runtime))
		return error_set(error, ERROR_INVALID, "unknown runtime %d", record->runtime);
	if (!word_of(&slot_policy_words, record->policy))
		return error_set(error, ERROR_INVALID, "unknown placement %d of a model",
		                 record->policy);
	if (!word_of(&keep_alive_words, record->keep_alive))
		return error_set(error, ERROR_INVALID, "unknown keep_alive %d of a model",
		                 record->keep_alive);
	if (record->splits.count < 0 || record->splits.count > PARTS_MAX ||
	    record->users.count < 0 || record->users.count > USERS_MAX)
		return error_set(error, ERROR_INVALID,
		                 "a model has at most %d splits and %d tenants", PARTS_MAX,
		                 USERS_MAX);
	return check_texts(record, error) && check_ranges(record, error) &&
	       check_splits(record, error);
}

/* What depends on others. */
static bool check_put(const struct sched *sched, const struct model_record *model,
                      const struct model *old, struct error *error)
{
	const struct model *named = models_named(&sched->models, model->tenant_id, model->name);

	if (!tenants_find(&sched->tenants, model->tenant_id))
		return error_set(error, ERROR_NOT_FOUND, "tenant-%" PRId64 " is not known",
		                 model->tenant_id);
	for (int64_t i = 0; i < model->users.count; i++)
		if (!tenants_find(&sched->tenants, model->users.at[i]))
			return error_set(error, ERROR_NOT_FOUND, "tenant-%" PRId64 " is not known",
			                 model->users.at[i]);
	if (named && named != old)
		return error_set(error, ERROR_CONFLICT, "there is a model %s already%s",
		                 model->name, named->r.removed ? ", which is being removed" : "");
	if (old && old->r.removed)
		return error_set(error, ERROR_CONFLICT, "model %s is being removed", old->r.name);
	if (old && old->slot_count > 0 && old->r.tenant_id != model->tenant_id)
		return error_set(error, ERROR_CONFLICT,
		                 "model %s has slots that its tenant pays for: remove it first",
		                 old->r.name);
	return true;
}

/* What a slot asks for, for each number of GPUs that the model can be split over. */
static void make_shapes(struct model *model)
{
	int count = 0;

	model->shapes = memory_resize(model->shapes, PARTS_MAX * sizeof(*model->shapes));
	for (int gpus = 1; gpus <= PARTS_MAX; gpus++) {
		int64_t mib = model_part_mib(model, gpus);
		if (mib == 0)
			continue;
		model->shapes[count++] = (struct shape){
			.request = { .gpu_kind = GPU_MEMORY,
			             .gpu_count = gpus,
			             .memory_mib = mib,
			             .total_mib = model->r.uneven && gpus > 1 ? mib * gpus : 0,
			             .cpu_milli = model->r.cpu_milli,
			             .host_bytes = model->r.host_bytes },
			.tasks = 1,
			.filter = model->filter,
		};
	}
	INVARIANT(count > 0);
	model->shapes = memory_resize(model->shapes, (size_t)count * sizeof(*model->shapes));
	model->shape_count = count;
}

/* Takes the record over, with its texts and rows. */
static void own(struct sched *sched, struct model *model, const struct model_record *record)
{
	struct arena texts = { 0 };
	char *message = memory_text(record->message);

	model->r = *(struct model_record *)record_copy(&texts, RECORD_MODEL, record);
	model->key = make_key(&texts, record->tenant_id, model->r.name);
	arena_free(&model->texts);
	model->texts = texts;
	free(model->message);
	model->message = message;
	model->r.message = message;
	model->tenant = tenants_find(&sched->tenants, record->tenant_id);
	model->filter = shapes_filter(&sched->shapes, model->r.gpu_models, model->r.node_labels);
	make_shapes(model);
}

static struct model *model_add(struct sched *sched, const struct model_record *record)
{
	struct models *models = &sched->models;
	struct model *model = NEW(struct model);

	own(sched, model, record);
	model->open = HEAP(struct slot, open_index, route_before);
	array_reserve(models->all, models->capacity, models->count + 1);
	size_t at = models->count++;
	for (; at > 0 && models->all[at - 1]->r.id > record->id; at--)
		models->all[at] = models->all[at - 1];
	models->all[at] = model;
	map_put(&models->by_id, model->r.id, model);
	text_map_put(&models->by_name, model->key, model);
	return model;
}

/* What was kept stays; names may change. */
static void model_change(struct sched *sched, struct model *model, const struct model_record *given)
{
	struct model_record record = *given;

	record.load_ms = model->r.load_ms;
	record.wake_ms = model->r.wake_ms;
	record.sleep_residue_mib = model->r.sleep_residue_mib;
	record.sleep_host_bytes = model->r.sleep_host_bytes;
	record.failures = model->r.failures;
	record.failed_ms = model->r.failed_ms;
	record.not_before_ms = model->r.not_before_ms;
	record.message = model->r.message;
	text_map_remove(&sched->models.by_name, model->key);
	own(sched, model, &record);
	text_map_put(&sched->models.by_name, model->key, model);
	model->failed_version = model->evict_failed.version = 0;
	model->preempt_failed.retry_ms = 0;
	for (size_t i = 0; i < model->slot_count; i++)
		slot_settle(sched, model->slots[i]);
}

bool model_put(struct sched *sched, const struct model_command *command, struct error *error)
{
	struct model_record record = model_complete(&command->model);
	struct model *model = record.id ? models_find(&sched->models, record.id) : NULL;

	INVARIANT(!sched->plan.open && sched->effects != NULL);
	if (record.id && !model)
		return error_set(error, ERROR_NOT_FOUND, "model-%" PRId64 " is not known",
		                 record.id);
	if (!model_check(&record, error) || !check_put(sched, &record, model, error))
		return false;
	if (record.runtime == RUNTIME_CUSTOM && !command->administrator)
		return error_set(error, ERROR_FORBIDDEN,
		                 "model %s has a command of its own: only an administrator may "
		                 "put that",
		                 record.name);
	if (model) {
		model_change(sched, model, &record);
	} else {
		record.id = ++sched->meta.last_model_id;
		model = model_add(sched, &record);
	}
	sched->effects->reply_id = model->r.id;
	sched_dirty_model(sched, model);
	evict_list_model(sched, model);
	replica_list(sched, model);
	sched_event(sched, (struct event){ .kind = EVENT_MODEL_CHANGED,
	                                   .model_id = model->r.id,
	                                   .tenant_id = model->r.tenant_id });
	return true;
}

bool model_remove(struct sched *sched, int64_t id, struct error *error)
{
	struct model *model = models_find(&sched->models, id);

	INVARIANT(!sched->plan.open && sched->effects != NULL);
	if (!model || model->r.removed)
		return error_set(error, ERROR_NOT_FOUND, "model-%" PRId64 " is not known", id);
	model->r.removed = true;
	sched_dirty_model(sched, model);
	route_end_all(sched, model, ROUTE_ENDED, "the model was removed");
	for (size_t i = model->slot_count; i-- > 0;)
		slot_stop(sched, model->slots[i], false);
	sched_event(sched, (struct event){ .kind = EVENT_MODEL_CHANGED,
	                                   .model_id = id,
	                                   .tenant_id = model->r.tenant_id });
	model_settle(sched, model);
	return true;
}

/* Whether the slot is one that an eviction is about. */
static bool is_evicted_from(const struct slot *slot, const char *node)
{
	return slot->r.state != SLOT_STOPPING &&
	       (!*node || strcmp(slot->reservation->node->r.name, node) == 0);
}

bool model_evict(struct sched *sched, int64_t id, const char *node, bool now, struct error *error)
{
	struct model *model = models_find(&sched->models, id);
	int64_t count = 0;

	INVARIANT(!sched->plan.open && sched->effects != NULL);
	node = node ? node : "";
	if (!model || model->r.removed)
		return error_set(error, ERROR_NOT_FOUND, "model-%" PRId64 " is not known", id);
	if (*node && !cluster_node(&sched->cluster, node))
		return error_set(error, ERROR_NOT_FOUND, "node %.200s is not known", node);
	for (size_t i = 0; i < model->slot_count; i++)
		count += is_evicted_from(model->slots[i], node);
	if (count == 0)
		return error_set(error, ERROR_CONFLICT, "model %s has no replica%s%.200s",
		                 model->r.name, *node ? " on node " : "", node);
	for (size_t i = model->slot_count; i-- > 0;) {
		struct slot *slot = model->slots[i];
		if (!is_evicted_from(slot, node))
			continue;
		if (now || slot->r.state != SLOT_READY)
			slot_stop(sched, slot, false);
		else if (!slot->r.evicted)
			slot_evict(sched, slot);
	}
	sched->effects->reply_id = id;
	sched->effects->reply_count = count;
	model_settle(sched, model);
	return true;
}

void model_free(struct model *model)
{
	arena_free(&model->texts);
	free(model->message);
	free(model->shapes);
	free(model->slots);
	heap_free(&model->open);
	free(model);
}

void model_settle(struct sched *sched, struct model *model)
{
	struct models *models = &sched->models;
	size_t at = 0;

	replica_list(sched, model);
	if (!model->r.removed || model->slot_count > 0 || model->gone)
		return;
	while (models->all[at] != model)
		at++;
	models->count--;
	memmove(models->all + at, models->all + at + 1,
	        (models->count - at) * sizeof(struct model *));
	map_remove(&models->by_id, model->r.id);
	text_map_remove(&models->by_name, model->key);
	sched_gone_model(sched, model);
}

bool model_may_use(const struct sched *sched, const struct model *model, int64_t tenant_id)
{
	if (tenant_id == 0 || model->r.shared)
		return true;
	for (const struct tenant *tenant = tenants_find(&sched->tenants, tenant_id); tenant;
	     tenant = tenant->parent) {
		if (tenant == model->tenant)
			return true;
		for (int64_t i = 0; i < model->r.users.count; i++)
			if (model->r.users.at[i] == tenant->r.id)
				return true;
	}
	return false;
}

static int64_t model_share_of(int64_t mib, int64_t usable_mib)
{
	return usable_mib > 0 ? min64((mib * WHOLE_GPU + usable_mib - 1) / usable_mib, WHOLE_GPU)
	                      : WHOLE_GPU;
}

struct amounts model_amounts(const struct model *model, int64_t smallest_mib)
{
	struct amounts amounts = {
		.of = { [AMOUNT_CPU] = model->r.cpu_milli, [AMOUNT_HOST] = model->r.host_bytes }
	};
	int at = 0;

	while (at + 1 < model->shape_count && model->shapes[at].request.memory_mib > smallest_mib)
		at++;
	const struct shape_request *request = &model->shapes[at].request;
	amounts.of[AMOUNT_GPU] =
	    request->gpu_count * model_share_of(request->memory_mib, smallest_mib);
	amounts.of[AMOUNT_GPU_MEMORY] = request->gpu_count * request->memory_mib;
	return amounts;
}

int64_t model_part_mib(const struct model *model, int count)
{
	int64_t divided = (model->r.memory_mib + count - 1) / count;

	INVARIANT(count >= 1 && count <= PARTS_MAX);
	if (model->r.splits.count == 0)
		return divided;
	for (int64_t i = 0; i < model->r.splits.count; i++) {
		const int64_t *row = model->r.splits.at + i * MODEL_SPLIT_WIDTH;
		if (row[0] == count)
			return row[1] > 0 ? row[1] : divided;
	}
	return 0;
}

int64_t model_reload_ms(const struct model *model, int64_t memory_mib)
{
	return max64(model->r.load_ms, memory_mib / LOAD_MIB_PER_MS);
}

void model_failed(struct sched *sched, struct model *model, const char *message)
{
	int64_t now_ms = sched_now(sched);

	if (now_ms - model->r.failed_ms > FAILURES_APART_MS)
		model->r.failures = 0;
	int64_t doublings = min64(model->r.failures, FAILURE_DOUBLINGS);
	model->r.failures++;
	model->r.failed_ms = now_ms;
	model->r.not_before_ms = now_ms + (sched->config.refuse_backoff_ms << doublings);
	free(model->message);
	model->message = memory_text(message);
	model->r.message = model->message;
	sched_dirty_model(sched, model);
	sched_event(sched, (struct event){ .kind = EVENT_MODEL_FAILED,
	                                   .model_id = model->r.id,
	                                   .tenant_id = model->r.tenant_id,
	                                   .value = model->r.failures });
}

void model_loaded(struct sched *sched, struct model *model, int64_t took_ms)
{
	int64_t before = model->r.load_ms;

	INVARIANT(took_ms >= 0);
	model->r.load_ms = before ? (3 * before + took_ms) / 4 : took_ms;
	if (model->r.load_ms != before)
		sched_dirty_model(sched, model);
}

int64_t model_wake_ms(const struct model *model, int64_t memory_mib)
{
	if (model->r.wake_ms > 0)
		return model->r.wake_ms;
	return WAKE_LEAST_MS + memory_mib / WAKE_MIB_PER_MS;
}

int64_t model_residue_mib(const struct model *model)
{
	return model->r.sleep_residue_mib;
}

void model_woke(struct sched *sched, struct model *model, int64_t took_ms)
{
	int64_t before = model->r.wake_ms;

	INVARIANT(took_ms >= 0);
	model->r.wake_ms = max64(before ? (3 * before + took_ms) / 4 : took_ms, 1);
	if (model->r.wake_ms != before)
		sched_dirty_model(sched, model);
}

void model_slept(struct sched *sched, struct model *model, int64_t residue_mib, int64_t host_bytes)
{
	if (residue_mib == model->r.sleep_residue_mib && host_bytes == model->r.sleep_host_bytes)
		return;
	model->r.sleep_residue_mib = residue_mib;
	model->r.sleep_host_bytes = host_bytes;
	sched_dirty_model(sched, model);
}

struct model *model_load(struct sched *sched, const struct model_record *record,
                         struct error *error)
{
	if (!model_check(record, error))
		return NULL;
	return model_add(sched, record);
}

void models_free(struct models *models)
{
	for (size_t i = 0; i < models->slots.capacity; i++)
		if (models->slots.entries[i].value)
			slot_free(models->slots.entries[i].value);
	for (size_t i = 0; i < models->count; i++)
		model_free(models->all[i]);
	free(models->all);
	map_free(&models->by_id);
	map_free(&models->slots);
	text_map_free(&models->by_name);
	ranktree_free(&models->wanting);
	ranktree_free(&models->claimants);
	ranktree_free(&models->closing);
	ranktree_free(&models->asleep);
	free(models->order);
}
