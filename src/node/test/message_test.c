/* message_test.c - messages: what is written is read, and nothing else is */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "node/message.h"

static const struct order_part parts[] = { { "gpu-a", 1000, 500, false },
	                                   { "gpu-b", 2000, 1000, true } };
static const struct gpu_sample samples[] = { { "gpu-a", 1, 2, 3, 4, 5, true, 0 } };
static const struct gpu_unexplained unexplained[] = { { "gpu-a", 700 } };
static const struct measurement measurements[] = { { 7, "gpu-a", 8 } };
static const struct use_sample uses[] = { { 7, "gpu-a", 8, 9 } };
static const struct slot_sample slots[] = { { 7, 3 } };
static const struct gpu_counters counters[] = { { "gpu-a", 900, 400, "hot" } };
static const struct work_sample works[] = { { 7, { .peak_mib = 8, .refusals = 2 } } };
static const int64_t numbers[] = { 11, 12 };

static struct message order_message(void)
{
	struct message message = { .kind = MESSAGE_ORDER,
		                   .boot = "boot",
		                   .connection = 2,
		                   .term = 3,
		                   .number = 4,
		                   .acknowledged = 5,
		                   .issued = 6 };

	message.order = (struct node_order){ .kind = ORDER_LOAD,
		                             .reservation_id = 7,
		                             .parts = parts,
		                             .part_count = 2,
		                             .grace_ms = 8,
		                             .payload = "text\nof two lines",
		                             .model = "llama",
		                             .utilisation = { numbers, 2 },
		                             .kv_cache = "f16",
		                             .command = "",
		                             .load_timeout_ms = 9 };
	return message;
}

static struct message example(int32_t kind)
{
	struct message message = order_message();

	message.kind = kind;
	switch (kind) {
	case MESSAGE_ORDER:
		break;
	case MESSAGE_HELLO:
		message.hello = (struct hello){ "node", NODE_PROTOCOL, 5 };
		break;
	case MESSAGE_SNAPSHOT:
		message.snapshot = (struct node_report_command){ .name = "node",
			                                         .measurements = measurements,
			                                         .measurement_count = 1,
			                                         .running = numbers,
			                                         .running_count = 2,
			                                         .snapshot = true,
			                                         .slowdowns_c = { numbers, 2 } };
		break;
	case MESSAGE_CHANGE:
		message.change = (struct change){ .kind = CHANGE_REFUSED,
			                          .reservation_id = 7,
			                          .message = "no room",
			                          .pids = { numbers, 2 },
			                          .samples = samples,
			                          .sample_count = 1,
			                          .measurements = measurements,
			                          .measurement_count = 1,
			                          .ago_ms = 9,
			                          .use = { .peak_mib = 1, .unguarded = true } };
		break;
	case MESSAGE_BEAT:
		message.beat = (struct beat){ .sent_ms = 5,
			                      .samples = samples,
			                      .sample_count = 1,
			                      .uses = uses,
			                      .use_count = 1,
			                      .slots = slots,
			                      .slot_count = 1,
			                      .counters = counters,
			                      .counter_count = 1,
			                      .works = works,
			                      .work_count = 1,
			                      .unexplained = unexplained,
			                      .unexplained_count = 1 };
		break;
	case MESSAGE_REFUSE:
		message.refusal = (struct refusal){ 5, "because" };
		break;
	default:
		message.renewal = (struct renewal){ 5, 6 };
		break;
	}
	return message;
}

static struct message *test_message_decode(struct arena *arena, const struct buffer *buffer,
                                           struct error *error)
{
	return message_decode(arena, (const uint8_t *)buffer->data, buffer->size, error);
}

