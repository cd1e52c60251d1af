/* command_test.c - every kind of command survives the journal, and bad bytes do no harm */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/record/command.h"

static const int64_t uneven[] = { 8000, 4000 }, depends[] = { 3, AFTER_SUCCESS, 4, AFTER_ANY };
static const int64_t slowdowns_c[] = { 0, 90 };
static const int64_t running[] = { 5, INT64_MAX }, mix[] = { 500, 1, 4000, 7, 1000, 8, 64000, 1 };
static const int64_t charges[] = { 1, 2, 300, 4, 5, 600 };
static const struct device devices[] = {
	{ .uuid = "GPU-a",
	  .model = "H100",
	  .mig_parent = "",
	  .capacity_mib = 81559,
	  .healthy = true },
	{ .uuid = "GPU-a", .model = "", .mig_parent = "GPU-b", .place = -1, .mig_mode = true },
};
static const int64_t splits[] = { 1, 0, 2, 40000 }, users[] = { 7 };
static const struct slot_report slots[] = { { 9, "qwen3:8b", "10.0.0.1:8000", true },
	                                    { 10, "", "", false } };
static const struct measurement measurements[] = { { 5, "GPU-a", 7000 }, { 6, "", INT64_MIN } };

static struct job_record sample_job(void)
{
	return (struct job_record){
		.tenant_id = 3,
		.name = "train",
		.payload = "{\"command\":[\"python\"]}",
		.gpu_kind = GPU_UNEVEN,
		.gpu_count = 2,
		.uneven = { uneven, 2 },
		.tasks = 4,
		.gpu_models = "A100|H100",
		.node_labels = "zone=a\ntier=gold",
		.depends = { depends, 2 },
		.idempotency_key = "k",
		.deadline_ms = INT64_MAX,
	};
}

static struct model_record sample_model(void)
{
	return (struct model_record){
		.tenant_id = 3,
		.name = "qwen3:30b",
		.runtime = RUNTIME_LLAMA_CPP,
		.command = "",
		.payload = "{}",
		.memory_mib = 76278,
		.splits = { splits, 2 },
		.kv_cache = "q8_0",
		.users = { users, 1 },
		.policy = SLOT_PACK,
		.gpu_models = "H100",
		.node_labels = "",
		.message = "",
	};
}

