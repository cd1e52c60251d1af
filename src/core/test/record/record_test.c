/* record_test.c - records survive encoding, copying and bad bytes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/record/record.h"

/* How the fields of a record are filled. */
enum filling { EMPTY, ORDINARY, LOWEST, HIGHEST, FILLINGS };

static const int64_t lowest_rows[32], ordinary_rows[32] = { 1, -2, 3, 400, INT64_MIN, INT64_MAX };

static int64_t number_for(enum filling filling, int field, int64_t low, int64_t high)
{
	switch (filling) {
	case LOWEST:
		return low;
	case HIGHEST:
		return high;
	case ORDINARY:
		return field % 2 ? field + 1 : -field - 1;
	default:
		return 0;
	}
}

static const char *text_for(enum filling filling)
{
	switch (filling) {
	case LOWEST:
		return "\x01";
	case HIGHEST:
		return "\xff\xfe\n\"\\ and a text that is longer than 127 bytes, so that its "
		       "length takes two bytes in the encoding: 0123456789012345678901234567890123";
	case ORDINARY:
		return "lab";
	default:
		return "";
	}
}

static struct rows rows_for(enum filling filling, int width)
{
	switch (filling) {
	case LOWEST:
		return (struct rows){ lowest_rows, 1 };
	case HIGHEST:
	case ORDINARY:
		return (struct rows){ ordinary_rows, 32 / width };
	default:
		return (struct rows){ 0 };
	}
}

static void fill_field(const struct record_field *field, int i, void *to, enum filling filling)
{
	switch (field->kind) {
	case FIELD_INT64:
		*(int64_t *)to = number_for(filling, i, INT64_MIN, INT64_MAX);
		break;
	case FIELD_INT32:
		*(int32_t *)to = (int32_t)number_for(filling, i, INT32_MIN, INT32_MAX);
		break;
	case FIELD_FLAG:
		*(bool *)to = filling == ORDINARY || filling == HIGHEST;
		break;
	case FIELD_TEXT:
		*(const char **)to = text_for(filling);
		break;
	case FIELD_ROWS:
		*(struct rows *)to = rows_for(filling, field->width);
		break;
	case FIELD_LIST:
		fail_msg("a record has a list: %s", field->name);
		break;
	}
}

/* A record with `padding` in the bytes that belong to no field; the caller frees it. */
static void *record_make(enum record_kind kind, enum filling filling, int padding)
{
	const struct record_type *type = record_type(kind);
	char *record = malloc(type->size);
	memset(record, padding, type->size);
	for (int i = 0; i < type->field_count; i++)
		fill_field(&type->fields[i], i, record + type->fields[i].offset, filling);
	return record;
}

static void *record_record_decode(struct arena *arena, enum record_kind kind,
                                  const struct buffer *buffer)
{
	const uint8_t *at = (const uint8_t *)buffer->data, *end = at + buffer->size;
	struct error error = { 0 };
	void *record = record_decode(arena, kind, &at, end, &error);
	assert_string_equal(error.text, "");
	assert_non_null(record);
	assert_ptr_equal(at, end);
	return record;
}

static size_t size_of_field(const struct record_field *field)
{
	const size_t sizes[] = { sizeof(int64_t), sizeof(int32_t), sizeof(bool), sizeof(char *),
		                 sizeof(struct rows) };
	return sizes[field->kind];
}

static void every_member_of_a_record_is_a_field(void **state)
{
	(void)state;
	for (enum record_kind kind = 0; kind < RECORD_KINDS; kind++) {
		const struct record_type *type = record_type(kind);
		size_t end = 0;
		for (int i = 0; i < type->field_count; i++) {
			const struct record_field *field = &type->fields[i];
			size_t size = size_of_field(field), align = size > 8 ? 8 : size;
			assert_int_equal(field->offset, (end + align - 1) / align * align);
			end = field->offset + size;
		}
		assert_int_equal(type->size, (end + 7) / 8 * 8);
	}
}