static void every_kind_is_read_as_it_was_written(void **state)
{
	(void)state;
	for (int32_t kind = 0; kind < MESSAGE_KINDS; kind++) {
		struct message message = example(kind);
		struct buffer first = { 0 }, second = { 0 };
		struct arena arena = { 0 };
		struct error error = { 0 };
		message_encode(&first, &message);
		struct message *read = test_message_decode(&arena, &first, &error);
		if (!read)
			fail_msg("%s is not read: %s", message_kind_name(kind), error.text);
		message_encode(&second, read);
		assert_int_equal(first.size, second.size);
		assert_memory_equal(first.data, second.data, first.size);
		buffer_free(&first);
		buffer_free(&second);
		arena_free(&arena);
	}
}

/* Only where an older agent would have ended it, there is a message that says less: a beat of
 * protocol 1 and of 2. */
static void a_message_that_is_cut_anywhere_is_refused(void **state)
{
	(void)state;
	for (int32_t kind = 0; kind < MESSAGE_KINDS; kind++) {
		struct message message = example(kind);
		struct buffer buffer = { 0 };
		int read = 0;
		message_encode(&buffer, &message);
		size_t size = buffer.size;
		for (buffer.size = 0; buffer.size < size; buffer.size++) {
			struct arena arena = { 0 };
			struct error error = { 0 };
			read += test_message_decode(&arena, &buffer, &error) != NULL;
			arena_free(&arena);
		}
		bool once = kind == MESSAGE_CHANGE || kind == MESSAGE_SNAPSHOT;
		assert_int_equal(read, kind == MESSAGE_BEAT ? 2 : once);
		buffer_free(&buffer);
	}
}

static void what_an_older_agent_does_not_say_is_not_known(void **state)
{
	struct message message = example(MESSAGE_CHANGE);
	struct buffer buffer = { 0 };
	struct arena arena = { 0 };
	struct error error = { 0 };
	struct message *read = NULL;

	(void)state;
	message_encode(&buffer, &message);
	while (!read && --buffer.size > 0)
		read = test_message_decode(&arena, &buffer, &error);
	assert_non_null(read);
	assert_string_equal(read->change.message, "no room");
	assert_int_equal(read->change.ago_ms, 0);
	assert_int_equal(read->change.use.peak_mib, 0);
	buffer_free(&buffer);
	arena_free(&arena);
}

/* An agent that speaks an older protocol sends the bytes that agents of it sent. */
static void what_is_written_in_an_older_protocol_leaves_out_what_came_later(void **state)
{
	static const int32_t kinds[] = { MESSAGE_SNAPSHOT, MESSAGE_CHANGE, MESSAGE_BEAT,
		                         MESSAGE_BEAT };
	static const int64_t since[] = { 3, 2, 2, 8 }, until[] = { 7, 7, 7, 8 };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct message message = example(kinds[i]);
		struct buffer now = { 0 }, same = { 0 }, older = { 0 };
		message.protocol = until[i];
		message_encode(&now, &message);
		message.protocol = since[i];
		message_encode(&same, &message);
		message.protocol = since[i] - 1;
		message_encode(&older, &message);
		assert_int_equal(same.size, now.size);
		assert_true(older.size < now.size);
		assert_memory_equal(older.data, now.data, older.size);
		buffer_free(&now);
		buffer_free(&same);
		buffer_free(&older);
	}
}

static void a_refusal_of_a_protocol_tells_the_one_to_speak(void **state)
{
	struct error error = { 0 };

	(void)state;
	assert_int_equal(
	    message_refused_protocol("the agent speaks protocol 3 and the scheduler 1 to 2"), 2);
	/* Nothing helps against a scheduler that is newer. */
	message_refuse_protocol(&error, NODE_PROTOCOL + 1);
	assert_int_equal(message_refused_protocol(error.text), 0);
	assert_int_equal(message_refused_protocol("the agent speaks protocol 3 and so on"), 0);
	assert_int_equal(message_refused_protocol("the node's name is node 2"), 0);
	assert_int_equal(message_refused_protocol(""), 0);
	assert_int_equal(message_refused_protocol(NULL), 0);
}

