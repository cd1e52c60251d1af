/* writer_test.c - writes to one object keep their order; a lost answer is looked up */
#include "kube/writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "json/member.h"

struct told {
	struct writer writer;
	struct buffer text;
	bool again;
};

static bool tell(void *context, const struct write *write, enum outcome outcome,
                 const json_t *object, const char *reason)
{
	struct told *told = context;

	(void)reason;
	buffer_print(&told->text, "%s:%d%s ", write->object, outcome,
	             object ? member_text(object, "name") : "");
	return told->again;
}

static int setup(void **state)
{
	struct told *told = NEW(struct told);

	told->writer = (struct writer){ .sink = tell, .context = told, .flying_max = 3 };
	buffer_text(&told->text, "");
	*state = told;
	return 0;
}

static int teardown(void **state)
{
	struct told *told = *state;

	writer_free(&told->writer);
	buffer_free(&told->text);
	free(told);
	return 0;
}

static void writer_test_put(struct told *told, enum write_kind kind, const char *object)
{
	struct write *write = write_new(kind, object, "POST", memory_text("/x"), memory_text("{}"));

	write->look_path = kind == WRITE_BIND ? memory_text("/look") : NULL;
	writer_put(&told->writer, write);
}

static struct write *writer_test_next(struct told *told, int64_t now_ms)
{
	return writer_next(&told->writer, now_ms);
}

static void one_object_is_written_in_order_and_others_pass(void **state)
{
	struct told *told = *state;

	writer_test_put(told, WRITE_BIND, "a");
	writer_test_put(told, WRITE_DELETE, "a");
	writer_test_put(told, WRITE_BIND, "b");
	struct write *first = writer_test_next(told, 0), *second = writer_test_next(told, 0);
	assert_string_equal(first->object, "a");
	assert_string_equal(second->object, "b");
	assert_null(writer_test_next(told, 0));
	writer_answer(&told->writer, first, 201, 0, "{}", 0);
	assert_int_equal(writer_test_next(told, 0)->kind, WRITE_DELETE);
}

static void who_must_wait_lets_others_pass_and_comes_again(void **state)
{
	struct told *told = *state;

	writer_test_put(told, WRITE_BIND, "a");
	writer_test_put(told, WRITE_BIND, "b");
	writer_answer(&told->writer, writer_test_next(told, 0), 429, 2, "{}", 0);
	assert_string_equal(writer_test_next(told, 0)->object, "b");
	assert_null(writer_test_next(told, 1999));
	assert_string_equal(writer_test_next(told, 3000)->object, "a");
	assert_string_equal(told->text.data, "");
}

static void a_binding_without_an_answer_is_looked_at_before_it_is_tried_again(void **state)
{
	struct told *told = *state;

	writer_test_put(told, WRITE_BIND, "a");
	writer_answer(&told->writer, writer_test_next(told, 0), 0, 0, "timed out", 0);
	struct write *look = writer_test_next(told, 1000);
	assert_true(look->looks);
	/* Nor does a failed look say anything. */
	writer_answer(&told->writer, look, 503, 0, "{}", 1000);
	look = writer_test_next(told, 5000);
	assert_true(look->looks);
	told->again = true;
	writer_answer(&told->writer, look, 200, 0, "{\"name\":\"x\"}", 5000);
	struct write *again = writer_test_next(told, 60000);
	assert_false(again->looks);
	told->again = false;
	writer_answer(&told->writer, again, 201, 0, "{}", 60000);
	assert_int_equal(told->writer.count, 0);
	char *expected = NULL;
	struct buffer text = { 0 };
	buffer_print(&text, "a:%dx a:%d ", OUTCOME_LOOK, OUTCOME_WRITTEN);
	expected = text.data;
	assert_string_equal(told->text.data, expected);
	buffer_free(&text);
}

static void one_that_may_have_happened_is_not_dropped(void **state)
{
	struct told *told = *state;

	writer_test_put(told, WRITE_BIND, "a");
	writer_drop(&told->writer, "a", WRITE_BIND);
	assert_false(writer_has(&told->writer, "a", WRITE_BIND));
	writer_test_put(told, WRITE_BIND, "a");
	writer_answer(&told->writer, writer_test_next(told, 0), 0, 0, "timed out", 0);
	writer_drop(&told->writer, "a", WRITE_BIND);
	assert_true(writer_has(&told->writer, "a", WRITE_BIND));
}

static void a_newer_status_takes_the_place_of_one_that_did_not_leave(void **state)
{
	struct told *told = *state;

	writer_test_put(told, WRITE_STATUS, "a");
	writer_test_put(told, WRITE_STATUS, "a");
	assert_int_equal(told->writer.count, 1);
	struct write *flying = writer_test_next(told, 0);
	writer_test_put(told, WRITE_STATUS, "a");
	assert_int_equal(told->writer.count, 2);
	writer_answer(&told->writer, flying, 200, 0, "{}", 0);
	assert_non_null(writer_test_next(told, 0));
}

static void words_are_given_up_and_decisions_are_not(void **state)
{
	struct told *told = *state;
	int64_t now_ms = 0;

	writer_test_put(told, WRITE_STATUS, "s");
	writer_test_put(told, WRITE_EVICT, "e");
	for (int i = 0; i < 20; i++) {
		struct write *write;
		now_ms += 200000;
		while ((write = writer_test_next(told, now_ms)))
			writer_answer(&told->writer, write, 500, 0, "{}", now_ms);
	}
	assert_int_equal(told->writer.count, 1);
	assert_true(writer_has(&told->writer, "e", WRITE_EVICT));
}

static void no_more_fly_than_may(void **state)
{
	struct told *told = *state;
	char name[] = "a";

	for (; *name < 'f'; ++*name)
		writer_test_put(told, WRITE_BIND, name);
	for (int i = 0; i < 3; i++)
		assert_non_null(writer_test_next(told, 0));
	assert_null(writer_test_next(told, 0));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(one_object_is_written_in_order_and_others_pass),
		TEST(who_must_wait_lets_others_pass_and_comes_again),
		TEST(a_binding_without_an_answer_is_looked_at_before_it_is_tried_again),
		TEST(one_that_may_have_happened_is_not_dropped),
		TEST(a_newer_status_takes_the_place_of_one_that_did_not_leave),
		TEST(words_are_given_up_and_decisions_are_not),
		TEST(no_more_fly_than_may),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
