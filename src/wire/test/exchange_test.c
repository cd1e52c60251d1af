/* exchange_test.c - tests of exchanges over HTTP/1.1: order, streams, and clients that go */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pair.h"
#include "wire/loop_state.h"

/* What was asked, and how often something happened. */
static struct {
	struct exchange *exchanges[16];
	int count, gone, writable;
} seen;

static void exchange_keep(struct exchange *exchange)
{
	seen.exchanges[seen.count++] = exchange;
}

static void note_gone(struct exchange *exchange)
{
	(void)exchange;
	seen.gone++;
}

static void note_writable(struct exchange *exchange)
{
	(void)exchange;
	seen.writable++;
}

static const struct exchange_events keep_events = { .gone = note_gone, .writable = note_writable };

static void watch(struct exchange *exchange)
{
	exchange->events = &keep_events;
}

static const struct handler keeper = { .head = watch, .request = exchange_keep };

static int exchange_prepare(void **state)
{
	static struct pair pair;
	pair = pair_new(NULL);
	memset(&seen, 0, sizeof(seen));
	pair_connect(&pair, &keeper);
	*state = &pair;
	return 0;
}

static int exchange_tear_down(void **state)
{
	pair_free(*state);
	return 0;
}

static void respond(struct exchange *exchange, const char *body)
{
	exchange_respond(exchange, &(struct response){ .body = text_of(body) });
}

