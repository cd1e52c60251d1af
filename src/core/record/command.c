/* command.c - the journal's form of commands, and how people read them */
#include "core/record/command.h"

#include <string.h>

/* After its kind and time, a command has one member of a union. All of these
 * start at one place, so each is described from there; those that are not
 * structs are described as structs of one member. */
struct only_id {
	int64_t id;
};
struct only_node {
	const char *node;
};
struct only_mix {
	struct rows mix;
};
struct only_charges {
	struct rows charges;
};
struct only_units {
	int64_t units;
};
struct only_reservation {
	int64_t reservation_id;
};
#define MEMBER(name) __typeof__(((struct command *)0)->name)

/* clang-format off */
#define HEAD_FIELDS(F, T) F(T, kind) F(T, now_ms)
#define ID_FIELDS(F, T) F(T, id)
#define NODE_FIELDS(F, T) F(T, node)
#define MIX_FIELDS(F, T) F(T, mix, .width = MIX_WIDTH)
#define CHARGE_FIELDS(F, T) F(T, charges, .width = CHARGE_WIDTH)
#define UNITS_FIELDS(F, T) F(T, units)
#define RESERVATION_FIELDS(F, T) F(T, reservation_id)

#define DEVICE_FIELDS(F, T)                                                                        \
	F(T, uuid) F(T, model) F(T, mig_parent) F(T, place) F(T, capacity_mib) F(T, overhead_mib)  \
	F(T, foreign_mib) F(T, temperature_c) F(T, nvlink_group) F(T, healthy) F(T, mig_mode)
#define MEASUREMENT_FIELDS(F, T) F(T, reservation_id) F(T, uuid) F(T, memory_mib)

#define SLOT_REPORT_FIELDS(F, T) F(T, reservation_id) F(T, model) F(T, address) F(T, ready)

#define LIST(T, counter, type) .of = &(type), .count_offset = offsetof(T, counter)
#define REPORT_FIELDS(F, T)                                                                        \
	F(T, name) F(T, boot) F(T, zone) F(T, rack) F(T, labels) F(T, cpu_milli) F(T, host_bytes)  \
	F(T, devices, LIST(T, device_count, device_type))                                          \
	F(T, measurements, LIST(T, measurement_count, measurement_type))                           \
	F(T, running, LIST(T, running_count, reservation_type)) F(T, snapshot)                     \
	F(T, slots, LIST(T, slot_count, slot_report_type))                                         \
	F(T, coming, LIST(T, coming_count, reservation_type))
#define REPORT_MORE_FIELDS(F, T) F(T, slowdowns_c, .width = 1)
#define GPU_FIELDS(F, T)                                                                           \
	F(T, uuid) F(T, foreign_mib) F(T, temperature_c) F(T, healthy)                             \
	F(T, measurements, LIST(T, measurement_count, measurement_type)) F(T, node)           \
	F(T, unexplained_mib)

#define SUBMIT_FIELDS(F, T) F(T, array_from) F(T, array_to) F(T, array_indices, .width = 1) F(T, hold) F(T, check_possible) F(T, takes_turns)
#define REPRIORITISE_FIELDS(F, T) F(T, id) F(T, priority)
#define STATE_FIELDS(F, T) F(T, name) F(T, state, .words = &node_state_words)
#define DRAIN_FIELDS(F, T) F(T, name) F(T, draining) F(T, reason)
#define TASK_FIELDS(F, T) F(T, reservation_id) F(T, exit_code) F(T, released) F(T, message) F(T, node)
#define USE_FIELDS(F, T)                                                                           \
	F(T, ago_ms) F(T, use.peak_mib) F(T, use.gpu_ms) F(T, use.energy_mj)                       \
	F(T, use.host_peak_bytes) F(T, use.cpu_ms) F(T, use.limit_mib) F(T, use.guard_peak_mib)    \
	F(T, use.refusals) F(T, use.refused_mib) F(T, use.unguarded) F(T, foreign) F(T, finished)
#define MOVED_FIELDS(F, T) F(T, ago_ms) F(T, use.peak_mib) F(T, use.host_peak_bytes)
#define NOTICE_FIELDS(F, T)                                                                        \
	F(T, reservation_id) F(T, notice, .words = &task_notice_words) F(T, message) F(T, node)
