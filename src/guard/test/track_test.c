/* track_test.c - what a process has allocated, and the texts of UUIDs and sizes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/number.h"
#include "guard/budget/size.h"
#include "guard/budget/uuid.h"
#include "guard/calls/track.h"

static int track_end(void **state)
{
	(void)state;
	track_reset();
	return 0;
}

static void track_insert(enum track_kind kind, uint64_t key, int64_t bytes, uint64_t context)
{
	struct track_item item = { .key = key,
		                   .bytes = bytes,
		                   .context = context,
		                   .references = 1,
		                   .kind = (uint8_t)kind };
	assert_true(track_add(&item));
}

static void handles_of_different_kinds_are_different(void **state)
{
	(void)state;
	struct track_item item;
	track_insert(TRACK_POINTER, 5, 1, 0);
	track_insert(TRACK_ARRAY, 5, 2, 0);
	assert_true(track_find(TRACK_ARRAY, 5, &item));
	assert_int_equal(item.bytes, 2);
	assert_true(track_remove(TRACK_POINTER, 5, &item));
	assert_int_equal(item.bytes, 1);
	assert_false(track_remove(TRACK_POINTER, 5, &item));
	assert_int_equal(track_count(), 1);
}

static void what_is_added_and_removed_at_random_is_there_until_then(void **state)
{
	(void)state;
	enum { KEYS = 20000 };
	static bool present[KEYS];
	memset(present, 0, sizeof present);
	uint64_t random = 3;
	int64_t count = 0;
	for (int i = 0; i < 200000; i++) {
		uint64_t key = random_below(&random, KEYS);
		struct track_item item;
		/* Addresses of pages, as drivers hand them out. */
		uint64_t handle = 0x7f0000000000 + key * 0x200000;
		if (present[key]) {
			assert_true(track_remove(TRACK_POINTER, handle, &item));
			assert_int_equal(item.bytes, (int64_t)key);
			count--;
		} else {
			assert_false(track_find(TRACK_POINTER, handle, &item));
			track_insert(TRACK_POINTER, handle, (int64_t)key, 0);
			count++;
		}
		present[key] = !present[key];
	}
	assert_int_equal(track_count(), count);
}

static void an_item_is_there_until_its_last_reference(void **state)
{
	(void)state;
	struct track_item item;
	track_insert(TRACK_OBJECT, 9, 4, 0);
	assert_int_equal(track_refer(TRACK_OBJECT, 9, 1, &item), 2);
	assert_int_equal(track_refer(TRACK_OBJECT, 9, -1, &item), 1);
	assert_int_equal(track_refer(TRACK_OBJECT, 9, -1, &item), 0);
	assert_int_equal(item.bytes, 4);
	assert_int_equal(track_refer(TRACK_OBJECT, 9, 1, &item), -1);
}

static void the_items_of_a_context_are_found(void **state)
{
	(void)state;
	struct track_item item;
	for (uint64_t key = 0; key < 5000; key++)
		track_insert(TRACK_POINTER, key << 21, 1, key % 5 == 0 ? 77 : 78);
	int removed = 0;
	size_t from = 0;
	while (track_remove_of_context(77, &from, &item)) {
		assert_true((item.key >> 21) % 5 == 0);
		removed++;
	}
	assert_int_equal(removed, 1000);
	assert_int_equal(track_count(), 4000);
}

static void an_address_within_a_mapping_finds_it(void **state)
{
	(void)state;
	struct track_item item;
	track_insert(TRACK_MAPPING, 0x1000, 0x1000, 0);
	assert_true(track_find_mapping(0x1fff, &item));
	assert_int_equal(item.key, 0x1000);
	assert_false(track_find_mapping(0x2000, &item));
	assert_false(track_find_mapping(0xfff, &item));
}

static void only_the_first_of_two_changes_of_a_charge_counts(void **state)
{
	(void)state;
	struct track_item item;
	track_insert(TRACK_OBJECT, 9, 0, 0);
	assert_true(track_charge(TRACK_OBJECT, 9, 0, 100, 3));
	assert_false(track_charge(TRACK_OBJECT, 9, 0, 200, 4));
	assert_true(track_find(TRACK_OBJECT, 9, &item));
	assert_int_equal(item.bytes, 100);
	assert_int_equal(item.share, 3);
}

static void uuids_are_read_as_they_are_written(void **state)
{
	(void)state;
	uint8_t uuid[16];
	char text[UUID_TEXT_MAX];
	const char *gpu = "GPU-5703a1c4-00ff-1234-abcd-0123456789ab";
	assert_true(uuid_parse(gpu, uuid));
	uuid_format(uuid, "GPU-", text);
	assert_string_equal(text, gpu);
	assert_true(uuid_parse("MIG-5703A1C4-00FF-1234-ABCD-0123456789AB", uuid));
	uuid_format(uuid, "GPU-", text);
	assert_string_equal(text, gpu);
	assert_true(uuid_parse(gpu + 4, uuid));
	assert_false(uuid_parse("", uuid));
	assert_false(uuid_parse("GPU-", uuid));
	assert_false(uuid_parse("GPU-5703a1c4-00ff-1234-abcd-0123456789a", uuid));
	assert_false(uuid_parse("GPU-5703a1c4-00ff-1234-abcd-0123456789abc", uuid));
	assert_false(uuid_parse("GPU-5703a1c4+00ff-1234-abcd-0123456789ab", uuid));
	assert_false(uuid_parse("GPU-5703a1g4-00ff-1234-abcd-0123456789ab", uuid));
}

static void sizes_are_read_with_their_units(void **state)
{
	(void)state;
	const struct {
		const char *text;
		int64_t bytes;
	} sizes[] = { { "0", 0 },
		      { "123", 123 },
		      { "4K", 4096 },
		      { "20M", 20 << 20 },
		      { "3G", INT64_C(3) << 30 },
		      { "2T", INT64_C(2) << 40 } };
	int64_t bytes;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		assert_true(size_parse(sizes[i].text, &bytes));
		assert_int_equal(bytes, sizes[i].bytes);
	}
	const char *wrong[] = {
		"", "G", "-1", "1.5G", "20GB", "20 G", "99999999999999999999", "9999999999T", "x"
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(size_parse(wrong[i], &bytes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(handles_of_different_kinds_are_different, track_end),
		cmocka_unit_test_teardown(what_is_added_and_removed_at_random_is_there_until_then,
		                          track_end),
		cmocka_unit_test_teardown(an_item_is_there_until_its_last_reference, track_end),
		cmocka_unit_test_teardown(the_items_of_a_context_are_found, track_end),
		cmocka_unit_test_teardown(an_address_within_a_mapping_finds_it, track_end),
		cmocka_unit_test_teardown(only_the_first_of_two_changes_of_a_charge_counts,
		                          track_end),
		cmocka_unit_test(uuids_are_read_as_they_are_written),
		cmocka_unit_test(sizes_are_read_with_their_units),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