/* Fills the member of a command of this kind with something. */
static void command_fill(struct command *command)
{
	switch (command->kind) {
	case COMMAND_CONFIGURE:
		command->configure = config_default();
		break;
	case COMMAND_PUT_TENANT:
		command->tenant = (struct tenant_record){ .name = "lab", .limit_gpu = UNLIMITED };
		break;
	case COMMAND_SUBMIT:
		command->submit = (struct submit_command){
			.job = sample_job(), .array_from = -1, .array_to = 9, .hold = true
		};
		break;
	case COMMAND_REPRIORITISE:
		command->reprioritise.id = 8;
		command->reprioritise.priority = -700;
		break;
	case COMMAND_NODE_REPORT:
		command->report = (struct node_report_command){
			.name = "n1",
			.labels = "a=b",
			.host_bytes = INT64_MAX,
			.devices = devices,
			.device_count = 2,
			.measurements = measurements,
			.measurement_count = 2,
			.running = running,
			.running_count = 2,
			.snapshot = true,
			.slots = slots,
			.slot_count = 2,
			.slowdowns_c = { slowdowns_c, 2 },
		};
		break;
	case COMMAND_GPU_REPORT:
		command->gpu = (struct gpu_report_command){ .uuid = "GPU-a",
			                                    .temperature_c = 40,
			                                    .measurements = measurements,
			                                    .measurement_count = 1,
			                                    .node = "n1" };
		break;
	case COMMAND_NODE_STATE:
		command->node_state.name = "n1";
		command->node_state.state = NODE_LOST;
		break;
	case COMMAND_NODE_DRAIN:
		command->drain.name = "n1";
		command->drain.reason = "a new fan";
		command->drain.draining = true;
		break;
	case COMMAND_NODE_DEAD:
	case COMMAND_NODE_REMOVE:
		command->node = "n1";
		break;
	case COMMAND_TASK_STARTED:
	case COMMAND_TASK_REFUSED:
	case COMMAND_TASK_EXITED:
	case COMMAND_TASK_CHECKPOINT:
	case COMMAND_TASK_NOTICE:
	case COMMAND_TASK_SUSPENDED:
	case COMMAND_TASK_RESUMED:
	case COMMAND_MEMORY_RELEASED:
		command->task.reservation_id = 5;
		command->task.notice = NOTICE_IDLE;
		command->task.ago_ms = 6;
		command->task.use = (struct task_use){ .peak_mib = 7, .unguarded = true };
		command->task.foreign = true;
		command->task.finished = true;
		command->task.exit_code = -9;
		command->task.released = true;
		command->task.message = "killed";
		command->task.node = "n1";
		break;
	case COMMAND_PUT_MODEL:
		command->model =
		    (struct model_command){ .model = sample_model(), .administrator = true };
		break;
	case COMMAND_REQUEST:
	case COMMAND_REQUEST_RENEW:
		command->request = (struct request_command){ INT64_MAX, 2, 3, 60000, 4 };
		break;
	case COMMAND_REQUEST_DONE:
		command->done.request_id = 8;
		command->done.end = REQUEST_GONE;
		break;
	case COMMAND_SLOT_LOADING:
	case COMMAND_SLOT_READY:
	case COMMAND_SLOT_EXITED:
		command->slot.reservation_id = 5;
		command->slot.address = "10.0.0.1:8000";
		command->slot.message = "out of memory";
		command->slot.released = true;
		command->slot.node = "n1";
		break;
	case COMMAND_CLOCK:
		command->clock.to_ms = 77;
		command->clock.clamp = true;
		break;
	case COMMAND_NODE_FACTS:
		command->facts = (struct node_facts_command){ .name = "n1",
			                                      .resources = "pods=110",
			                                      .taken = "pods=3",
			                                      .taken_cpu_milli = 100,
			                                      .taken_host_bytes = 4096 };
		break;
	case COMMAND_PUT_NODE_CLASS:
		command->node_class.name = "c1";
		command->node_class.nodes = "7 n1";
		break;
	case COMMAND_PUT_GUEST:
		command->guest = (struct guest_command){ .name = "g1",
			                                 .node = "n1",
			                                 .marks = "app=a",
			                                 .rules = "apart node app=a",
			                                 .ending = true };
		break;
	case COMMAND_REMOVE_GUEST:
		command->guest_name = "g1";
		break;
	case COMMAND_CHARGE:
		command->charges = (struct rows){ charges, 2 };
		break;
	case COMMAND_PUT_WINDOW:
		command->window = (struct window_command){ .window = { .name = "w1",
			                                               .reason = "new driver",
			                                               .user = "ann",
			                                               .maintenance = true,
			                                               .start_ms = 5000,
			                                               .length_ms = 60000,
			                                               .repeat = WINDOW_WEEKLY,
			                                               .nodes = "n1\nn2",
			                                               .gpus = "",
			                                               .evict = true },
			                                   .gpu_count = 4,
			                                   .gpu_model = "H100" };
		break;
	case COMMAND_EVICT_MODEL:
		command->evict.model_id = 3;
		command->evict.node = "n1";
		command->evict.now = true;
		break;
	case COMMAND_MIX:
		command->mix = (struct rows){ mix, 2 };
		break;
	case COMMAND_START:
	case COMMAND_TIME:
	case COMMAND_RESET_REQUESTS:
		break;
	default:
		command->id = 77;
		break;
	}
}

static struct command sample(enum command_kind kind)
{
	struct command command = { .kind = kind, .now_ms = 1700000000000 };
	command_fill(&command);
	return command;
}

static struct command *record_command_decode(struct arena *arena, const struct buffer *buffer)
{
	const uint8_t *at = (const uint8_t *)buffer->data, *end = at + buffer->size;
	struct error error = { 0 };
	struct command *command = command_decode(arena, &at, end, &error);
	assert_string_equal(error.text, "");
	assert_non_null(command);
	assert_ptr_equal(at, end);
	return command;
}

/* What it becomes after encoding and decoding, which must encode to the same bytes. */
static struct command *round_trip(struct arena *arena, const struct command *command)
{
	struct buffer buffer = { 0 }, again = { 0 };
	command_encode(&buffer, command);
	struct command *decoded = record_command_decode(arena, &buffer);
	command_encode(&again, decoded);
	assert_int_equal(decoded->kind, command->kind);
	assert_int_equal(decoded->now_ms, command->now_ms);
	assert_int_equal(buffer.size, again.size);
	assert_memory_equal(buffer.data, again.data, buffer.size);
	buffer_free(&buffer);
	buffer_free(&again);
	return decoded;
}

static void every_kind_of_command_survives_the_journal(void **state)
{
	(void)state;
	struct arena arena = { 0 };
	for (enum command_kind kind = 0; kind < COMMAND_KINDS; kind++) {
		struct command filled = sample(kind), empty = { .kind = kind, .now_ms = INT64_MIN };
		round_trip(&arena, &filled);
		round_trip(&arena, &empty);
	}
	arena_free(&arena);
}

