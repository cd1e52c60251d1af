/* message.c - the encoding of messages, and how people read them */
#include "node/message.h"

#include <string.h>

#include "base/number_text.h"
#include "core/record/record.h"
#include "node/texts.h"

static const struct words order_words =
    WORDS("start", "load", "stop", "suspend", "resume", "watch");
static const struct words change_words =
    WORDS("started", "ready", "refused", "exited", "released", "checkpoint", "late", "over", "idle",
          "unguarded", "suspended", "resumed", "crowded", "unexplained");
static const struct words end_words =
    WORDS("itself", "ordered", "runtime", "overuse", "idle", "lease", "lost", "not_started",
          "unhealthy", "unguarded", "foreign");

/* clang-format off */
#define LIST(T, counter, type) .of = &(type), .count_offset = offsetof(T, counter)
#define HEAD_FIELDS(F, T)                                                                          \
	F(T, kind) F(T, boot) F(T, connection) F(T, term) F(T, number) F(T, acknowledged)          \
	F(T, issued)
#define HELLO_FIELDS(F, T) F(T, name) F(T, protocol) F(T, sent_ms)
#define PART_FIELDS(F, T) F(T, uuid) F(T, memory_mib) F(T, share) F(T, whole)
#define ORDER_FIELDS(F, T)                                                                         \
	F(T, kind, .words = &order_words) F(T, reservation_id)                                     \
	F(T, parts, LIST(T, part_count, part_type)) F(T, grace_ms) F(T, cpu_milli)                 \
	F(T, host_bytes) F(T, payload) F(T, job_id) F(T, task) F(T, tasks) F(T, max_runtime_ms)    \
	F(T, lease_loss, .words = &lease_loss_words) F(T, model_id) F(T, model)                    \
	F(T, runtime, .words = &runtime_words) F(T, utilisation, .width = 1)                       \
	F(T, tensor_parallel) F(T, context) F(T, parallel) F(T, kv_cache) F(T, command)            \
	F(T, load_timeout_ms)
#define SAMPLE_FIELDS(F, T)                                                                        \
	F(T, uuid) F(T, foreign_mib) F(T, used_mib) F(T, temperature_c) F(T, power_mw)             \
	F(T, utilisation) F(T, healthy)
#define USE_FIELDS(F, T) F(T, reservation_id) F(T, uuid) F(T, memory_mib) F(T, reserved_mib)
#define SLOT_FIELDS(F, T) F(T, reservation_id) F(T, active)
#define CHANGE_FIELDS(F, T)                                                                        \
	F(T, kind, .words = &change_words) F(T, reservation_id) F(T, slot) F(T, exit_code)         \
	F(T, reason, .words = &end_words) F(T, message) F(T, address) F(T, took_ms)                \
	F(T, pids, .width = 1) F(T, samples, LIST(T, sample_count, sample_type))                   \
	F(T, measurements, LIST(T, measurement_count, measurement_type))
#define BEAT_FIELDS(F, T)                                                                          \
	F(T, sent_ms) F(T, samples, LIST(T, sample_count, sample_type))                            \
	F(T, uses, LIST(T, use_count, use_type)) F(T, slots, LIST(T, slot_count, slot_type))
#define USED_FIELDS(F, T)                                                                    \
	F(T, use.peak_mib) F(T, use.gpu_ms) F(T, use.energy_mj) F(T, use.host_peak_bytes)          \
	F(T, use.cpu_ms) F(T, use.limit_mib) F(T, use.guard_peak_mib) F(T, use.refusals)           \
	F(T, use.refused_mib) F(T, use.unguarded)
#define CHANGE_MORE_FIELDS(F, T) F(T, ago_ms) USED_FIELDS(F, T)
#define COUNTERS_FIELDS(F, T) F(T, uuid) F(T, sm_active) F(T, dram_active) F(T, reason)
#define WORK_FIELDS(F, T) F(T, reservation_id) USED_FIELDS(F, T)
#define BEAT_MORE_FIELDS(F, T)                                                                     \
	F(T, counters, LIST(T, counter_count, counters_type))                                      \
	F(T, works, LIST(T, work_count, work_type))
#define UNEXPLAINED_FIELDS(F, T) F(T, uuid) F(T, memory_mib)
#define BEAT_LAST_FIELDS(F, T)                                                                     \
	F(T, unexplained, LIST(T, unexplained_count, unexplained_type))