static void every_kind_has_a_name_and_one_or_two_keys(void **state)
{
	(void)state;
	for (enum record_kind kind = 0; kind < RECORD_KINDS; kind++) {
		const struct record_type *type = record_type(kind);
		assert_non_null(type->name);
		assert_in_range(type->keys, 1, 2);
		for (int i = 0; i < type->keys; i++)
			assert_int_equal(type->fields[i].kind, FIELD_INT64);
	}
}

static void rows_have_a_width(void **state)
{
	(void)state;
	for (enum record_kind kind = 0; kind < RECORD_KINDS; kind++) {
		const struct record_type *type = record_type(kind);
		for (int i = 0; i < type->field_count; i++)
			assert_int_equal(type->fields[i].width > 0,
			                 type->fields[i].kind == FIELD_ROWS);
	}
}

static void every_value_of_an_enum_has_a_word(void **state)
{
	(void)state;
	assert_int_equal(policy_words.count, POLICY_COUNT);
	assert_int_equal(node_state_words.count, NODE_LOST + 1);
	assert_int_equal(gpu_kind_words.count, GPU_UNEVEN + 1);
	assert_int_equal(closeness_words.count, CLOSE_RACK + 1);
	assert_int_equal(lease_loss_words.count, LEASE_STOP + 1);
	assert_int_equal(job_state_words.count, JOB_STATES);
	assert_int_equal(task_state_words.count, TASK_RESUMING + 1);
	assert_int_equal(phase_words.count, PHASE_RESUMING + 1);
	assert_int_equal(decision_words.count, DECISION_WAKE + 1);
	assert_int_equal(runtime_words.count, RUNTIME_CUSTOM + 1);
	assert_int_equal(slot_policy_words.count, SLOT_PACK + 1);
	assert_int_equal(slot_state_words.count, SLOT_WAKING + 1);
	assert_int_equal(model_sleep_words.count, SLEEP_DRIVER + 1);
	assert_int_equal(request_end_words.count, REQUEST_GONE + 1);
	assert_int_equal(time_sharing_words.count, SHARING_PREDICTED_SERVICE + 1);
	assert_string_equal(word_of(&phase_words, PHASE_LIVE), "live");
	assert_null(word_of(&phase_words, -1));
	assert_null(word_of(&phase_words, PHASE_RESUMING + 1));
}

static void a_key_is_the_first_field_or_the_first_two(void **state)
{
	(void)state;
	struct task_record task = { .job_id = 7, .place = 3, .reservation_id = 9 };
	struct record_key key = record_key(RECORD_TASK, &task);
	assert_int_equal(key.first, 7);
	assert_int_equal(key.second, 3);

	struct tenant_record tenant = { .id = 5, .parent_id = 4, .name = "lab" };
	key = record_key(RECORD_TENANT, &tenant);
	assert_int_equal(key.first, 5);
	assert_int_equal(key.second, 0);
}

static void a_record_is_the_same_after_encoding_and_decoding(void **state)
{
	(void)state;
	struct arena arena = { 0 };
	struct buffer buffer = { 0 }, again = { 0 };
	for (unsigned i = 0; i < RECORD_KINDS * FILLINGS; i++) {
		enum record_kind kind = i / FILLINGS;
		void *record = record_make(kind, i % FILLINGS, 0);
		buffer_clear(&buffer);
		buffer_clear(&again);
		record_encode(&buffer, kind, record);
		void *decoded = record_record_decode(&arena, kind, &buffer);
		assert_true(record_equal(kind, record, decoded));
		record_encode(&again, kind, decoded);
		assert_int_equal(again.size, buffer.size);
		assert_memory_equal(again.data, buffer.data, buffer.size);
		free(record);
	}
	buffer_free(&buffer);
	buffer_free(&again);
	arena_free(&arena);
}