#define MODEL_FIELDS(F, T) F(T, administrator)
#define REQUEST_FIELDS(F, T) F(T, request_id) F(T, model_id) F(T, tenant_id) F(T, lease_ms) F(T, slot_id)
#define DONE_FIELDS(F, T) F(T, request_id) F(T, end, .words = &request_end_words)
#define CLOCK_FIELDS(F, T) F(T, to_ms) F(T, clamp)
#define FACTS_FIELDS(F, T)                                                                         \
	F(T, name) F(T, resources) F(T, taken) F(T, taken_cpu_milli) F(T, taken_host_bytes)
#define NODE_CLASS_FIELDS(F, T) F(T, name) F(T, nodes)
#define GUEST_FIELDS(F, T) F(T, name) F(T, node) F(T, marks) F(T, rules) F(T, ending)
#define WINDOW_FIELDS(F, T) F(T, gpu_count) F(T, gpu_model)
#define EVICT_FIELDS(F, T) F(T, model_id) F(T, node) F(T, now)
#define SLOT_FIELDS(F, T) F(T, reservation_id) F(T, address) F(T, message) F(T, released) F(T, node)
/* clang-format on */

#define TYPE static const struct record_type
TYPE head_type = RECORD_TYPE("command", 0, struct command, HEAD_FIELDS);
TYPE id_type = RECORD_TYPE("command", 0, struct only_id, ID_FIELDS);
TYPE node_type = RECORD_TYPE("command", 0, struct only_node, NODE_FIELDS);
TYPE mix_type = RECORD_TYPE("mix", 0, struct only_mix, MIX_FIELDS);
TYPE charge_type = RECORD_TYPE("charges", 0, struct only_charges, CHARGE_FIELDS);
TYPE units_type = RECORD_TYPE("pass", 0, struct only_units, UNITS_FIELDS);
TYPE reservation_type = RECORD_TYPE("running", 1, struct only_reservation, RESERVATION_FIELDS);
TYPE device_type = RECORD_TYPE("device", 0, struct device, DEVICE_FIELDS);
const struct record_type measurement_type =
    RECORD_TYPE("measurement", 0, struct measurement, MEASUREMENT_FIELDS);
TYPE slot_report_type = RECORD_TYPE("slot", 1, struct slot_report, SLOT_REPORT_FIELDS);
const struct record_type node_report_type =
    RECORD_TYPE("node_report", 0, struct node_report_command, REPORT_FIELDS);
const struct record_type node_report_more_type =
    RECORD_TYPE("node_report", 0, struct node_report_command, REPORT_MORE_FIELDS);
TYPE gpu_type = RECORD_TYPE("gpu_report", 0, struct gpu_report_command, GPU_FIELDS);
TYPE submit_type = RECORD_TYPE("submit", 0, struct submit_command, SUBMIT_FIELDS);
TYPE reprioritise_type = RECORD_TYPE("reprioritise", 0, MEMBER(reprioritise), REPRIORITISE_FIELDS);
TYPE state_type = RECORD_TYPE("node_state", 0, MEMBER(node_state), STATE_FIELDS);
TYPE drain_type = RECORD_TYPE("node_drain", 0, MEMBER(drain), DRAIN_FIELDS);
TYPE task_type = RECORD_TYPE("task", 0, MEMBER(task), TASK_FIELDS);
TYPE use_type = RECORD_TYPE("task", 0, MEMBER(task), USE_FIELDS);
TYPE moved_type = RECORD_TYPE("task", 0, MEMBER(task), MOVED_FIELDS);
TYPE notice_type = RECORD_TYPE("task", 0, MEMBER(task), NOTICE_FIELDS);
TYPE model_type = RECORD_TYPE("put_model", 0, struct model_command, MODEL_FIELDS);
TYPE request_type = RECORD_TYPE("request", 0, struct request_command, REQUEST_FIELDS);
TYPE done_type = RECORD_TYPE("request_done", 0, MEMBER(done), DONE_FIELDS);
TYPE clock_type = RECORD_TYPE("clock", 0, MEMBER(clock), CLOCK_FIELDS);
TYPE facts_type = RECORD_TYPE("node_facts", 0, struct node_facts_command, FACTS_FIELDS);
TYPE node_class_type = RECORD_TYPE("node_class", 0, MEMBER(node_class), NODE_CLASS_FIELDS);
TYPE guest_type = RECORD_TYPE("guest", 0, struct guest_command, GUEST_FIELDS);
TYPE window_type = RECORD_TYPE("put_window", 0, struct window_command, WINDOW_FIELDS);
TYPE evict_type = RECORD_TYPE("evict_model", 0, MEMBER(evict), EVICT_FIELDS);
TYPE slot_type = RECORD_TYPE("slot", 0, MEMBER(slot), SLOT_FIELDS);