static void equal_commands_have_equal_encodings_whatever_their_padding(void **state)
{
	(void)state;
	for (enum command_kind kind = 0; kind < COMMAND_KINDS; kind++) {
		struct command one = sample(kind), other;
		memset(&other, 0xff, sizeof(other));
		other.kind = kind;
		other.now_ms = one.now_ms;
		command_fill(&other);
		struct buffer a = { 0 }, b = { 0 };
		command_encode(&a, &one);
		command_encode(&b, &other);
		assert_int_equal(a.size, b.size);
		assert_memory_equal(a.data, b.data, a.size);
		buffer_free(&a);
		buffer_free(&b);
	}
}

static void a_submission_keeps_all_of_its_job(void **state)
{
	(void)state;
	struct arena arena = { 0 };
	struct command command = sample(COMMAND_SUBMIT);
	const struct command *decoded = round_trip(&arena, &command);
	assert_true(record_equal(RECORD_JOB, &decoded->submit.job, &command.submit.job));
	assert_int_equal(decoded->submit.array_from, -1);
	assert_int_equal(decoded->submit.array_to, 9);
	assert_true(decoded->submit.hold);
	assert_false(decoded->submit.check_possible);
	arena_free(&arena);
}

static void a_node_report_keeps_its_lists(void **state)
{
	(void)state;
	struct arena arena = { 0 };
	struct command command = sample(COMMAND_NODE_REPORT);
	const struct node_report_command *report = &round_trip(&arena, &command)->report;
	assert_string_equal(report->name, "n1");
	assert_string_equal(report->boot, "");
	assert_int_equal(report->device_count, 2);
	assert_string_equal(report->devices[0].model, "H100");
	assert_true(report->devices[0].healthy);
	assert_string_equal(report->devices[1].mig_parent, "GPU-b");
	assert_int_equal(report->devices[1].place, -1);
	assert_int_equal(report->measurement_count, 2);
	assert_int_equal(report->measurements[0].memory_mib, 7000);
	assert_int_equal(report->measurements[1].memory_mib, INT64_MIN);
	assert_int_equal(report->running_count, 2);
	assert_int_equal(report->running[1], INT64_MAX);
	assert_true(report->snapshot);
	assert_int_equal(report->slowdowns_c.count, 2);
	assert_int_equal(report->slowdowns_c.at[1], 90);
	arena_free(&arena);
}

static void a_copy_is_the_same_and_has_texts_of_its_own(void **state)
{
	(void)state;
	for (int kind = 0; kind < COMMAND_KINDS; kind++) {
		struct arena arena = { 0 };
		struct buffer first = { 0 }, second = { 0 };
		struct command command = sample((enum command_kind)kind);
		command_encode(&first, &command);
		struct command *copy = command_copy(&arena, &command);
		memset(&command, 0, sizeof(command));
		command_encode(&second, copy);
		assert_int_equal(first.size, second.size);
		assert_memory_equal(first.data, second.data, first.size);
		buffer_free(&first);
		buffer_free(&second);
		arena_free(&arena);
	}
}

static void a_decoded_command_has_no_null_text(void **state)
{
	(void)state;
	struct arena arena = { 0 };
	struct command command = { .kind = COMMAND_NODE_STATE };
	assert_string_equal(round_trip(&arena, &command)->node_state.name, "");
	command = (struct command){ .kind = COMMAND_NODE_REMOVE };
	assert_string_equal(round_trip(&arena, &command)->node, "");
	command = (struct command){ .kind = COMMAND_TASK_EXITED };
	assert_string_equal(round_trip(&arena, &command)->task.message, "");
	command = (struct command){ .kind = COMMAND_SUBMIT };
	assert_string_equal(round_trip(&arena, &command)->submit.job.payload, "");
	arena_free(&arena);
}

/* Decodes a copy of exactly this size, so that a sanitizer sees a read beyond it. */
static bool command_is_refused(const void *data, size_t size, struct error *error)
{
	struct arena arena = { 0 };
	uint8_t *copy = malloc(size + 1);
	const uint8_t *start = copy + 1, *at = start;
	memcpy(copy + 1, data, size);
	error_clear(error);
	bool refused = !command_decode(&arena, &at, start + size, error);
	assert_int_equal(refused, error->code == ERROR_CORRUPT);
	if (refused)
		assert_ptr_equal(at, start);
	free(copy);
	arena_free(&arena);
	return refused;
}

static void every_truncation_is_refused(void **state)
{
	(void)state;
	struct buffer buffer = { 0 };
	struct error error;
	for (enum command_kind kind = 0; kind < COMMAND_KINDS; kind++) {
		struct command command = sample(kind);
		buffer_clear(&buffer);
		command_encode(&buffer, &command);
		for (size_t size = 0; size < buffer.size; size++)
			assert_true(command_is_refused(buffer.data, size, &error));
		assert_false(command_is_refused(buffer.data, buffer.size, &error));
	}
	buffer_free(&buffer);
}

