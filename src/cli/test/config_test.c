/* config_test.c - contexts are read from YAML, or refused with line and column */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/config/config.h"

static void contexts_are_read(void **state)
{
	(void)state;
	struct config config = { 0 };
	struct error error = { 0 };
	const char text[] = "current_context: lab\n"
			    "contexts:\n"
			    "  lab:\n"
			    "    server: https://gpu.example:8443\n"
			    "    token_file: /home/me/token\n"
			    "    tenant: physics\n"
			    "  home: {server: \"http://127.0.0.1:8080\", ca: ~}\n";
	assert_true(config_parse(&config, "f", text, strlen(text), &error));
	assert_string_equal(config.current, "lab");
	assert_int_equal(config.count, 2);
	assert_string_equal(config_find(&config, "lab")->tenant, "physics");
	assert_null(config_find(&config, "lab")->token);
	assert_null(config_find(&config, "home")->ca);
	assert_null(config_find(&config, "away"));
	config_free(&config);
}

static void an_empty_file_has_no_contexts(void **state)
{
	(void)state;
	struct config config = { 0 };
	struct error error = { 0 };
	assert_true(config_parse(&config, "f", "", 0, &error));
	assert_true(config_parse(&config, "f", "# nothing\n", 10, &error));
	assert_true(config_parse(&config, "f", "contexts:\n", 10, &error));
	assert_int_equal(config.count, 0);
	config_free(&config);
}

static void config_assert_refused(const char *text, const char *reason)
{
	struct config config = { 0 };
	struct error error = { 0 };
	assert_false(config_parse(&config, "f", text, strlen(text), &error));
	assert_string_equal(error.text, reason);
	config_free(&config);
}

static void what_is_wrong_is_told_with_its_place(void **state)
{
	(void)state;
	config_assert_refused(
	    "context: x\n", "f:1:1: this file has current_context and contexts, and nothing else");
	config_assert_refused(
	    "contexts:\n  lab:\n    sever: x\n",
	    "f:3:5: a context has server, token, token_file, ca and tenant, not this");
	config_assert_refused("contexts:\n  lab: http://x\n",
	                      "f:2:8: a context is lines such as 'server: http://HOST:PORT'");
	config_assert_refused("contexts:\n  lab: {server: a, server: b}\n",
	                      "f:2:20: this is said twice: remove one");
	config_assert_refused("contexts:\n  lab: {}\n  lab: {}\n",
	                      "f:3:3: there is a context of this name already");
	config_assert_refused("contexts: [a]\n",
	                      "f:1:11: contexts are names, with their settings below each");
	config_assert_refused("- a\n", "f:1:1: this file has current_context and contexts");
	config_assert_refused("contexts: {a\n",
	                      "f:2:1: this is not YAML: did not find expected ',' or '}'");
}

static void what_is_written_is_read_again(void **state)
{
	(void)state;
	struct config config = { 0 }, again = { 0 };
	struct error error = { 0 };
	struct buffer text = { 0 };
	struct context *context = config_make(&config, "a: \"b\"\n#");
	context->server = "http://x";
	context->token = "gst_\\";
	config_make(&config, "empty");
	config.current = "no";
	config_print(&config, &text);
	assert_true(config_parse(&again, "f", text.data, text.size, &error));
	assert_string_equal(again.current, "no");
	assert_int_equal(again.count, 2);
	assert_string_equal(config_find(&again, "a: \"b\"\n#")->token, "gst_\\");
	buffer_free(&text);
	config_free(&config);
	config_free(&again);
}

/* A directory of the test's own, and a file in it. */
static void in_directory(char directory[40], char path[100])
{
	strcpy(directory, "/tmp/config_test_XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(path, 100, "%.39s/deep/config.yaml", directory);
}

static void remove_all(const char *directory, const char *path)
{
	char deep[200];
	snprintf(deep, sizeof(deep), "%s/deep", directory);
	unlink(path);
	rmdir(deep);
	rmdir(directory);
}

static void a_file_with_a_token_is_for_its_owner_alone(void **state)
{
	(void)state;
	char directory[40], path[100];
	struct config config = { 0 }, again = { 0 };
	struct error error = { 0 };
	struct stat status;
	in_directory(directory, path);
	config_make(&config, "lab")->token = "gst_secret";
	assert_true(config_save(&config, path, &error));
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_true(config_load(&again, path, &error));
	config_free(&again);

	assert_int_equal(chmod(path, 0644), 0);
	assert_false(config_load(&again, path, &error));
	assert_int_equal(error.code, ERROR_FORBIDDEN);
	assert_non_null(strstr(error.text, "chmod 600"));
	assert_null(strstr(error.text, "secret"));
	config_free(&again);
	config_free(&config);
	remove_all(directory, path);
}

static void a_token_is_read_from_a_file_that_nobody_else_can_read(void **state)
{
	(void)state;
	char directory[40], path[100];
	struct arena arena = { 0 };
	struct error error = { 0 };
	in_directory(directory, path);
	assert_true(config_write_private(path, "gst_abc\n", 8, &error));
	assert_string_equal(config_read_token(path, &arena, &error), "gst_abc");
	assert_int_equal(chmod(path, 0640), 0);
	assert_null(config_read_token(path, &arena, &error));
	assert_non_null(strstr(error.text, "chmod 600"));
	assert_true(config_write_private(path, "\n", 1, &error));
	assert_null(config_read_token(path, &arena, &error));
	unlink(path);
	assert_null(config_read_token(path, &arena, &error));
	arena_free(&arena);
	remove_all(directory, path);
}

static void a_file_that_is_not_there_is_empty(void **state)
{
	(void)state;
	struct config config = { 0 };
	struct error error = { 0 };
	assert_true(config_load(&config, "/nonexistent/config.yaml", &error));
	assert_int_equal(config.count, 0);
	config_free(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contexts_are_read),
		cmocka_unit_test(an_empty_file_has_no_contexts),
		cmocka_unit_test(what_is_wrong_is_told_with_its_place),
		cmocka_unit_test(what_is_written_is_read_again),
		cmocka_unit_test(a_file_with_a_token_is_for_its_owner_alone),
		cmocka_unit_test(a_token_is_read_from_a_file_that_nobody_else_can_read),
		cmocka_unit_test(a_file_that_is_not_there_is_empty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
