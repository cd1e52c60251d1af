/* log_test.c - lines of the log */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"

static FILE *file;

static int log_begin(void **state)
{
	(void)state;
	file = tmpfile();
	log_set_output(fileno(file));
	log_set_verbosity(LOG_INFO);
	return 0;
}

static int log_end(void **state)
{
	(void)state;
	log_set_output(STDERR_FILENO);
	fclose(file);
	return 0;
}

/* All that was written since the test began. */
static const char *written(void)
{
	static char text[65536];
	rewind(file);
	size_t size = fread(text, 1, sizeof(text) - 1, file);
	text[size] = '\0';
	return text;
}

static void expect_line(const char *expected)
{
	const char *line = written();
	const char *rest = strchr(line, ',');
	assert_non_null(rest);
	assert_string_equal(rest, expected);
}

static void a_line_has_time_level_message_and_fields(void **state)
{
	int year, month, day, hour, minute, second, milliseconds;
	char zone;
	(void)state;
	log_at(LOG_WARNING, "a node is away", LOG_TEXT("node", "n-1"), LOG_NUMBER("gpus", 8));
	assert_int_equal(sscanf(written(), "{\"time\":\"%4d-%2d-%2dT%2d:%2d:%2d.%3d%c\"", &year,
	                        &month, &day, &hour, &minute, &second, &milliseconds, &zone),
	                 8);
	assert_int_equal(zone, 'Z');
	expect_line(
	    ",\"level\":\"warning\",\"message\":\"a node is away\",\"node\":\"n-1\",\"gpus\":8}\n");
}

static int asked;
static const char *costly(void)
{
	asked++;
	return "x";
}

static void what_is_above_the_verbosity_is_not_even_evaluated(void **state)
{
	(void)state;
	log_at(LOG_DEBUG, "asked", LOG_TEXT("by", costly()));
	assert_string_equal(written(), "");
	assert_int_equal(asked, 0);
	log_set_verbosity(LOG_DEBUG);
	log_at(LOG_DEBUG, "asked", LOG_TEXT("by", costly()));
	assert_int_equal(asked, 1);
	expect_line(",\"level\":\"debug\",\"message\":\"asked\",\"by\":\"x\"}\n");
}

static void texts_are_escaped_and_what_is_not_utf8_is_replaced(void **state)
{
	(void)state;
	log_at(LOG_INFO, "a \"b\" \\ \n\t\x01",
	       LOG_TEXT("name", "\xc3\xa9 \xff\xe0\x80\x80 \xed\xa0\x80"));
	expect_line(",\"level\":\"info\",\"message\":\"a \\\"b\\\" \\\\ \\n\\u0009\\u0001\","
	            "\"name\":\"\xc3\xa9 \\ufffd\\ufffd\\ufffd\\ufffd "
	            "\\ufffd\\ufffd\\ufffd\"}\n");
}

static void fields_that_are_named_as_secrets_are_hidden(void **state)
{
	(void)state;
	log_at(LOG_INFO, "signed in", LOG_TEXT("Authorization", "Bearer x"),
	       LOG_TEXT("db_password", "x"), LOG_TEXT("api_token", "x"));
	expect_line(",\"level\":\"info\",\"message\":\"signed in\",\"Authorization\":\"hidden\","
	            "\"db_password\":\"hidden\",\"api_token\":\"hidden\"}\n");
}

static void long_texts_are_cut(void **state)
{
	char text[20000];
	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_at(LOG_INFO, text);
	assert_true(strlen(written()) < 9000);
	assert_non_null(strstr(written(), "aaa...\"}\n"));
}

static void each_line_of_a_text_is_a_line(void **state)
{
	const struct log_field field = LOG_NUMBER("job", 7);
	(void)state;
	log_set_verbosity(LOG_STEPS);
	log_write_lines(LOG_STEPS, "[IDLE_CHECK] one\n\n[GPU_SELECT] two\n", &field, 1);
	const char *second = strchr(written(), '\n') + 1;
	assert_non_null(strstr(written(), "\"message\":\"[IDLE_CHECK] one\",\"job\":7}\n"));
	assert_non_null(strstr(second, "\"message\":\"[GPU_SELECT] two\",\"job\":7}\n"));
	assert_null(strchr(strchr(second, '\n') + 1, '\n'));
}

static void *write_some(void *context)
{
	for (int i = 0; i < 100; i++)
		log_at(LOG_INFO, context);
	return NULL;
}

static void lines_of_many_threads_do_not_mix(void **state)
{
	pthread_t threads[4];
	int lines = 0;
	(void)state;
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, write_some, "a message of some length");
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	char *copy = strdup(written());
	for (char *line = strtok(copy, "\n"); line; line = strtok(NULL, "\n"), lines++)
		assert_string_equal(
		    strchr(line, ','),
		    ",\"level\":\"info\",\"message\":\"a message of some length\"}");
	assert_int_equal(lines, 400);
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_line_has_time_level_message_and_fields, log_begin,
		                                log_end),
		cmocka_unit_test_setup_teardown(what_is_above_the_verbosity_is_not_even_evaluated,
		                                log_begin, log_end),
		cmocka_unit_test_setup_teardown(texts_are_escaped_and_what_is_not_utf8_is_replaced,
		                                log_begin, log_end),
		cmocka_unit_test_setup_teardown(fields_that_are_named_as_secrets_are_hidden,
		                                log_begin, log_end),
		cmocka_unit_test_setup_teardown(long_texts_are_cut, log_begin, log_end),
		cmocka_unit_test_setup_teardown(each_line_of_a_text_is_a_line, log_begin, log_end),
		cmocka_unit_test_setup_teardown(lines_of_many_threads_do_not_mix, log_begin,
		                                log_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