/* A kind of command: its name, and up to two descriptions of its member. */
struct variant {
	const char *name;
	const struct record_type *parts[2];
};

static const struct variant variants[COMMAND_KINDS] = {
	[COMMAND_START] = { "start", { NULL } },
	[COMMAND_CONFIGURE] = { "configure", { &record_types[RECORD_CONFIG] } },
	[COMMAND_PUT_TENANT] = { "put_tenant", { &record_types[RECORD_TENANT] } },
	[COMMAND_DELETE_TENANT] = { "delete_tenant", { &id_type } },
	[COMMAND_SUBMIT] = { "submit", { &record_types[RECORD_JOB], &submit_type } },
	[COMMAND_CANCEL] = { "cancel", { &id_type } },
	[COMMAND_HOLD] = { "hold", { &id_type } },
	[COMMAND_UNHOLD] = { "release", { &id_type } },
	[COMMAND_REQUEUE] = { "requeue", { &id_type } },
	[COMMAND_REPRIORITISE] = { "reprioritise", { &reprioritise_type } },
	[COMMAND_NODE_REPORT] = { "node_report", { &node_report_type, &node_report_more_type } },
	[COMMAND_GPU_REPORT] = { "gpu_report", { &gpu_type } },
	[COMMAND_NODE_STATE] = { "node_state", { &state_type } },
	[COMMAND_NODE_DRAIN] = { "node_drain", { &drain_type } },
	[COMMAND_NODE_DEAD] = { "node_dead", { &node_type } },
	[COMMAND_NODE_REMOVE] = { "node_remove", { &node_type } },
	[COMMAND_TASK_STARTED] = { "task_started", { &task_type } },
	[COMMAND_TASK_REFUSED] = { "task_refused", { &task_type } },
	[COMMAND_TASK_EXITED] = { "task_exited", { &task_type, &use_type } },
	[COMMAND_TASK_CHECKPOINT] = { "task_checkpoint", { &task_type } },
	[COMMAND_MEMORY_RELEASED] = { "memory_released", { &task_type } },
	[COMMAND_PUT_MODEL] = { "put_model", { &record_types[RECORD_MODEL], &model_type } },
	[COMMAND_REMOVE_MODEL] = { "remove_model", { &id_type } },
	[COMMAND_REQUEST] = { "request", { &request_type } },
	[COMMAND_REQUEST_DONE] = { "request_done", { &done_type } },
	[COMMAND_REQUEST_RENEW] = { "request_renew", { &request_type } },
	[COMMAND_RESET_REQUESTS] = { "reset_requests", { NULL } },
	[COMMAND_SLOT_LOADING] = { "slot_loading", { &slot_type } },
	[COMMAND_SLOT_READY] = { "slot_ready", { &slot_type } },
	[COMMAND_SLOT_EXITED] = { "slot_exited", { &slot_type } },
	[COMMAND_MIX] = { "mix", { &mix_type } },
	[COMMAND_TIME] = { "time", { NULL } },
	[COMMAND_PASS] = { "pass", { &units_type } },
	[COMMAND_TASK_NOTICE] = { "task_notice", { &notice_type } },
	[COMMAND_CLOCK] = { "clock", { &clock_type } },
	[COMMAND_NODE_FACTS] = { "node_facts", { &facts_type } },
	[COMMAND_PUT_NODE_CLASS] = { "put_node_class", { &node_class_type } },
	[COMMAND_PUT_GUEST] = { "put_guest", { &guest_type } },
	[COMMAND_REMOVE_GUEST] = { "remove_guest", { &node_type } },
	[COMMAND_CHARGE] = { "charge", { &charge_type } },
	[COMMAND_SUSPEND] = { "suspend", { &id_type } },
	[COMMAND_RESUME] = { "resume", { &id_type } },
	[COMMAND_TASK_SUSPENDED] = { "task_suspended", { &task_type, &moved_type } },
	[COMMAND_TASK_RESUMED] = { "task_resumed", { &task_type, &moved_type } },
	[COMMAND_PUT_WINDOW] = { "put_window", { &record_types[RECORD_WINDOW], &window_type } },
	[COMMAND_REMOVE_WINDOW] = { "remove_window", { &id_type } },
	[COMMAND_EVICT_MODEL] = { "evict_model", { &evict_type } },
};

