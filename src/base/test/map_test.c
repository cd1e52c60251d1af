/* map_test.c - tests of the hash maps */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "../hash.h"
#include "../map.h"
#include "../number.h"

static int thing[1000]; /* its elements are things to point to */

static void an_empty_map_has_nothing(void **state)
{
	(void)state;
	struct map map = { 0 };
	struct text_map texts = { 0 };
	assert_null(map_get(&map, 0));
	assert_null(map_remove(&map, 0));
	assert_null(text_map_get(&texts, ""));
	assert_null(text_map_remove(&texts, ""));
	map_free(&map);
	text_map_free(&texts);
}

static void any_number_can_be_a_key(void **state)
{
	(void)state;
	struct map map = { 0 };
	const int64_t keys[] = { 0, -1, 1, INT64_MIN, INT64_MAX };
	for (int i = 0; i < 5; i++)
		map_put(&map, keys[i], &thing[i]);
	for (int i = 0; i < 5; i++)
		assert_ptr_equal(map_get(&map, keys[i]), &thing[i]);
	assert_null(map_get(&map, 2));
	assert_int_equal(map.count, 5);
	map_free(&map);
}

static void putting_again_replaces(void **state)
{
	(void)state;
	struct map map = { 0 };
	map_put(&map, 7, &thing[0]);
	map_put(&map, 7, &thing[1]);
	assert_int_equal(map.count, 1);
	assert_ptr_equal(map_remove(&map, 7), &thing[1]);
	assert_null(map_get(&map, 7));
	map_free(&map);
}

static void a_map_grows_and_stays_at_most_three_quarters_full(void **state)
{
	(void)state;
	struct map map = { 0 };
	for (int64_t i = 0; i < 10000; i++) {
		map_put(&map, i, &thing[i % 1000]);
		assert_true(map.count * 4 <= map.capacity * 3);
		assert_true((map.capacity & (map.capacity - 1)) == 0);
	}
	for (int64_t i = 0; i < 10000; i++)
		assert_ptr_equal(map_get(&map, i), &thing[i % 1000]);
	map_free(&map);
}

enum { KEYS = 300, COLLIDING = 150, PLACES = 256 };

/* Half of the keys are any numbers, and half all want the last place of a map
 * with PLACES of them, so that chains are long and go round the end. */
static void make_keys(int64_t keys[KEYS])
{
	int64_t next = 0;
	for (int i = 0; i < COLLIDING; i++) {
		while (hash_number((uint64_t)next) % PLACES != PLACES - 1)
			next++;
		keys[i] = next++;
	}
	for (int i = COLLIDING; i < KEYS; i++)
		keys[i] = -i * INT64_C(1000003);
}

static void a_map_agrees_with_a_list_under_collisions_and_removals(void **state)
{
	(void)state;
	struct map map = { 0 };
	int64_t keys[KEYS];
	void *expected[KEYS] = { 0 };
	size_t count = 0;
	uint64_t seed = 1;

	make_keys(keys);
	for (int step = 0; step < 100000; step++) {
		uint64_t i = random_below(&seed, KEYS);
		if (random_below(&seed, 2)) {
			void *value = &thing[random_below(&seed, 1000)];
			map_put(&map, keys[i], value);
			count += expected[i] == NULL;
			expected[i] = value;
		} else {
			assert_ptr_equal(map_remove(&map, keys[i]), expected[i]);
			count -= expected[i] != NULL;
			expected[i] = NULL;
		}
		assert_int_equal(map.count, count);
		for (int check = 0; check < 3; check++) {
			i = random_below(&seed, KEYS);
			assert_ptr_equal(map_get(&map, keys[i]), expected[i]);
		}
	}
	assert_int_equal(map.capacity, PLACES);
	map_free(&map);
}

static void text_keys_are_copied_in(void **state)
{
	(void)state;
	struct text_map map = { 0 };
	char key[] = "node-1";
	text_map_put(&map, key, &thing[1]);
	key[5] = '2';
	assert_ptr_equal(text_map_get(&map, "node-1"), &thing[1]);
	assert_null(text_map_get(&map, key));
	text_map_put(&map, "node-1", &thing[2]);
	assert_int_equal(map.count, 1);
	assert_ptr_equal(text_map_get(&map, "node-1"), &thing[2]);
	text_map_free(&map);
}

static void a_text_map_agrees_with_a_list_under_collisions_and_removals(void **state)
{
	(void)state;
	struct text_map map = { 0 };
	char keys[KEYS][24];
	void *expected[KEYS] = { 0 };
	int next = 0;
	uint64_t seed = 2;

	for (int i = 0; i < KEYS; i++) {
		do
			snprintf(keys[i], sizeof(keys[i]), "key %d", next++);
		while (i < COLLIDING && hash_text(keys[i]) % PLACES != PLACES - 1);
	}
	for (int step = 0; step < 50000; step++) {
		uint64_t i = random_below(&seed, KEYS);
		if (random_below(&seed, 2)) {
			expected[i] = &thing[random_below(&seed, 1000)];
			text_map_put(&map, keys[i], expected[i]);
		} else {
			assert_ptr_equal(text_map_remove(&map, keys[i]), expected[i]);
			expected[i] = NULL;
		}
		i = random_below(&seed, KEYS);
		assert_ptr_equal(text_map_get(&map, keys[i]), expected[i]);
	}
	size_t count = 0;
	for (int i = 0; i < KEYS; i++)
		count += expected[i] != NULL;
	assert_int_equal(map.count, count);
	text_map_free(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_map_has_nothing),
		cmocka_unit_test(any_number_can_be_a_key),
		cmocka_unit_test(putting_again_replaces),
		cmocka_unit_test(a_map_grows_and_stays_at_most_three_quarters_full),
		cmocka_unit_test(a_map_agrees_with_a_list_under_collisions_and_removals),
		cmocka_unit_test(text_keys_are_copied_in),
		cmocka_unit_test(a_text_map_agrees_with_a_list_under_collisions_and_removals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
