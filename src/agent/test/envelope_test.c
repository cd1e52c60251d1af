/* envelope_test.c - envelopes are read as they were written, and nothing else is */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/uplink/envelope.h"

/* Of what is read; freed in the end. */
static struct arena arena;

static struct envelope round_trip(struct buffer *bytes, const struct envelope *envelope)
{
	struct envelope read;

	buffer_clear(bytes);
	envelope_encode(bytes, envelope);
	assert_true(envelope_decode((struct text){ bytes->data, bytes->size }, &arena, &read));
	assert_int_equal(read.kind, envelope->kind);
	return read;
}

static void messages_are_read_as_they_were_written(void **state)
{
	struct buffer bytes = { 0 };
	struct envelope envelope = { .kind = ENVELOPE_MESSAGE, .message = TEXT("\x00\x01 abc") };

	(void)state;
	struct envelope read = round_trip(&bytes, &envelope);
	assert_true(text_equal(read.message, envelope.message));
	buffer_free(&bytes);
}

static void requests_for_output_are_read_as_they_were_written(void **state)
{
	struct buffer bytes = { 0 };
	struct envelope envelope = { .kind = ENVELOPE_OUTPUT_REQUEST,
		                     .request = { 1, 2, 3, 4, true, true, -500, INT64_MAX } };

	(void)state;
	struct envelope read = round_trip(&bytes, &envelope);
	assert_int_equal(read.request.request_id, 1);
	assert_int_equal(read.request.reservation_id, 2);
	assert_int_equal(read.request.job_id, 3);
	assert_int_equal(read.request.task, 4);
	assert_true(read.request.follow && read.request.errors);
	assert_int_equal(read.request.offset, -500);
	assert_int_equal(read.request.window, INT64_MAX);
	buffer_free(&bytes);
}

static void pieces_of_output_are_read_as_they_were_written(void **state)
{
	struct buffer bytes = { 0 };
	struct envelope envelope = { .kind = ENVELOPE_OUTPUT_CHUNK,
		                     .chunk = { 7, 8, TEXT("data"), true, TEXT("why") } };

	(void)state;
	struct envelope read = round_trip(&bytes, &envelope);
	assert_int_equal(read.chunk.request_id, 7);
	assert_int_equal(read.chunk.offset, 8);
	assert_true(text_is(read.chunk.data, "data"));
	assert_true(read.chunk.end);
	assert_true(text_is(read.chunk.error, "why"));
	buffer_free(&bytes);
}

static void parts_of_input_are_read_as_they_were_written(void **state)
{
	struct buffer bytes = { 0 };
	struct envelope envelope = { .kind = ENVELOPE_INPUT_CHUNK,
		                     .input = { 7, 8, 9, TEXT("data"), true } };
	struct envelope answer = { .kind = ENVELOPE_INPUT_TAKEN,
		                   .input_taken = { 7, 13, true, TEXT("why") } };
	struct envelope stop = { .kind = ENVELOPE_INPUT_STOP, .request_id = 7 };

	(void)state;
	struct envelope read = round_trip(&bytes, &envelope);
	assert_int_equal(read.input.request_id, 7);
	assert_int_equal(read.input.reservation_id, 8);
	assert_int_equal(read.input.offset, 9);
	assert_true(text_is(read.input.data, "data"));
	assert_true(read.input.end);
	read = round_trip(&bytes, &answer);
	assert_int_equal(read.input_taken.request_id, 7);
	assert_int_equal(read.input_taken.offset, 13);
	assert_true(read.input_taken.closed);
	assert_true(text_is(read.input_taken.error, "why"));
	assert_int_equal(round_trip(&bytes, &stop).request_id, 7);
	buffer_free(&bytes);
}

static void settings_are_read_as_they_were_written(void **state)
{
	struct buffer bytes = { 0 };
	struct envelope envelope = { .kind = ENVELOPE_SETTINGS,
		                     .settings = { 500, 5000, TEXT("podman") } };

	(void)state;
	struct envelope read = round_trip(&bytes, &envelope);
	assert_int_equal(read.settings.heartbeat_ms, 500);
	assert_int_equal(read.settings.metrics_ms, 5000);
	assert_true(text_is(read.settings.container_runtime, "podman"));
	buffer_free(&bytes);
}

