/* effects.c - what follows from a command: records, orders, events, a reply */
#include "core/record/effects.h"

static const struct words effect_words = WORDS("put", "delete", "archive", "start", "stop", "load",
                                               "route", "event", "more", "suspend", "resume");
static const struct words route_words = WORDS("granted", "queued", "refused", "expired", "ended");
const struct words event_words =
    WORDS("job_submitted", "job_scheduled", "job_started", "job_preempted", "job_requeued",
          "job_ended", "job_held", "job_released", "task_started", "task_ended", "node_changed",
          "gpu_over", "gpu_free_again", "tenant_changed", "release_late", "model_changed",
          "slot_loading", "slot_ready", "slot_stopping", "slot_gone", "model_failed", "task_over",
          "task_idle", "task_unguarded", "node_misreported", "clock_moved", "job_suspended",
          "job_resumed", "task_crowded", "job_deadline", "window_changed", "task_unexplained");

/* clang-format off */
#define ORDER_FIELDS(F, T)                                                                         \
	F(T, term) F(T, reservation_id) F(T, job_id) F(T, task) F(T, node_id) F(T, tenant_id)      \
	F(T, grace_ms)                                                                             \
	F(T, tasks) F(T, parts, .width = PART_WIDTH) F(T, cpu_milli) F(T, host_bytes) F(T, max_runtime_ms) \
	F(T, lease_loss, .words = &lease_loss_words) F(T, copy_bytes)

#define LOAD_FIELDS(F, T)                                                                          \
	F(T, term) F(T, reservation_id) F(T, model_id) F(T, node_id) F(T, tenant_id)               \
	F(T, runtime, .words = &runtime_words) F(T, parts, .width = PART_WIDTH)                    \
	F(T, utilisation, .width = 1) F(T, tensor_parallel) F(T, context) F(T, parallel)           \
	F(T, kv_cache) F(T, command) F(T, cpu_milli) F(T, host_bytes) F(T, load_timeout_ms)

#define ROUTE_FIELDS(F, T)                                                                         \
	F(T, outcome, .words = &route_words) F(T, request_id) F(T, model_id) F(T, slot_id)         \
	F(T, node_id) F(T, address) F(T, until_ms) F(T, waiting) F(T, reason)

#define EVENT_FIELDS(F, T)                                                                         \
	F(T, number) F(T, kind, .words = &event_words) F(T, time_ms) F(T, job_id) F(T, task)       \
	F(T, node_id) F(T, gpu_id) F(T, tenant_id) F(T, model_id) F(T, value)

#define REPLY_FIELDS(F, T) F(T, reply_id) F(T, reply_count) F(T, repeated)
/* clang-format on */

static const struct record_type order_type =
    RECORD_TYPE("order", 0, struct task_order, ORDER_FIELDS);
static const struct record_type load_type = RECORD_TYPE("load", 0, struct load_order, LOAD_FIELDS);
static const struct record_type route_type =
    RECORD_TYPE("route", 0, struct route_effect, ROUTE_FIELDS);
const struct record_type event_type = RECORD_TYPE("event", 1, struct event, EVENT_FIELDS);
static const struct record_type reply_type = RECORD_TYPE("reply", 0, struct effects, REPLY_FIELDS);

static struct effect *effects_add(struct effects *effects, enum effect_kind kind)
{
	if (effects->count == effects->capacity)
		array_reserve(effects->at, effects->capacity, effects->count + 1);
	struct effect *effect = &effects->at[effects->count++];
	effect->kind = kind;
	return effect;
}

struct effect effect_copy(struct arena *arena, const struct effect *effect)
{
	struct effect copy = *effect;

	switch (effect->kind) {
	case EFFECT_PUT:
		copy.record = record_copy(arena, effect->record_kind, effect->record);
		break;
	case EFFECT_START:
	case EFFECT_STOP:
	case EFFECT_SUSPEND:
	case EFFECT_RESUME:
		copy.order.parts = rows_copy(arena, effect->order.parts, PART_WIDTH);
		if (effect->order.pod)
			copy.order.pod = arena_string(arena, effect->order.pod);
		break;
	case EFFECT_LOAD:
		copy.load.parts = rows_copy(arena, effect->load.parts, PART_WIDTH);
		copy.load.utilisation = rows_copy(arena, effect->load.utilisation, 1);
		copy.load.kv_cache = arena_string(arena, effect->load.kv_cache);
		copy.load.command = arena_string(arena, effect->load.command);
		break;
	case EFFECT_ROUTE:
		copy.route.address = arena_string(arena, effect->route.address);
		copy.route.reason = arena_string(arena, effect->route.reason);
		break;
	default:
		break;
	}
	return copy;
}

static void effects_add_copy(struct effects *effects, const struct effect *effect)
{
	*effects_add(effects, effect->kind) = effect_copy(&effects->arena, effect);
}

void effects_put(struct effects *effects, enum record_kind kind, const void *record)
{
	struct effect *effect = effects_add(effects, EFFECT_PUT);
	effect->record_kind = kind;
	effect->record = record_copy(&effects->arena, kind, record);
}