#define RENEWAL_FIELDS(F, T) F(T, sent_ms) F(T, lease_ms)
#define REFUSAL_FIELDS(F, T) F(T, connection) F(T, message)
/* clang-format on */

#define TYPE static const struct record_type
TYPE head_type = RECORD_TYPE("message", 0, struct message, HEAD_FIELDS);
TYPE hello_type = RECORD_TYPE("hello", 0, struct hello, HELLO_FIELDS);
TYPE part_type = RECORD_TYPE("part", 0, struct order_part, PART_FIELDS);
const struct record_type node_order_type = RECORD_TYPE("order", 0, struct node_order, ORDER_FIELDS);
TYPE sample_type = RECORD_TYPE("sample", 0, struct gpu_sample, SAMPLE_FIELDS);
TYPE use_type = RECORD_TYPE("use", 0, struct use_sample, USE_FIELDS);
TYPE slot_type = RECORD_TYPE("slot", 1, struct slot_sample, SLOT_FIELDS);
TYPE change_type = RECORD_TYPE("change", 0, struct change, CHANGE_FIELDS);
TYPE beat_type = RECORD_TYPE("beat", 0, struct beat, BEAT_FIELDS);
TYPE change_more_type = RECORD_TYPE("change", 0, struct change, CHANGE_MORE_FIELDS);
TYPE counters_type = RECORD_TYPE("counters", 0, struct gpu_counters, COUNTERS_FIELDS);
TYPE work_type = RECORD_TYPE("work", 1, struct work_sample, WORK_FIELDS);
TYPE beat_more_type = RECORD_TYPE("beat", 0, struct beat, BEAT_MORE_FIELDS);
TYPE unexplained_type = RECORD_TYPE("unexplained", 0, struct gpu_unexplained, UNEXPLAINED_FIELDS);
TYPE beat_last_type = RECORD_TYPE("beat", 0, struct beat, BEAT_LAST_FIELDS);
TYPE renewal_type = RECORD_TYPE("renewal", 0, struct renewal, RENEWAL_FIELDS);
TYPE refusal_type = RECORD_TYPE("refusal", 0, struct refusal, REFUSAL_FIELDS);

/* A kind of message: its name, and what its member of the union is. */
struct variant {
	const char *name;
	const struct record_type *type; /* NULL: the head is all of it */
	/* What an older agent does not say, in order of the protocols that it came with. */
	struct addition {
		const struct record_type *type; /* NULL: nothing */
		int64_t since;
	} additions[2];
};

static const struct variant variants[MESSAGE_KINDS] = {
	[MESSAGE_HELLO] = { "hello", &hello_type, { { 0 } } },
	[MESSAGE_SNAPSHOT] = { "snapshot", &node_report_type, { { &node_report_more_type, 3 } } },
	[MESSAGE_CHANGE] = { "change", &change_type, { { &change_more_type, 2 } } },
	[MESSAGE_BEAT] = { "beat", &beat_type, { { &beat_more_type, 2 }, { &beat_last_type, 8 } } },
	[MESSAGE_WELCOME] = { "welcome", &renewal_type, { { 0 } } },
	[MESSAGE_ORDER] = { "order", &node_order_type, { { 0 } } },
	[MESSAGE_RENEW] = { "renew", &renewal_type, { { 0 } } },
	[MESSAGE_REFUSE] = { "refuse", &refusal_type, { { 0 } } },
	[MESSAGE_ACK] = { "ack", NULL, { { 0 } } },
};
#define ADDITIONS ((int)(sizeof(variants[0].additions) / sizeof(variants[0].additions[0])))
#define MEMBER_OFFSET offsetof(struct message, hello)
#define FOREIGN_SINCE 4 /* the protocol that END_FOREIGN came with */

static bool is_kind(int32_t kind)
{
	return kind >= 0 && kind < MESSAGE_KINDS;
}

static const char *word_or_unknown(const struct words *words, int32_t value)
{
	const char *word = word_of(words, value);

	return word ? word : "unknown";
}

const char *message_kind_name(int32_t kind)
{
	return is_kind(kind) ? variants[kind].name : "unknown";
}

const char *change_kind_name(int32_t kind)
{
	return word_or_unknown(&change_words, kind);
}

const char *end_reason_name(int32_t reason)
{
	return word_or_unknown(&end_words, reason);
}