/* True if the client has been sent this. */
static bool has_answer(struct pair *pair, const char *text)
{
	buffer_bytes(&pair->answers, "", 1);
	pair->answers.size--;
	return strstr(pair->answers.data, text) != NULL;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"

static void answers_wait_for_those_before_them(void **state)
{
	struct pair *pair = *state;
	pair_send(pair, TEXT(GET("/1") GET("/2") GET("/3")));
	assert_int_equal(seen.count, 3);
	respond(seen.exchanges[2], "third");
	respond(seen.exchanges[1], "second");
	pair_run(pair);
	assert_int_equal(pair->answers.size, 0);
	respond(seen.exchanges[0], "first");
	pair_run(pair);
	assert_true(has_answer(pair, "third"));
	const char *all = pair->answers.data;
	assert_true(strstr(all, "first") < strstr(all, "second"));
	assert_true(strstr(all, "second") < strstr(all, "third"));
}

static void a_stream_that_is_not_in_turn_is_held_back(void **state)
{
	struct pair *pair = *state;
	pair_send(pair, TEXT(GET("/1") GET("/2")));
	exchange_begin(seen.exchanges[1], &(struct response){ 0 });
	assert_true(exchange_write(seen.exchanges[1], TEXT("part one")));
	pair_run(pair);
	assert_int_equal(pair->answers.size, 0);
	respond(seen.exchanges[0], "first");
	pair_run(pair);
	assert_true(has_answer(pair, "8\r\npart one\r\n"));
	assert_true(exchange_write(seen.exchanges[1], TEXT("two")));
	exchange_end(seen.exchanges[1]);
	pair_run(pair);
	assert_true(has_answer(pair, "3\r\ntwo\r\n0\r\n\r\n"));
}

static void a_part_is_not_taken_when_too_much_waits_and_that_is_told(void **state)
{
	struct pair *pair = *state;
	static char part[64 << 10];
	memset(part, 'x', sizeof(part));
	pair_send(pair, TEXT(GET("/1")));
	exchange_begin(seen.exchanges[0], &(struct response){ 0 });
	size_t taken = 0;
	while (exchange_write(seen.exchanges[0], (struct text){ part, sizeof(part) }))
		taken += sizeof(part);
	assert_in_range(taken, 1 << 20, (1 << 20) + 2 * sizeof(part));
	assert_int_equal(seen.writable, 0);
	for (int i = 0; i < 100 && seen.writable == 0; i++)
		pair_run(pair);
	assert_int_equal(seen.writable, 1);
	exchange_end(seen.exchanges[0]);
	for (int i = 0; i < 100; i++)
		pair_run(pair);
	assert_true(pair->answers.size > taken);
}

static void a_client_that_goes_is_told_once_and_its_exchange_stays(void **state)
{
	struct pair *pair = *state;
	pair_send(pair, TEXT("POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"));
	exchange_begin(seen.exchanges[0], &(struct response){ 0 });
	pair_shut(pair);
	assert_int_equal(seen.gone, 1);
	assert_true(exchange_is_gone(seen.exchanges[0]));
	assert_string_equal(seen.exchanges[0]->body.data, "body");
	assert_true(exchange_write(seen.exchanges[0], TEXT("nobody reads this")));
	exchange_end(seen.exchanges[0]);
	assert_int_equal(seen.gone, 1);
	assert_int_equal(loop_counters(pair->loop).exchanges, 0);
}

static void a_client_that_goes_before_its_body_is_told_and_forgotten(void **state)
{
	struct pair *pair = *state;
	pair_send(pair, TEXT("POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbo"));
	pair_shut(pair);
	assert_int_equal(seen.gone, 1);
	assert_int_equal(seen.count, 0);
	assert_int_equal(loop_counters(pair->loop).exchanges, 0);
}

static void a_whole_answer_reaches_a_client_that_closed_its_side(void **state)
{
	struct pair *pair = *state;
	pair_send(pair, TEXT(GET("/1")));
	pair_shut(pair);
	assert_int_equal(seen.gone, 0);
	respond(seen.exchanges[0], "still there");
	pair_run(pair);
	assert_true(has_answer(pair, "still there"));
	assert_true(pair->is_ended);
}

static void a_line_end_in_a_header_becomes_a_space(void **state)
{
	struct pair *pair = *state;
	struct header header = { TEXT("x-name"), TEXT("a\r\nx-evil: b") };
	pair_send(pair, TEXT(GET("/1")));
	exchange_respond(seen.exchanges[0],
	                 &(struct response){ .headers = &header, .header_count = 1 });
	pair_run(pair);
	assert_true(has_answer(pair, "x-name: a  x-evil: b\r\n"));
}

static void answers_without_a_body_have_no_length(void **state)
{
	struct pair *pair = *state;
	pair_send(pair, TEXT(GET("/1") GET("/2")));
	exchange_respond(seen.exchanges[0], &(struct response){ .status = 204 });
	exchange_respond(seen.exchanges[1],
	                 &(struct response){ .status = 304, .body = TEXT("not sent") });
	pair_run(pair);
	assert_false(has_answer(pair, "content-length"));
	assert_false(has_answer(pair, "not sent"));
	assert_true(has_answer(pair, "HTTP/1.1 304 Not Modified\r\n"));
}

static void shared_bodies_are_given_back_even_if_nobody_reads_them(void **state)
{
	struct pair *pair = *state;
	struct shared *shared = shared_reserve(100000);
	memset(shared->data, 'y', shared->size);
	pair_send(pair, TEXT(GET("/1") GET("/2")));
	exchange_respond(seen.exchanges[1], &(struct response){ .shared = shared_hold(shared) });
	seen.exchanges[0]->hangup_is_gone = true;
	pair_shut(pair);
	assert_true(exchange_is_gone(seen.exchanges[0]));
	exchange_respond(seen.exchanges[0], &(struct response){ .shared = shared_hold(shared) });
	pair_run(pair);
	assert_int_equal(atomic_load(&shared->holders), 1);
	shared_drop(shared);
}

static void a_steady_state_keeps_its_memory(void **state)
{
	struct pair *pair = *state;
	for (int i = 0; i < 100; i++) {
		seen.count = 0;
		pair_send(pair, TEXT(GET("/1") GET("/2") GET("/3")));
		for (int j = 0; j < 3; j++)
			respond(seen.exchanges[j], "answer");
		pair_run(pair);
	}
	assert_int_equal(pair->loop->spare_exchange_count, 3);
	assert_true(pair->loop->blocks.free_count <= 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, exchange_prepare, exchange_tear_down)

/* Afterwards pair_free checks each time that nothing is left. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(answers_wait_for_those_before_them),
		TEST(a_stream_that_is_not_in_turn_is_held_back),
		TEST(a_part_is_not_taken_when_too_much_waits_and_that_is_told),
		TEST(a_client_that_goes_is_told_once_and_its_exchange_stays),
		TEST(a_client_that_goes_before_its_body_is_told_and_forgotten),
		TEST(a_whole_answer_reaches_a_client_that_closed_its_side),
		TEST(a_line_end_in_a_header_becomes_a_space),
		TEST(answers_without_a_body_have_no_length),
		TEST(shared_bodies_are_given_back_even_if_nobody_reads_them),
		TEST(a_steady_state_keeps_its_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