static void equal_records_have_equal_encodings_whatever_their_padding(void **state)
{
	(void)state;
	struct buffer one = { 0 }, other = { 0 };
	for (unsigned i = 0; i < RECORD_KINDS * FILLINGS; i++) {
		enum record_kind kind = i / FILLINGS;
		void *a = record_make(kind, i % FILLINGS, 0xff),
		     *b = record_make(kind, i % FILLINGS, 0);
		buffer_clear(&one);
		buffer_clear(&other);
		record_encode(&one, kind, a);
		record_encode(&other, kind, b);
		assert_true(record_equal(kind, a, b));
		assert_int_equal(one.size, other.size);
		assert_memory_equal(one.data, other.data, one.size);
		free(a);
		free(b);
	}
	buffer_free(&one);
	buffer_free(&other);
}

static void the_encoding_is_these_bytes_on_every_machine(void **state)
{
	(void)state;
	struct guess_record guess = { .id = 300,
		                      .key = -1,
		                      .voices = "ab",
		                      .after = INT64_MIN,
		                      .p50_ms = 0,
		                      .p90_ms = 1,
		                      .confidence = INT64_MAX };
	static const uint8_t expected[] = {
		0xd8, 0x04,                                                 /* id */
		0x01,                                                       /* key */
		0x02, 'a',  'b',                                            /* voices */
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, /* after */
		0x00,                                                       /* p50_ms */
		0x02,                                                       /* p90_ms */
		0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, /* confidence */
		0x00, 0x00,                                                 /* samples, basis */
	};
	struct buffer buffer = { 0 };
	record_encode(&buffer, RECORD_GUESS, &guess);
	assert_int_equal(buffer.size, sizeof(expected));
	assert_memory_equal(buffer.data, expected, sizeof(expected));
	buffer_free(&buffer);
}

static void records_that_differ_in_one_field_are_not_equal(void **state)
{
	(void)state;
	for (enum record_kind kind = 0; kind < RECORD_KINDS; kind++) {
		const struct record_type *type = record_type(kind);
		for (int i = 0; i < type->field_count; i++) {
			char *a = record_make(kind, ORDINARY, 0),
			     *b = record_make(kind, ORDINARY, 0);
			fill_field(&type->fields[i], i, b + type->fields[i].offset, LOWEST);
			assert_false(record_equal(kind, a, b));
			free(a);
			free(b);
		}
	}
}

static void a_copy_is_equal_and_shares_nothing(void **state)
{
	(void)state;
	struct arena arena = { 0 };
	char name[] = "lab", boot[] = "boot";
	struct node_record node = {
		.id = 1, .name = name, .boot = boot, .zone = "", .rack = "", .labels = ""
	};
	struct node_record *node_copy = record_copy(&arena, RECORD_NODE, &node);
	name[0] = boot[0] = 'x';
	assert_string_equal(node_copy->name, "lab");
	assert_string_equal(node_copy->boot, "boot");

	int64_t parts[] = { 1, 8000, 100, 0, 0, 2, 4000, 50, 0, 0 };
	struct reservation_record held = { .id = 2, .parts = { parts, 2 } };
	struct reservation_record *held_copy = record_copy(&arena, RECORD_RESERVATION, &held);
	parts[9] = 1;
	assert_int_equal(held_copy->parts.count, 2);
	assert_int_equal(held_copy->parts.at[5], 2);
	assert_int_equal(held_copy->parts.at[9], 0);
	arena_free(&arena);
}

static void every_kind_is_copied_whole(void **state)
{
	(void)state;
	struct arena arena = { 0 };
	for (unsigned i = 0; i < RECORD_KINDS * FILLINGS; i++) {
		enum record_kind kind = i / FILLINGS;
		void *record = record_make(kind, i % FILLINGS, 0xff);
		assert_true(record_equal(kind, record, record_copy(&arena, kind, record)));
		free(record);
	}
	arena_free(&arena);
}

/* What one allocation of this size uses of an arena. */
static size_t arena_use(size_t size)
{
	struct arena arena = { 0 };
	arena_alloc(&arena, size);
	size_t used = arena.used;
	arena_free(&arena);
	return used;
}