void message_encode(struct buffer *buffer, const struct message *message)
{
	INVARIANT(is_kind(message->kind));
	const struct record_type *type = variants[message->kind].type;
	int64_t protocol = message->protocol > 0 ? message->protocol : NODE_PROTOCOL;
	struct message older;
	if (protocol < FOREIGN_SINCE && message->kind == MESSAGE_CHANGE &&
	    message->change.reason == END_FOREIGN) {
		older = *message;
		older.change.reason = END_ITSELF;
		message = &older;
	}
	fields_encode(buffer, &head_type, message);
	if (type)
		fields_encode(buffer, type, (const char *)message + MEMBER_OFFSET);
	for (int i = 0; i < ADDITIONS; i++) {
		const struct addition *addition = &variants[message->kind].additions[i];
		if (addition->type && protocol >= addition->since)
			fields_encode(buffer, addition->type,
			              (const char *)message + MEMBER_OFFSET);
	}
}

static bool message_refuse(struct error *error, const char *what, int64_t value)
{
	return error_set(error, ERROR_CORRUPT, "a message with %s %lld is not understood", what,
	                 (long long)value);
}

static bool check_head(const struct message *message, struct error *error)
{
	if (!is_kind(message->kind))
		return message_refuse(error, "kind", message->kind);
	if (message->connection < 0 || message->connection > CONNECTION_MAX)
		return message_refuse(error, "connection", message->connection);
	if (message->term < 0)
		return message_refuse(error, "term", message->term);
	if (message->number < 0 || message->acknowledged < 0 || message->issued < 0)
		return message_refuse(error, "number", message->number);
	return true;
}

static bool check_time(int64_t time_ms, const char *what, struct error *error)
{
	if (time_ms < 0 || time_ms > TIME_MS_MAX)
		return message_refuse(error, what, time_ms);
	return true;
}

static bool check_part(const struct node_order *order, int64_t at, struct error *error)
{
	const struct order_part *part = &order->parts[at];

	if (part->memory_mib < 0 || part->memory_mib > MIB_MAX)
		return message_refuse(error, "a part of MiB", part->memory_mib);
	for (int64_t i = 0; i < at; i++)
		if (strcmp(order->parts[i].uuid, part->uuid) == 0)
			return message_refuse(error, "one GPU twice, at part", at);
	return true;
}

bool node_order_check(const struct node_order *order, struct error *error)
{
	if (order->kind < 0 || order->kind >= ORDER_KINDS)
		return message_refuse(error, "order kind", order->kind);
	if (order->reservation_id <= 0)
		return message_refuse(error, "reservation", order->reservation_id);
	if (order->part_count > PARTS_MAX)
		return message_refuse(error, "parts", order->part_count);
	if (order->lease_loss != LEASE_KEEP && order->lease_loss != LEASE_STOP)
		return message_refuse(error, "lease loss", order->lease_loss);
	for (int64_t i = 0; i < order->part_count; i++)
		if (!check_part(order, i, error))
			return false;
	return check_time(order->grace_ms, "grace", error) &&
	       check_time(order->max_runtime_ms, "maximum runtime", error) &&
	       check_time(order->load_timeout_ms, "load timeout", error);
}

struct node_order *node_order_copy(struct arena *arena, const struct node_order *order)
{
	struct node_order *copy = fields_copy(arena, &node_order_type, order);
	size_t size = (size_t)order->part_count * sizeof(*order->parts);
	struct order_part *parts = arena_copy(arena, order->parts, size);

	for (int64_t i = 0; i < order->part_count; i++)
		parts[i].uuid = arena_string(arena, parts[i].uuid);
	copy->parts = parts;
	return copy;
}

static bool check_use(const struct task_use *use, struct error *error)
{
	const int64_t numbers[] = { use->peak_mib,        use->gpu_ms,   use->energy_mj,
		                    use->host_peak_bytes, use->cpu_ms,   use->limit_mib,
		                    use->guard_peak_mib,  use->refusals, use->refused_mib };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (!check_time(numbers[i], "a measurement of", error))
			return false;
	return true;
}

static bool check_beat(const struct beat *beat, struct error *error)
{
	for (int64_t i = 0; i < beat->work_count; i++)
		if (!check_use(&beat->works[i].use, error))
			return false;
	return check_time(beat->sent_ms, "time", error);
}