static void command_assert_refused(const char *data, size_t size, const char *why)
{
	struct error error;
	assert_true(command_is_refused(data, size, &error));
	assert_string_equal(error.text, why);
}
#define ASSERT_REFUSED(literal, why) command_assert_refused(literal, sizeof(literal) - 1, why)

static void bytes_that_nobody_wrote_are_refused(void **state)
{
	(void)state;
	ASSERT_REFUSED("\x5e\x00", "command.kind is 47: there are only 47 kinds");
	ASSERT_REFUSED("\x01\x00", "command.kind is -1: there are only 47 kinds");
	ASSERT_REFUSED("\x1a\x00\x00\x04",
	               "node_drain.draining is unreadable 0 bytes before the end of the data: "
	               "the flag is neither 0 nor 1");
	/* A list of 2 devices, 11 fields each, in 21 bytes. */
	ASSERT_REFUSED("\x14\x00"
	               "\0\0\0\0\0\0\0"
	               "\x02"
	               "012345678901234567890",
	               "node_report.devices is unreadable 21 bytes before the end of the data: "
	               "the length goes beyond it");
	ASSERT_REFUSED("\x14\x00"
	               "\0\0\0\0\0\0\0"
	               "\x01"
	               "\0\0\0\0\0\0\0\0\0\x04\0",
	               "device.healthy is unreadable 1 bytes before the end of the data: the flag "
	               "is neither 0 nor 1");
}

static void assert_prints(const struct command *command, const char *expected)
{
	struct buffer buffer = { 0 };
	command_print(&buffer, command);
	assert_string_equal(buffer.data, expected);
	buffer_free(&buffer);
}

static void print_is_one_line_that_people_can_read(void **state)
{
	(void)state;
	struct command command = sample(COMMAND_SUBMIT);
	assert_prints(&command,
	              "submit now_ms=1700000000000 id=0 tenant_id=3 name=\"train\" "
	              "payload=\"{\\\"command\\\":[\\\"python\\\"]}\" gpu_kind=uneven gpu_count=2 "
	              "uneven=[8000; 4000] tasks=4 gpu_models=\"A100|H100\" "
	              "node_labels=\"zone=a\\ntier=gold\" closeness=any lease_loss=keep "
	              "deadline_ms=unlimited depends=[3,0; 4,1] idempotency_key=\"k\" "
	              "suspend=auto array_from=-1 array_to=9 hold=true");
	command = sample(COMMAND_NODE_STATE);
	assert_prints(&command, "node_state now_ms=1700000000000 name=\"n1\" state=lost");
	command = sample(COMMAND_NODE_REPORT);
	assert_prints(&command,
	              "node_report now_ms=1700000000000 name=\"n1\" labels=\"a=b\" "
	              "host_bytes=unlimited "
	              "devices=[uuid=\"GPU-a\" model=\"H100\" capacity_mib=81559 healthy=true; "
	              "uuid=\"GPU-a\" mig_parent=\"GPU-b\" place=-1 mig_mode=true] "
	              "measurements=[reservation_id=5 uuid=\"GPU-a\" memory_mib=7000; "
	              "reservation_id=6 memory_mib=-9223372036854775808] "
	              "running=[reservation_id=5; reservation_id=unlimited] snapshot=true "
	              "slots=[reservation_id=9 model=\"qwen3:8b\" "
	              "address=\"10.0.0.1:8000\" ready=true; reservation_id=10] "
	              "slowdowns_c=[0; 90]");
	command = (struct command){ .kind = COMMAND_TIME, .now_ms = 5 };
	assert_prints(&command, "time now_ms=5");
	command = (struct command){ .kind = COMMAND_PASS, .units = 100 };
	assert_prints(&command, "pass now_ms=0 units=100");
}

static void every_kind_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (enum command_kind a = 0; a < COMMAND_KINDS; a++) {
		assert_non_null(command_kind_name(a));
		for (enum command_kind b = 0; b < a; b++)
			assert_string_not_equal(command_kind_name(a), command_kind_name(b));
	}
	assert_string_equal(command_kind_name(COMMAND_PUT_TENANT), "put_tenant");
	assert_string_equal(command_kind_name(COMMAND_KINDS), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_command_survives_the_journal),
		cmocka_unit_test(equal_commands_have_equal_encodings_whatever_their_padding),
		cmocka_unit_test(a_submission_keeps_all_of_its_job),
		cmocka_unit_test(a_node_report_keeps_its_lists),
		cmocka_unit_test(a_copy_is_the_same_and_has_texts_of_its_own),
		cmocka_unit_test(a_decoded_command_has_no_null_text),
		cmocka_unit_test(every_truncation_is_refused),
		cmocka_unit_test(bytes_that_nobody_wrote_are_refused),
		cmocka_unit_test(print_is_one_line_that_people_can_read),
		cmocka_unit_test(every_kind_has_a_name_of_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