void effects_delete(struct effects *effects, enum record_kind kind, int64_t first, int64_t second)
{
	struct effect *effect = effects_add(effects, EFFECT_DELETE);
	effect->record_kind = kind;
	effect->key = (struct record_key){ first, second };
}

void effects_archive(struct effects *effects, enum record_kind kind, int64_t first, int64_t second)
{
	struct effect *effect = effects_add(effects, EFFECT_ARCHIVE);
	effect->record_kind = kind;
	effect->key = (struct record_key){ first, second };
}

void effects_order(struct effects *effects, enum effect_kind kind, const struct task_order *order)
{
	INVARIANT(kind == EFFECT_START || kind == EFFECT_STOP || kind == EFFECT_SUSPEND ||
	          kind == EFFECT_RESUME);
	effects_add_copy(effects, &(struct effect){ .kind = kind, .order = *order });
}

void effects_load(struct effects *effects, const struct load_order *order)
{
	effects_add_copy(effects, &(struct effect){ .kind = EFFECT_LOAD, .load = *order });
}

void effects_route(struct effects *effects, const struct route_effect *route)
{
	effects_add_copy(effects, &(struct effect){ .kind = EFFECT_ROUTE, .route = *route });
}

void effects_event(struct effects *effects, const struct event *event)
{
	effects_add(effects, EFFECT_EVENT)->event = *event;
}

void effects_more(struct effects *effects)
{
	effects_add(effects, EFFECT_MORE);
}

void effects_clear(struct effects *effects)
{
	effects->count = 0;
	effects->reply_id = effects->reply_count = 0;
	effects->repeated = false;
	arena_reset(&effects->arena);
}

void effects_free(struct effects *effects)
{
	effects->at = memory_resize(effects->at, 0);
	arena_free(&effects->arena);
	*effects = (struct effects){ 0 };
}

static void encode_key(struct buffer *buffer, const struct effect *effect)
{
	buffer_varint(buffer, effect->record_kind);
	buffer_signed(buffer, effect->key.first);
	buffer_signed(buffer, effect->key.second);
}

static void effect_encode(struct buffer *buffer, const struct effect *effect)
{
	buffer_varint(buffer, effect->kind);
	switch (effect->kind) {
	case EFFECT_PUT:
		buffer_varint(buffer, effect->record_kind);
		record_encode(buffer, effect->record_kind, effect->record);
		break;
	case EFFECT_DELETE:
	case EFFECT_ARCHIVE:
		encode_key(buffer, effect);
		break;
	case EFFECT_START:
	case EFFECT_STOP:
	case EFFECT_SUSPEND:
	case EFFECT_RESUME:
		fields_encode(buffer, &order_type, &effect->order);
		break;
	case EFFECT_LOAD:
		fields_encode(buffer, &load_type, &effect->load);
		break;
	case EFFECT_ROUTE:
		fields_encode(buffer, &route_type, &effect->route);
		break;
	case EFFECT_EVENT:
		fields_encode(buffer, &event_type, &effect->event);
		break;
	case EFFECT_MORE:
		break;
	}
}

void effects_encode(struct buffer *buffer, const struct effects *effects)
{
	fields_encode(buffer, &reply_type, effects);
	buffer_varint(buffer, effects->count);
	for (size_t i = 0; i < effects->count; i++)
		effect_encode(buffer, &effects->at[i]);
}

/* ` task job_id=7 place=0` */
static void print_key(struct buffer *buffer, const struct effect *effect)
{
	const struct record_type *type = record_type(effect->record_kind);
	buffer_print(buffer, " %s %s=%lld", type->name, type->fields[0].name,
	             (long long)effect->key.first);
	if (type->keys > 1)
		buffer_print(buffer, " %s=%lld", type->fields[1].name,
		             (long long)effect->key.second);
}

static void effect_print(struct buffer *buffer, const struct effect *effect)
{
	buffer_text(buffer, word_of(&effect_words, effect->kind));
	switch (effect->kind) {
	case EFFECT_PUT:
		buffer_text(buffer, " ");
		record_print(buffer, effect->record_kind, effect->record);
		break;
	case EFFECT_DELETE:
	case EFFECT_ARCHIVE:
		print_key(buffer, effect);
		break;
	case EFFECT_START:
	case EFFECT_STOP:
	case EFFECT_SUSPEND:
	case EFFECT_RESUME:
		fields_print(buffer, &order_type, &effect->order);
		break;
	case EFFECT_LOAD:
		fields_print(buffer, &load_type, &effect->load);
		break;
	case EFFECT_ROUTE:
		fields_print(buffer, &route_type, &effect->route);
		break;
	case EFFECT_EVENT:
		fields_print(buffer, &event_type, &effect->event);
		break;
	case EFFECT_MORE:
		break;
	}
	buffer_text(buffer, "\n");
}

void effects_print(struct buffer *buffer, const struct effects *effects)
{
	for (size_t i = 0; i < effects->count; i++)
		effect_print(buffer, &effects->at[i]);
	if (effects->reply_id || effects->reply_count || effects->repeated) {
		buffer_text(buffer, "reply");
		fields_print(buffer, &reply_type, effects);
		buffer_text(buffer, "\n");
	}
}