static bool check_change(const struct change *change, struct error *error)
{
	if (change->kind < 0 || change->kind >= CHANGE_KINDS)
		return message_refuse(error, "change kind", change->kind);
	if (change->reason < 0 || change->reason >= END_REASONS)
		return message_refuse(error, "reason", change->reason);
	return check_time(change->ago_ms, "time", error) && check_use(&change->use, error);
}

static bool check_member(const struct message *message, struct error *error)
{
	switch (message->kind) {
	case MESSAGE_ORDER:
		return node_order_check(&message->order, error);
	case MESSAGE_HELLO:
		return check_time(message->hello.sent_ms, "time", error);
	case MESSAGE_CHANGE:
		return check_change(&message->change, error);
	case MESSAGE_BEAT:
		return check_beat(&message->beat, error);
	case MESSAGE_WELCOME:
	case MESSAGE_RENEW:
		return check_time(message->renewal.sent_ms, "time", error) &&
		       check_time(message->renewal.lease_ms, "lease", error);
	case MESSAGE_REFUSE:
		if (message->refusal.connection < 0 || message->refusal.connection > CONNECTION_MAX)
			return message_refuse(error, "connection", message->refusal.connection);
		return true;
	default:
		return true;
	}
}

static bool is_of_node(int32_t kind)
{
	return kind == MESSAGE_HELLO || kind == MESSAGE_SNAPSHOT || kind == MESSAGE_CHANGE ||
	       kind == MESSAGE_BEAT || kind == MESSAGE_REFUSE;
}

static bool check_texts(struct message *message, struct error *error)
{
	const struct variant *variant = &variants[message->kind];
	void *member = (char *)message + MEMBER_OFFSET;

	if (!texts_check(&head_type, message, error))
		return false;
	if (!is_of_node(message->kind))
		return true;
	for (int i = 0; i < ADDITIONS; i++)
		if (variant->additions[i].type &&
		    !texts_check(variant->additions[i].type, member, error))
			return false;
	return texts_check(variant->type, member, error);
}

struct message *message_decode(struct arena *arena, const uint8_t *data, size_t size,
                               struct error *error)
{
	const uint8_t *end = data + size;
	struct message *message = arena_alloc(arena, sizeof(*message));

	memset(message, 0, sizeof(*message));
	if (!fields_decode(arena, &head_type, message, &data, end, error) ||
	    !check_head(message, error))
		return NULL;
	const struct record_type *type = variants[message->kind].type;
	if (type && !fields_decode(arena, type, (char *)message + MEMBER_OFFSET, &data, end, error))
		return NULL;
	for (int i = 0; i < ADDITIONS && data != end; i++) {
		const struct record_type *added = variants[message->kind].additions[i].type;
		if (added && !fields_decode(arena, added, (char *)message + MEMBER_OFFSET, &data,
		                            end, error))
			return NULL;
	}
	if (data != end) {
		error_set(error, ERROR_CORRUPT, "a %s message has %lld bytes too many",
		          variants[message->kind].name, (long long)(end - data));
		return NULL;
	}
	return check_member(message, error) && check_texts(message, error) ? message : NULL;
}

static const char refused_protocol[] = "the agent speaks protocol ";

void message_refuse_protocol(struct error *error, int64_t protocol)
{
	error_set(error, ERROR_INVALID, "%s%lld and the scheduler %d to %d", refused_protocol,
	          (long long)protocol, NODE_PROTOCOL_LEAST, NODE_PROTOCOL);
}

int64_t message_refused_protocol(const char *reason)
{
	const char *last = reason ? strrchr(reason, ' ') : NULL;
	int64_t protocol = 0;

	if (!last || strncmp(reason, refused_protocol, sizeof(refused_protocol) - 1) != 0 ||
	    !number_read(text_of(last + 1), NODE_PROTOCOL_LEAST, NODE_PROTOCOL - 1, &protocol))
		return 0;
	return protocol;
}

void message_print(struct buffer *buffer, const struct message *message)
{
	INVARIANT(is_kind(message->kind));
	const struct variant *variant = &variants[message->kind];
	struct message head = *message;

	head.kind = 0;
	buffer_text(buffer, variant->name);
	fields_print(buffer, &head_type, &head);
	if (variant->type)
		fields_print(buffer, variant->type, (const char *)message + MEMBER_OFFSET);
	for (int i = 0; i < ADDITIONS; i++)
		if (variant->additions[i].type)
			fields_print(buffer, variant->additions[i].type,
			             (const char *)message + MEMBER_OFFSET);
}