static void keys_of_leases_are_read_as_they_were_written(void **state)
{
	struct buffer bytes = { 0 };
	struct told_lease leases[] = { { 1, 2, 3000, TEXT("abc") }, { 4, 5, 0, TEXT("") } };
	struct envelope envelope = { .kind = ENVELOPE_LEASE_KEYS,
		                     .leases = { true, 2, leases, 2 } };
	struct envelope taken = { .kind = ENVELOPE_LEASE_KEY_TAKEN,
		                  .request_id = 5,
		                  .error = TEXT("why") };
	struct envelope slot = { .kind = ENVELOPE_SLOT_KEY,
		                 .reservation_id = 3,
		                 .key = TEXT("k"),
		                 .has_lease_keys = true };

	(void)state;
	struct envelope read = round_trip(&bytes, &envelope);
	assert_true(read.leases.all);
	assert_int_equal(read.leases.first_id, 2);
	assert_int_equal(read.leases.count, 2);
	assert_int_equal(read.leases.at[0].reservation_id, 1);
	assert_int_equal(read.leases.at[0].lease_id, 2);
	assert_int_equal(read.leases.at[0].valid_ms, 3000);
	assert_true(text_is(read.leases.at[0].key, "abc"));
	assert_int_equal(read.leases.at[1].lease_id, 5);
	read = round_trip(&bytes, &taken);
	assert_int_equal(read.request_id, 5);
	assert_true(text_is(read.error, "why"));
	read = round_trip(&bytes, &slot);
	assert_int_equal(read.reservation_id, 3);
	assert_true(text_is(read.key, "k") && read.has_lease_keys);
	buffer_free(&bytes);
}

static void what_is_cut_off_is_refused(void **state)
{
	struct buffer bytes = { 0 };
	struct envelope envelope = { .kind = ENVELOPE_OUTPUT_TAKEN, .request_id = 5, .taken = 900 };
	struct envelope read = round_trip(&bytes, &envelope);

	(void)state;
	assert_int_equal(read.taken, 900);
	for (size_t size = 1; size < bytes.size; size++)
		assert_false(envelope_decode((struct text){ bytes.data, size }, &arena, &read));
	buffer_free(&bytes);
}

static void fields_that_are_not_known_are_passed_over(void **state)
{
	/* Field 15 with 3 bytes, field 14 with a number, then a message. */
	static const char bytes[] = "\x7a\x03xyz\x70\x05\x0a\x02hi";
	struct envelope read;

	(void)state;
	assert_true(envelope_decode((struct text){ bytes, sizeof(bytes) - 1 }, &arena, &read));
	assert_int_equal(read.kind, ENVELOPE_MESSAGE);
	assert_true(text_is(read.message, "hi"));
}

static void two_things_in_one_envelope_are_refused(void **state)
{
	/* A message, and an OutputStop. */
	static const char bytes[] = "\x0a\x02hi\x2a\x02\x08\x05";
	struct envelope read;

	(void)state;
	assert_false(envelope_decode((struct text){ bytes, sizeof(bytes) - 1 }, &arena, &read));
}

static int free_arena(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_are_read_as_they_were_written),
		cmocka_unit_test(requests_for_output_are_read_as_they_were_written),
		cmocka_unit_test(pieces_of_output_are_read_as_they_were_written),
		cmocka_unit_test(parts_of_input_are_read_as_they_were_written),
		cmocka_unit_test(settings_are_read_as_they_were_written),
		cmocka_unit_test(keys_of_leases_are_read_as_they_were_written),
		cmocka_unit_test(what_is_cut_off_is_refused),
		cmocka_unit_test(fields_that_are_not_known_are_passed_over),
		cmocka_unit_test(two_things_in_one_envelope_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, free_arena);
}
