/* order_test.c - names with numbers in them are in the order of the numbers */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/text/order.h"
#include "json/member.h"

static void numbers_in_names_count_as_numbers(void **state)
{
	(void)state;
	static const char *const ordered[] = { "",        "a",      "a1",       "a1b",
		                               "a2",      "a10",    "b",        "gpu-9",
		                               "gpu-09x", "gpu-10", "gpu-10-2", "gpu-10-10" };
	for (size_t i = 0; i + 1 < sizeof(ordered) / sizeof(ordered[0]); i++) {
		assert_true(order_names(ordered[i], ordered[i + 1]) < 0);
		assert_true(order_names(ordered[i + 1], ordered[i]) > 0);
		assert_int_equal(order_names(ordered[i], ordered[i]), 0);
	}
	assert_true(order_names("a01", "a1") != 0);
}

static void gpus_are_in_the_order_of_their_nodes(void **state)
{
	(void)state;
	json_t *items = json_pack("[{s:s,s:i},{s:s,s:i},{s:s,s:i}]", "node", "n10", "index", 0,
	                          "node", "n9", "index", 1, "node", "n9", "index", 0);
	order_items(items, order_by_node);
	assert_string_equal(member_text(json_array_get(items, 0), "node"), "n9");
	assert_int_equal(member_integer(json_array_get(items, 0), "index"), 0);
	assert_string_equal(member_text(json_array_get(items, 2), "node"), "n10");
	json_decref(items);
}

static void what_cannot_start_yet_comes_last_and_stays_in_order(void **state)
{
	(void)state;
	json_t *items = json_pack("[{s:s},{s:s,s:i},{s:s},{s:s,s:i}]", "id", "a", "id", "b",
	                          "queue_position", 2, "id", "c", "id", "d", "queue_position", 1);
	char order[5] = "";
	order_items(items, order_by_position);
	for (size_t i = 0; i < 4; i++)
		order[i] = member_text(json_array_get(items, i), "id")[0];
	assert_string_equal(order, "dbac");
	json_decref(items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_in_names_count_as_numbers),
		cmocka_unit_test(gpus_are_in_the_order_of_their_nodes),
		cmocka_unit_test(what_cannot_start_yet_comes_last_and_stays_in_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
