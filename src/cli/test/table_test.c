/* table_test.c - columns line up */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/table.h"

static void columns_are_as_wide_as_their_widest_cell(void **state)
{
	(void)state;
	struct table table = { .columns = 3, .right = 1U << 1 };
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);
	table_cell(&table, "NAME");
	table_cell(&table, "SIZE");
	table_cell(&table, "NOTE");
	table_cell(&table, "a longer one");
	table_cell(&table, "%d MiB", 5);
	table_end_row(&table);
	table_cell(&table, "b");
	table_cell(&table, "%d MiB", 1234);
	table_cell(&table, "x");
	table_print(&table, to);
	fclose(to);
	assert_string_equal(text, "NAME              SIZE  NOTE\n"
	                          "a longer one     5 MiB\n"
	                          "b             1234 MiB  x\n");
	free(text);
	table_free(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_as_wide_as_their_widest_cell),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
