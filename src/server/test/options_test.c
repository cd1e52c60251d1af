/* options_test.c - the command line of gpu-scheduler */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/options.h"

enum { WORDS_MAX = 10 };

/* Reads a command line of words with spaces between them. */
static bool read_line(const char *line, struct options *options, struct error *error)
{
	static char copy[200];
	char *words[WORDS_MAX] = { "gpu-scheduler" };
	int count = 1;
	strncpy(copy, line, sizeof(copy) - 1);
	for (char *word = strtok(copy, " "); word && count < WORDS_MAX - 1;
	     word = strtok(NULL, " "))
		words[count++] = word;
	return options_read(options, count, words, error);
}

static void commands_and_options_may_be_mixed(void **state)
{
	struct options options;
	struct error error;
	(void)state;
	assert_true(read_line("", &options, &error));
	assert_int_equal(options.action, ACTION_SERVE);
	assert_true(read_line("--data d backup f", &options, &error));
	assert_int_equal(options.action, ACTION_BACKUP);
	assert_string_equal(options.file, "f");
	assert_true(read_line("restore f --yes --config=c", &options, &error));
	assert_int_equal(options.action, ACTION_RESTORE);
	assert_true(options.yes);
	assert_string_equal(options.config_path, "c");
	assert_true(read_line("token create --role viewer --tenant 3", &options, &error));
	assert_int_equal(options.action, ACTION_CREATE_TOKEN);
	assert_string_equal(options.role, "viewer");
	assert_true(read_line("--check-config --config c", &options, &error));
	assert_int_equal(options.action, ACTION_CHECK_CONFIG);
}

static void what_is_wrong_is_named(void **state)
{
	const char *const cases[][2] = {
		{ "--confg", "unknown option '--confg'; did you mean --config?" },
		{ "--config", "--config needs a value" },
		{ "frob", "'frob' is not a command" },
		{ "backup", "write 'gpu-scheduler backup FILE'" },
		{ "backup a b", "write 'gpu-scheduler backup FILE'" },
		{ "check now", "write 'gpu-scheduler check'" },
		{ "token delete", "write 'gpu-scheduler token create'" },
		{ "--data a --data b", "--data is given twice" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct options options;
		struct error error = { 0 };
		assert_false(read_line(cases[i][0], &options, &error));
		assert_string_equal(error.text, cases[i][1]);
	}
}

static void options_go_before_the_environment(void **state)
{
	char *environment[] = { "GPU_SCHEDULER_API_HTTP_PORT=81",
		                "GPU_SCHEDULER_LOGGING_VERBOSITY=3", NULL };
	struct options options;
	struct error error;
	(void)state;
	assert_true(read_line("--http-port 82", &options, &error));
	struct config *config = options_config(&options, environment, &error);
	assert_non_null(config);
	assert_int_equal(config->api.http_port, 82);
	assert_int_equal(config->logging.verbosity, 3);
	config_free(config);
	assert_true(read_line("--http-port x", &options, &error));
	assert_null(options_config(&options, environment, &error));
	assert_non_null(strstr(error.text, "--http-port: api.http_port is 'x'"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_and_options_may_be_mixed),
		cmocka_unit_test(what_is_wrong_is_named),
		cmocka_unit_test(options_go_before_the_environment),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