static bool is_read(struct message message)
{
	struct buffer buffer = { 0 };
	struct arena arena = { 0 };
	struct error error = { 0 };

	message_encode(&buffer, &message);
	bool read = test_message_decode(&arena, &buffer, &error) != NULL;
	assert_int_equal(read, error.code == ERROR_NONE);
	buffer_free(&buffer);
	arena_free(&arena);
	return read;
}

static void bytes_after_a_message_are_refused(void **state)
{
	struct message message = example(MESSAGE_ACK);
	struct buffer buffer = { 0 };
	struct arena arena = { 0 };
	struct error error = { 0 };

	(void)state;
	message_encode(&buffer, &message);
	buffer_bytes(&buffer, "", 1);
	assert_null(test_message_decode(&arena, &buffer, &error));
	buffer_free(&buffer);
	arena_free(&arena);
}

static void numbers_out_of_range_are_refused(void **state)
{
	struct message message = order_message();

	(void)state;
	assert_true(is_read(message));
	message.number = -1;
	assert_false(is_read(message));
	message = order_message();
	message.order.reservation_id = 0;
	assert_false(is_read(message));
	message = order_message();
	message.order.kind = ORDER_KINDS;
	assert_false(is_read(message));
	message = order_message();
	message.order.lease_loss = 2;
	assert_false(is_read(message));
	message = order_message();
	message.order.grace_ms = -1;
	assert_false(is_read(message));
	message = example(MESSAGE_CHANGE);
	message.change.kind = CHANGE_KINDS;
	assert_false(is_read(message));
	message = example(MESSAGE_REFUSE);
	message.refusal.connection = CONNECTION_MAX;
	assert_true(is_read(message));
	message.refusal.connection = CONNECTION_MAX + 1;
	assert_false(is_read(message));
	message = example(MESSAGE_RENEW);
	message.renewal.lease_ms = INT64_MAX;
	assert_false(is_read(message));
}

static void an_order_that_names_one_gpu_twice_or_too_many_is_refused(void **state)
{
	struct message message = order_message();
	struct order_part same[PARTS_MAX + 1];
	char uuid[PARTS_MAX + 1][8];

	(void)state;
	for (int i = 0; i <= PARTS_MAX; i++) {
		uuid[i][0] = (char)('a' + i);
		uuid[i][1] = '\0';
		same[i] = (struct order_part){ .uuid = uuid[i], .memory_mib = 1 };
	}
	message.order.parts = same;
	message.order.part_count = PARTS_MAX;
	assert_true(is_read(message));
	message.order.part_count = PARTS_MAX + 1;
	assert_false(is_read(message));
	message.order.part_count = 2;
	same[1].uuid = same[0].uuid;
	assert_false(is_read(message));
}

static void a_message_is_printed_on_one_line(void **state)
{
	struct message message = order_message();
	struct buffer text = { 0 };

	(void)state;
	message_print(&text, &message);
	assert_null(strchr(text.data, '\n'));
	assert_non_null(strstr(text.data, "order boot=\"boot\" connection=2"));
	assert_non_null(strstr(text.data, "kind=load"));
	buffer_free(&text);
}

static bool is_said(const struct message *message, char *reason, size_t size)
{
	struct arena arena = { 0 };
	struct buffer buffer = { 0 };
	struct error error = { 0 };

	message_encode(&buffer, message);
	const struct message *read =
	    message_decode(&arena, (const uint8_t *)buffer.data, buffer.size, &error);
	snprintf(reason, size, "%s",
	         read && read->kind == MESSAGE_CHANGE ? read->change.message : error.text);
	buffer_free(&buffer);
	arena_free(&arena);
	return read != NULL;
}

static struct message snapshot_of(const struct device *device)
{
	struct message message = { .kind = MESSAGE_SNAPSHOT, .boot = "boot" };

	message.snapshot = (struct node_report_command){
		.name = "node", .boot = "boot", .devices = device, .device_count = 1
	};
	return message;
}