static void an_empty_copy_takes_no_more_than_its_struct(void **state)
{
	(void)state;
	struct arena arena = { 0 };
	struct decision_record decision = { .id = 1, .gpus = { lowest_rows, 0 } };
	struct decision_record *copy = record_copy(&arena, RECORD_DECISION, &decision);
	assert_int_equal(arena.used, arena_use(sizeof(decision)));
	assert_null(copy->gpus.at);

	struct guess_record guess = { .id = 1, .voices = NULL };
	struct guess_record *guess_copy = record_copy(&arena, RECORD_GUESS, &guess);
	assert_string_equal(guess_copy->voices, "");
	arena_free(&arena);
}

/* Decodes a copy of exactly this size, so that a sanitizer sees a read beyond it. */
static bool record_is_refused(enum record_kind kind, const void *data, size_t size,
                              struct error *error)
{
	struct arena arena = { 0 };
	uint8_t *copy = malloc(size + 1);
	const uint8_t *start = copy + 1, *at = start;
	memcpy(copy + 1, data, size);
	error_clear(error);
	bool refused = !record_decode(&arena, kind, &at, start + size, error);
	assert_int_equal(refused, error->code == ERROR_CORRUPT);
	assert_int_equal(refused, error->text[0] != '\0');
	if (refused)
		assert_ptr_equal(at, start);
	free(copy);
	arena_free(&arena);
	return refused;
}

static void every_truncation_is_refused_with_a_reason(void **state)
{
	(void)state;
	struct buffer buffer = { 0 };
	struct error error;
	for (unsigned i = 0; i < RECORD_KINDS * FILLINGS; i++) {
		enum record_kind kind = i / FILLINGS;
		void *record = record_make(kind, i % FILLINGS, 0);
		buffer_clear(&buffer);
		record_encode(&buffer, kind, record);
		for (size_t size = 0; size < buffer.size; size++)
			assert_true(record_is_refused(kind, buffer.data, size, &error));
		assert_false(record_is_refused(kind, buffer.data, buffer.size, &error));
		free(record);
	}
	buffer_free(&buffer);
}

static void record_assert_refused(enum record_kind kind, const char *data, size_t size,
                                  const char *why)
{
	struct error error;
	assert_true(record_is_refused(kind, data, size, &error));
	assert_string_equal(error.text, why);
}
#define ASSERT_REFUSED(kind, literal, why)                                                         \
	record_assert_refused(kind, literal, sizeof(literal) - 1, why)

static void bytes_that_nobody_wrote_are_refused(void **state)
{
	(void)state;
	ASSERT_REFUSED(RECORD_GUESS, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
	               "guess.id is unreadable 11 bytes before the end of the data: the number "
	               "has more than 64 bits");
	ASSERT_REFUSED(RECORD_GUESS, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
	               "guess.id is unreadable 10 bytes before the end of the data: the number "
	               "has more than 64 bits");
	ASSERT_REFUSED(RECORD_GUESS, "\x02\x80\x00",
	               "guess.key is unreadable 2 bytes before the end of the data: "
	               "the number is not in its shortest form");
	ASSERT_REFUSED(RECORD_GUESS,
	               "\x02\x02\x05"
	               "abcd",
	               "guess.voices is unreadable 4 bytes before the end of the data: "
	               "the length goes beyond it");
	ASSERT_REFUSED(RECORD_GUESS,
	               "\x02\x02\x04"
	               "ab\0d\0\0\0\0",
	               "guess.voices is unreadable 8 bytes before the end of the data: the text "
	               "has a NUL in it");
	ASSERT_REFUSED(RECORD_CONFIG, "\x02\x80\x80\x80\x80\x10",
	               "config.policy is unreadable 0 bytes before the end of the data: "
	               "the number does not fit into 32 bits");
	ASSERT_REFUSED(RECORD_CONFIG, "\x02\x02\x04",
	               "config.enable_preemption is unreadable 0 bytes before the end of the data: "
	               "the flag is neither 0 nor 1");
}