#define MEMBER_OFFSET offsetof(struct command, id)
_Static_assert(offsetof(struct submit_command, job) == 0, "a submission starts with its job");
_Static_assert(offsetof(struct model_command, model) == 0, "a model starts with its record");
_Static_assert(offsetof(struct window_command, window) == 0, "a window starts with its record");
_Static_assert(offsetof(struct command, submit) == MEMBER_OFFSET, "members start at one place");

static bool is_kind(enum command_kind kind)
{
	return (unsigned)kind < COMMAND_KINDS;
}

static const struct variant *variant_of(const struct command *command)
{
	INVARIANT(is_kind(command->kind));
	return &variants[command->kind];
}

const char *command_kind_name(enum command_kind kind)
{
	return is_kind(kind) ? variants[kind].name : "unknown";
}

void command_encode(struct buffer *buffer, const struct command *command)
{
	const struct variant *variant = variant_of(command);
	const char *member = (const char *)command + MEMBER_OFFSET;
	fields_encode(buffer, &head_type, command);
	for (int i = 0; i < 2 && variant->parts[i]; i++)
		fields_encode(buffer, variant->parts[i], member);
}

/* Decodes what follows the head. */
static bool decode_member(struct arena *arena, struct command *command, const uint8_t **at,
                          const uint8_t *end, struct error *error)
{
	const struct variant *variant = variant_of(command);
	char *member = (char *)command + MEMBER_OFFSET;
	for (int i = 0; i < 2 && variant->parts[i]; i++) {
		if (!fields_decode(arena, variant->parts[i], member, at, end, error))
			return false;
	}
	return true;
}

struct command *command_decode(struct arena *arena, const uint8_t **data, const uint8_t *end,
                               struct error *error)
{
	const uint8_t *at = *data;
	struct command *command = arena_alloc(arena, sizeof(*command));
	memset(command, 0, sizeof(*command));
	if (!fields_decode(arena, &head_type, command, &at, end, error))
		return NULL;
	if (!is_kind(command->kind)) {
		error_set(error, ERROR_CORRUPT, "command.kind is %d: there are only %d kinds",
		          (int)command->kind, COMMAND_KINDS);
		return NULL;
	}
	if (!decode_member(arena, command, &at, end, error))
		return NULL;
	*data = at;
	return command;
}

/* Reports about tasks are frequent, and two texts are all they point to. */
static bool is_of_task(enum command_kind kind)
{
	return kind == COMMAND_TASK_STARTED || kind == COMMAND_TASK_REFUSED ||
	       kind == COMMAND_TASK_EXITED || kind == COMMAND_TASK_CHECKPOINT ||
	       kind == COMMAND_TASK_NOTICE || kind == COMMAND_MEMORY_RELEASED ||
	       kind == COMMAND_TASK_SUSPENDED || kind == COMMAND_TASK_RESUMED;
}

struct command *command_copy(struct arena *arena, const struct command *command)
{
	struct buffer buffer = { 0 };
	struct error error = { 0 };

	if (is_of_task(command->kind)) {
		struct command *copy = arena_copy(arena, command, sizeof(*command));
		const char *message = command->task.message, *node = command->task.node;
		copy->task.message = message && *message ? arena_string(arena, message) : "";
		copy->task.node = node && *node ? arena_string(arena, node) : "";
		return copy;
	}
	command_encode(&buffer, command);
	const uint8_t *at = (const uint8_t *)buffer.data;
	struct command *copy = command_decode(arena, &at, at + buffer.size, &error);
	INVARIANT(copy);
	buffer_free(&buffer);
	return copy;
}

void command_print(struct buffer *buffer, const struct command *command)
{
	const struct variant *variant = variant_of(command);
	const char *member = (const char *)command + MEMBER_OFFSET;
	buffer_print(buffer, "%s now_ms=%lld", variant->name, (long long)command->now_ms);
	for (int i = 0; i < 2 && variant->parts[i]; i++)
		fields_print(buffer, variant->parts[i], member);
}