static void names_that_are_too_long_or_not_printable_are_refused(void **state)
{
	static char long_uuid[100001];
	static const char *const bad[] = { long_uuid, "GPU-1\nGPU-2", "GPU 1", "GPU-\xc3\xa9",
		                           "GPU-\x7f" };
	char reason[ERROR_TEXT_MAX];

	(void)state;
	memset(long_uuid, 'a', sizeof(long_uuid) - 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct device device = { .uuid = bad[i], .model = "A100" };
		struct message message = snapshot_of(&device);
		assert_false(is_said(&message, reason, sizeof(reason)));
		assert_non_null(strstr(reason, "the uuid of a device has"));
	}
	struct device device = { .uuid = "MIG-GPU-1/2/3", .model = "NVIDIA A100-SXM4-80GB" };
	struct message message = snapshot_of(&device);
	assert_true(is_said(&message, reason, sizeof(reason)));
	device.model = "A100\n";
	assert_false(is_said(&message, reason, sizeof(reason)));
	device.model = "A100";
	message.snapshot.labels = "a=1\nb=2";
	assert_true(is_said(&message, reason, sizeof(reason)));
	message.snapshot.labels = "a=1\tb=2";
	assert_false(is_said(&message, reason, sizeof(reason)));
	assert_non_null(strstr(reason, "the labels of a node_report has the byte 0x09"));
	message.snapshot.labels = "";
	message.boot = "two words";
	assert_false(is_said(&message, reason, sizeof(reason)));
}

static void addresses_of_slots_are_refused_where_they_are_no_words(void **state)
{
	struct message message = { .kind = MESSAGE_CHANGE, .boot = "boot" };
	char reason[ERROR_TEXT_MAX];

	(void)state;
	message.change = (struct change){ .kind = CHANGE_READY,
		                          .reservation_id = 1,
		                          .slot = true,
		                          .address = "http://10.0.0.1:8000" };
	assert_true(is_said(&message, reason, sizeof(reason)));
	message.change.address = "http://10.0.0.1:8000\r\nHost: other";
	assert_false(is_said(&message, reason, sizeof(reason)));
}

static void what_is_for_people_is_made_printable_and_cut(void **state)
{
	static char long_text[10001];
	struct message message = { .kind = MESSAGE_CHANGE, .boot = "boot" };
	char said[16384];

	(void)state;
	message.change = (struct change){ .kind = CHANGE_EXITED,
		                          .reservation_id = 1,
		                          .message = "one\ntwo\x1b[31m\xc3\xa9" };
	assert_true(is_said(&message, said, sizeof(said)));
	assert_string_equal(said, "one two [31m\xc3\xa9");
	for (size_t i = 0; i + 1 < sizeof(long_text); i += 2)
		memcpy(long_text + i, "\xc3\xa9", 2);
	long_text[0] = 'x';
	memmove(long_text + 1, long_text + 2, sizeof(long_text) - 2);
	message.change.message = long_text;
	assert_true(is_said(&message, said, sizeof(said)));
	assert_int_equal(strlen(said), 4095); /* no half of a character */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_read_as_it_was_written),
		cmocka_unit_test(a_message_that_is_cut_anywhere_is_refused),
		cmocka_unit_test(what_an_older_agent_does_not_say_is_not_known),
		cmocka_unit_test(what_is_written_in_an_older_protocol_leaves_out_what_came_later),
		cmocka_unit_test(a_refusal_of_a_protocol_tells_the_one_to_speak),
		cmocka_unit_test(bytes_after_a_message_are_refused),
		cmocka_unit_test(numbers_out_of_range_are_refused),
		cmocka_unit_test(an_order_that_names_one_gpu_twice_or_too_many_is_refused),
		cmocka_unit_test(a_message_is_printed_on_one_line),
		cmocka_unit_test(names_that_are_too_long_or_not_printable_are_refused),
		cmocka_unit_test(addresses_of_slots_are_refused_where_they_are_no_words),
		cmocka_unit_test(what_is_for_people_is_made_printable_and_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