static void an_absurd_count_is_refused_before_anything_is_allocated(void **state)
{
	(void)state;
	static const char data[] = "\x02\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
	struct arena arena = { 0 };
	const uint8_t *at = (const uint8_t *)data;
	assert_null(record_decode(&arena, RECORD_MIX, &at, at + sizeof(data) - 1, NULL));
	assert_int_equal(arena.used, arena_use(sizeof(struct mix_record)));
	arena_free(&arena);

	/* Two rows of four numbers cannot be in seven bytes. */
	ASSERT_REFUSED(RECORD_MIX,
	               "\x02\x00\x00\x00\x02"
	               "1234567",
	               "mix.seen is unreadable 7 bytes before the end of the data: "
	               "the length goes beyond it");
}

static void what_follows_a_record_is_left_alone(void **state)
{
	(void)state;
	struct arena arena = { 0 };
	struct buffer buffer = { 0 };
	struct task_record first = { .job_id = 1, .place = 2 }, second = { .job_id = 3 };
	record_encode(&buffer, RECORD_TASK, &first);
	record_encode(&buffer, RECORD_TASK, &second);
	const uint8_t *at = (const uint8_t *)buffer.data, *end = at + buffer.size;
	void *a = record_decode(&arena, RECORD_TASK, &at, end, NULL);
	void *b = record_decode(&arena, RECORD_TASK, &at, end, NULL);
	assert_true(record_equal(RECORD_TASK, a, &first));
	assert_true(record_equal(RECORD_TASK, b, &second));
	assert_ptr_equal(at, end);
	buffer_free(&buffer);
	arena_free(&arena);
}

static void assert_prints(enum record_kind kind, const void *record, const char *expected)
{
	struct buffer buffer = { 0 };
	record_print(&buffer, kind, record);
	assert_string_equal(buffer.data, expected);
	assert_int_equal(buffer.size, strlen(expected));
	buffer_free(&buffer);
}

static void print_shows_names_and_leaves_out_what_is_empty(void **state)
{
	(void)state;
	struct tenant_record tenant = {
		.id = 3, .name = "lab", .limit_gpu = UNLIMITED, .quota_gpu = -1, .weight = 1000
	};
	assert_prints(RECORD_TENANT, &tenant,
	              "tenant id=3 name=\"lab\" limit_gpu=unlimited quota_gpu=-1 weight=1000");

	struct node_record node = { .labels = "", .state = NODE_UNKNOWN, .draining = true };
	assert_prints(RECORD_NODE, &node, "node id=0 state=unknown draining=true");
	node.state = 9;
	assert_prints(RECORD_NODE, &node, "node id=0 state=9 draining=true");

	int64_t parts[] = { 1, 8000, 100, 0, 0, 2, 4000, 50, 0, 1 };
	struct reservation_record held = { .id = 8, .phase = PHASE_GRANTED, .parts = { parts, 2 } };
	assert_prints(RECORD_RESERVATION, &held,
	              "reservation id=8 phase=held parts=[1,8000,100,0,0; 2,4000,50,0,1] "
	              "ending=goes_on");
}

static void print_is_one_line_whatever_a_text_holds(void **state)
{
	(void)state;
	struct guess_record guess = { .id = 1, .voices = "a\nb\"c\\d\x01\x7f\xc3\xa9" };
	assert_prints(RECORD_GUESS, &guess,
	              "guess id=1 voices=\"a\\nb\\\"c\\\\d\\x01\\x7f\xc3\xa9\"");
}

static void the_default_settings_are_sound(void **state)
{
	(void)state;
	struct config_record config = config_default();
	struct error error = { 0 };
	assert_true(config_check(&config, &error));
	assert_int_equal(error.code, ERROR_NONE);
	assert_int_equal(config.id, 1);
	assert_int_equal(config.queue_max, 2000000);
	assert_int_equal(config.usage_half_life_ms, INT64_C(7) * 24 * 60 * 60 * 1000);
}

