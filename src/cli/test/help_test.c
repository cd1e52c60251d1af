/* help_test.c - what the help and the manual say of commands and their options */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/help.h"

static int run_nothing(const struct arguments *arguments)
{
	(void)arguments;
	return 0;
}

/* What `print` writes to standard output about a command. */
static void read_printed(void (*print)(const struct cli_command *),
                         const struct cli_command *command, char *text, size_t size)
{
	FILE *file = tmpfile();
	assert_non_null(file);
	fflush(stdout);
	int before = dup(STDOUT_FILENO);
	assert_true(before >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0);
	print(command);
	fflush(stdout);
	assert_true(dup2(before, STDOUT_FILENO) >= 0);
	close(before);
	rewind(file);
	text[fread(text, 1, size - 1, file)] = '\0';
	fclose(file);
}

static void an_option_without_help_is_in_neither_help_nor_manual(void **state)
{
	(void)state;
	static const struct option options[] = {
		OPTION("--shown", "-s", "TEXT", "what people may set"),
		OPTION("--unshown", NULL, NULL, NULL),
		{ 0 },
	};
	static const struct cli_command command = { .name = "example",
		                                    .arguments = "",
		                                    .summary = "an example",
		                                    .options = options,
		                                    .run = run_nothing };
	char text[16384];

	read_printed(help_print_command, &command, text, sizeof(text));
	assert_non_null(strstr(text, "--shown"));
	assert_null(strstr(text, "--unshown"));
	read_printed(help_print_manual_command, &command, text, sizeof(text));
	assert_non_null(strstr(text, "\\-\\-shown"));
	assert_non_null(strstr(text, "what people may set"));
	assert_null(strstr(text, "unshown"));
}

/* Tests of the tables: what an author left out is found here. */
static void every_command_and_option_has_a_text(void **state)
{
	(void)state;
	for (const struct cli_command *const *at = cli_commands; *at; at++) {
		const struct option *sets[CLI_SETS];
		assert_non_null((*at)->name);
		assert_non_null((*at)->arguments);
		assert_non_null((*at)->run);
		assert_true((*at)->hidden || ((*at)->summary && *(*at)->summary));
		int count = cli_options(*at, sets);
		for (int i = 0; i < count; i++)
			for (const struct option *option = sets[i]; option->name; option++)
				if (!option->help || !*option->help)
					fail_msg("%s %s has no help", (*at)->name, option->name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_option_without_help_is_in_neither_help_nor_manual),
		cmocka_unit_test(every_command_and_option_has_a_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
