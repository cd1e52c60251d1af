/* error_test.c - tests of errors as values and of panic */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../error.h"

static void a_set_error_has_its_code_and_its_sentence(void **state)
{
	(void)state;
	struct error error = { 0 };
	assert_false(error_set(&error, ERROR_FORBIDDEN, "tenant %s asks for %d GPUs", "t-7", 8));
	assert_int_equal(error.code, ERROR_FORBIDDEN);
	assert_string_equal(error.text, "tenant t-7 asks for 8 GPUs");
}

static void setting_no_error_at_all_is_allowed(void **state)
{
	(void)state;
	assert_false(error_set(NULL, ERROR_INVALID, "nobody wants to know %d", 1));
}

static void an_error_can_be_put_into_a_longer_sentence_in_place(void **state)
{
	(void)state;
	struct error error = { 0 };
	error_set(&error, ERROR_INVALID, "gpu_count is -1");
	error_set(&error, error.code, "task 3: %s", error.text);
	assert_string_equal(error.text, "task 3: gpu_count is -1");
}

static void a_cleared_error_says_nothing(void **state)
{
	(void)state;
	struct error error = { 0 };
	error_set(&error, ERROR_FULL, "the queue has 5 jobs");
	error_clear(&error);
	assert_int_equal(error.code, ERROR_NONE);
	assert_string_equal(error.text, "");
}

static void text_that_is_too_long_is_cut(void **state)
{
	(void)state;
	struct error error = { 0 };
	char name[ERROR_TEXT_MAX * 2];
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	error_set(&error, ERROR_INVALID, "%s", name);
	assert_int_equal(strlen(error.text), ERROR_TEXT_MAX - 1);
}

static void text_is_cut_between_characters(void **state)
{
	(void)state;
	struct error error = { 0 };
	char name[ERROR_TEXT_MAX];
	memset(name, 'x', sizeof(name));
	/* The last byte that fits is the first of two. */
	name[ERROR_TEXT_MAX - 2] = '\0';
	error_set(&error, ERROR_INVALID, "%s\xc3\xa4 and more", name);
	assert_string_equal(error.text, name);
}

static void every_code_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (int a = ERROR_NONE; a <= ERROR_UNAVAILABLE; a++) {
		const char *name = error_code_name((enum error_code)a);
		assert_string_not_equal(name, "unknown");
		for (int b = ERROR_NONE; b < a; b++)
			assert_string_not_equal(name, error_code_name((enum error_code)b));
	}
	assert_string_equal(error_code_name(ERROR_NOT_FOUND), "not_found");
}

/* Breaks an invariant in a child process; gives its exit status and stderr. */
static int run_broken(char *text, size_t size)
{
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct rlimit none = { 0 };
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL);
		dup2(ends[1], STDERR_FILENO);
		volatile int one = 1;
		INVARIANT(one == 2);
		_exit(0);
	}
	close(ends[1]);
	size_t used = 0;
	ssize_t got;
	while ((got = read(ends[0], text + used, size - 1 - used)) > 0)
		used += (size_t)got;
	text[used] = '\0';
	close(ends[0]);
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void a_broken_invariant_ends_the_program_and_says_which(void **state)
{
	(void)state;
	char text[512];
	int status = run_broken(text, sizeof(text));
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	assert_non_null(strstr(text, "error_test.c"));
	assert_non_null(strstr(text, "broken invariant: one == 2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_set_error_has_its_code_and_its_sentence),
		cmocka_unit_test(setting_no_error_at_all_is_allowed),
		cmocka_unit_test(an_error_can_be_put_into_a_longer_sentence_in_place),
		cmocka_unit_test(a_cleared_error_says_nothing),
		cmocka_unit_test(text_that_is_too_long_is_cut),
		cmocka_unit_test(text_is_cut_between_characters),
		cmocka_unit_test(every_code_has_a_name_of_its_own),
		cmocka_unit_test(a_broken_invariant_ends_the_program_and_says_which),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
