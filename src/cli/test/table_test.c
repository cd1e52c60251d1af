/* table_test.c - columns line up, and fit the terminal */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/text/table.h"
#include "cli/text/text_width.h"

/* What is printed, to be freed. */
static char *printed(struct table *table)
{
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);
	table_print(table, to);
	fclose(to);
	table_free(table);
	return text;
}

static void columns_are_as_wide_as_their_widest_cell(void **state)
{
	(void)state;
	struct table table = { .columns = 3, .right = 1U << 1 };
	table_cell(&table, "NAME");
	table_cell(&table, "SIZE");
	table_cell(&table, "NOTE");
	table_cell(&table, "a longer one");
	table_cell(&table, "%d MiB", 5);
	table_end_row(&table);
	table_cell(&table, "b");
	table_cell(&table, "%d MiB", 1234);
	table_cell(&table, "x");
	char *text = printed(&table);
	assert_string_equal(text, "NAME              SIZE  NOTE\n"
	                          "a longer one     5 MiB\n"
	                          "b             1234 MiB  x\n");
	free(text);
}

static void letters_that_take_two_columns_or_none_line_up(void **state)
{
	(void)state;
	struct table table = { .columns = 2 };
	table_cell(&table, "名前");
	table_cell(&table, "x");
	table_cell(&table, "e\xcc\x81t");
	table_cell(&table, "y");
	char *text = printed(&table);
	assert_string_equal(text, "名前  x\n"
	                          "e\xcc\x81t    y\n");
	free(text);
}

/* Three columns; the middle one has `letters` letters. */
static char *fitted(int columns, int letters, unsigned drops)
{
	struct table table = { .columns = 3,
		               .shrinks = 1U << 1,
		               .drops = drops,
		               .terminal = { .columns = columns, .pictures = true } };
	table_cell(&table, "job-1");
	table_cell(&table, "%.*s", letters, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz");
	table_cell(&table, "running");
	return printed(&table);
}

static void what_is_too_wide_is_cut_with_a_mark(void **state)
{
	(void)state;
	char *text = fitted(30, 50, 0);
	assert_string_equal(text, "job-1  abcdefghijklm…  running\n");
	free(text);
	text = fitted(80, 50, 0);
	assert_null(strstr(text, "…"));
	free(text);
}

static void a_column_that_can_be_missed_goes_first(void **state)
{
	(void)state;
	char *text = fitted(30, 50, 1U << 2);
	assert_string_equal(text, "job-1  abcdefghijklmnopqrstuv…\n");
	free(text);
}

static void no_line_is_wider_than_the_terminal_whatever_is_in_it(void **state)
{
	(void)state;
	for (int columns = 24; columns < 100; columns++) {
		for (int letters = 0; letters < 50; letters += 7) {
			char *text = fitted(columns, letters, 0);
			text[strlen(text) - 1] = '\0';
			assert_true(text_width(text) <= columns);
			free(text);
		}
	}
}

static void nothing_in_a_cell_commands_the_terminal(void **state)
{
	(void)state;
	struct table table = { .columns = 1 };
	table_cell(&table, "%s", "a\033[2Jb\nc\td\x7f\xc2\x9b\xff");
	char *text = printed(&table);
	assert_string_equal(text, "a?[2Jb c d???\n");
	free(text);
}

static void colours_take_no_room(void **state)
{
	(void)state;
	struct table table = { .columns = 2, .terminal = { .columns = 80, .colours = true } };
	table_coloured(&table, COLOUR_GREEN, "running");
	table_cell(&table, "x");
	table_cell(&table, "completed");
	table_cell(&table, "y");
	char *text = printed(&table);
	assert_string_equal(text, "\033[32mrunning\033[0m    x\n"
	                          "completed  y\n");
	free(text);
}

static void a_terminal_that_is_too_narrow_gets_the_first_columns(void **state)
{
	(void)state;
	struct table table = { .columns = 4, .terminal = { .columns = 20 } };
	static const char *const cells[] = { "NODE", "MEMORY", "RESERVED", "FOREIGN",
		                             "a",    "80G",    "20G",      "1G" };
	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++)
		table_cell(&table, "%s", cells[i]);
	char *text = printed(&table);
	assert_string_equal(text, "NODE  MEMORY\n"
	                          "a     80G\n");
	free(text);
}

static void a_column_that_may_be_left_out_gives_way_to_a_sentence(void **state)
{
	(void)state;
	struct table table = {
		.columns = 3, .drops = 1U << 1, .shrinks = 1U << 2, .terminal = { .columns = 40 }
	};
	static const char *const cells[] = { "JOB",   "PRIORITY", "REASON",
		                             "job-1", "500",      "no GPU has 30 GiB free for it" };
	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++)
		table_cell(&table, "%s", cells[i]);
	char *text = printed(&table);
	assert_string_equal(text, "JOB    REASON\n"
	                          "job-1  no GPU has 30 GiB free for it\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_as_wide_as_their_widest_cell),
		cmocka_unit_test(letters_that_take_two_columns_or_none_line_up),
		cmocka_unit_test(what_is_too_wide_is_cut_with_a_mark),
		cmocka_unit_test(a_column_that_can_be_missed_goes_first),
		cmocka_unit_test(no_line_is_wider_than_the_terminal_whatever_is_in_it),
		cmocka_unit_test(nothing_in_a_cell_commands_the_terminal),
		cmocka_unit_test(colours_take_no_room),
		cmocka_unit_test(a_terminal_that_is_too_narrow_gets_the_first_columns),
		cmocka_unit_test(a_column_that_may_be_left_out_gives_way_to_a_sentence),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