static void assert_config_refused(const struct config_record *config, const char *why)
{
	struct error error = { 0 };
	assert_false(config_check(config, &error));
	assert_int_equal(error.code, ERROR_INVALID);
	assert_string_equal(error.text, why);
}

static void negative_settings_are_refused_by_name(void **state)
{
	(void)state;
	const struct record_type *type = record_type(RECORD_CONFIG);
	for (int i = 1; i < type->field_count; i++) {
		const struct record_field *field = &type->fields[i];
		struct config_record config = config_default();
		if (field->kind == FIELD_INT64)
			*(int64_t *)((char *)&config + field->offset) = -1;
		else if (field->kind == FIELD_INT32)
			*(int32_t *)((char *)&config + field->offset) = -1;
		else
			continue;
		struct error error = { 0 };
		assert_false(config_check(&config, &error));
		assert_memory_equal(error.text, field->name, strlen(field->name));
	}
}

static void settings_that_make_no_sense_are_refused_with_a_remedy(void **state)
{
	(void)state;
	struct config_record config = config_default();
	config.policy = POLICY_COUNT;
	assert_config_refused(&config,
	                      "policy is 4: set it to 0 (fragment), 1 (pack), 2 (spread) or "
	                      "3 (worth)");
	config = config_default();
	config.thermal_threshold_c = 75;
	config.thermal_resume_c = 76;
	assert_config_refused(&config, "thermal_resume_c is 76: set it to at most "
	                               "thermal_threshold_c, 75");
	config = config_default();
	config.usage_half_life_ms = 0;
	assert_config_refused(&config, "usage_half_life_ms is 0: set it to something from 1 to "
	                               "315360000000");
	config = config_default();
	config.ageing_per_minute = 100001;
	assert_config_refused(&config, "ageing_per_minute is 100001: set it to something from 0 "
	                               "to 100000");
	config = config_default();
	config.search_width = 0;
	assert_config_refused(&config, "search_width is 0: set it to something from 1 to "
	                               "1000000");
	config = config_default();
	config.retention_ms = UNLIMITED;
	assert_config_refused(&config, "retention_ms is 9223372036854775807: set it to something "
	                               "from 0 to 2592000000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_member_of_a_record_is_a_field),
		cmocka_unit_test(every_kind_has_a_name_and_one_or_two_keys),
		cmocka_unit_test(rows_have_a_width),
		cmocka_unit_test(every_value_of_an_enum_has_a_word),
		cmocka_unit_test(a_key_is_the_first_field_or_the_first_two),
		cmocka_unit_test(a_record_is_the_same_after_encoding_and_decoding),
		cmocka_unit_test(equal_records_have_equal_encodings_whatever_their_padding),
		cmocka_unit_test(the_encoding_is_these_bytes_on_every_machine),
		cmocka_unit_test(records_that_differ_in_one_field_are_not_equal),
		cmocka_unit_test(a_copy_is_equal_and_shares_nothing),
		cmocka_unit_test(every_kind_is_copied_whole),
		cmocka_unit_test(an_empty_copy_takes_no_more_than_its_struct),
		cmocka_unit_test(every_truncation_is_refused_with_a_reason),
		cmocka_unit_test(bytes_that_nobody_wrote_are_refused),
		cmocka_unit_test(an_absurd_count_is_refused_before_anything_is_allocated),
		cmocka_unit_test(what_follows_a_record_is_left_alone),
		cmocka_unit_test(print_shows_names_and_leaves_out_what_is_empty),
		cmocka_unit_test(print_is_one_line_whatever_a_text_holds),
		cmocka_unit_test(the_default_settings_are_sound),
		cmocka_unit_test(negative_settings_are_refused_by_name),
		cmocka_unit_test(settings_that_make_no_sense_are_refused_with_a_remedy),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
