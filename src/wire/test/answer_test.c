/* answer_test.c - tests of answers over HTTP/2 to calls that have ended meanwhile */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "h2_client.h"
#include "wire/connection.h"
#include "wire/grpc.h"

/* Of a handler that counts what it was shown: each head must be followed by a request or by
 * `gone`, never by both or neither. */
static struct {
	struct exchange *last;
	int heads, requests, gone, messages;
	bool streams;
} seen;

static void note_gone(struct exchange *exchange)
{
	seen.gone++;
	/* A stream is the handler's from its head on, so it has to end it. */
	if (seen.streams)
		grpc_finish(exchange, GRPC_CANCELLED, NULL);
}

static void note_message(struct exchange *exchange, struct text message)
{
	(void)exchange;
	(void)message;
	seen.messages++;
}

static const struct exchange_events counting = { .gone = note_gone, .body = note_message };

static void answer_on_head(struct exchange *exchange)
{
	seen.heads++;
	seen.last = exchange;
	exchange->events = &counting;
	if (seen.streams)
		grpc_stream(exchange);
}

static void answer_on_request(struct exchange *exchange)
{
	seen.requests++;
	seen.last = exchange;
}

static const struct handler handler = { .head = answer_on_head, .request = answer_on_request };

static struct pair pair;
static struct h2_client *client;

static int answer_set_up(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof(seen));
	pair = pair_new(NULL);
	client = h2_client_new(&pair, &handler, 65535);
	return 0;
}

/* pair_free checks that no exchange is left. */
static int answer_tear_down(void **state)
{
	(void)state;
	h2_client_free(client);
	pair_free(&pair);
	return 0;
}

/* A message of four bytes with its prefix. */
#define MESSAGE TEXT("\0\0\0\0\4test")

static int32_t call(void)
{
	return h2_client_request(
	    client, &(struct h2_request){ .path = "/s/m", .is_grpc = true, .body = MESSAGE });
}

static void answer_expire(struct exchange *exchange)
{
	grpc_expire(exchange_state(exchange));
	h2_client_run(client);
}

/* Every way to answer a unary call. */
static void by_reply(struct exchange *exchange)
{
	grpc_reply(exchange, TEXT("answer"));
}
static void by_finish(struct exchange *exchange)
{
	grpc_finish(exchange, GRPC_OK, NULL);
}
static void by_abort(struct exchange *exchange)
{
	exchange_abort(exchange);
}
static void by_refuse(struct exchange *exchange)
{
	exchange_refuse(exchange, 404, "x", "no");
}
static void by_respond(struct exchange *exchange)
{
	struct shared *body = shared_new("0123456789", 10);
	exchange_respond(exchange, &(struct response){ .shared = body });
}
static void by_parts(struct exchange *exchange)
{
	exchange_begin(exchange, &(struct response){ 0 });
	assert_true(exchange_write(exchange, TEXT("part")));
	assert_true(exchange_share(exchange, shared_new("part", 4)));
	exchange_end(exchange);
}
static void by_messages(struct exchange *exchange)
{
	assert_true(grpc_send(exchange, TEXT("one")));
	assert_true(grpc_send(exchange, TEXT("two")));
	grpc_finish(exchange, GRPC_OK, NULL);
}
static void (*const answers[])(struct exchange *exchange) = {
	by_reply, by_finish, by_abort, by_refuse, by_respond, by_parts, by_messages,
};
enum { ANSWERS = sizeof(answers) / sizeof(answers[0]) };

static void an_answer_after_the_deadline_is_dropped(void **state)
{
	(void)state;
	for (int i = 0; i < ANSWERS; i++) {
		int32_t id = call();
		assert_int_equal(seen.requests, i + 1);
		answer_expire(seen.last);
		assert_int_equal(h2_client_stream(client, id)->grpc_status, GRPC_DEADLINE_EXCEEDED);
		assert_int_equal(seen.gone, i + 1);
		answers[i](seen.last);
		h2_client_run(client);
		assert_int_equal(h2_client_stream(client, id)->grpc_status, GRPC_DEADLINE_EXCEEDED);
		assert_int_equal(loop_counters(pair.loop).exchanges, 0);
	}
}

static void an_answer_after_a_reset_is_dropped(void **state)
{
	(void)state;
	for (int i = 0; i < ANSWERS; i++) {
		h2_client_reset(client, call());
		assert_int_equal(seen.gone, i + 1);
		answers[i](seen.last);
		h2_client_run(client);
		assert_int_equal(loop_counters(pair.loop).exchanges, 0);
	}
}

static void an_answer_after_the_connection_is_dropped(void **state)
{
	(void)state;
	for (int i = 0; i < ANSWERS; i++) {
		call();
		pair_hang_up(&pair);
		assert_int_equal(seen.gone, i + 1);
		answers[i](seen.last);
		pair_close(&pair);
		h2_client_free(client);
		client = h2_client_new(&pair, &handler, 65535);
	}
}

static void a_deadline_after_an_answer_changes_nothing(void **state)
{
	(void)state;
	int32_t id = call();
	struct exchange *exchange = seen.last;
	grpc_send(exchange, TEXT("one"));
	answer_expire(exchange);
	assert_int_equal(h2_client_stream(client, id)->grpc_status, GRPC_DEADLINE_EXCEEDED);
	assert_true(grpc_send(exchange, TEXT("two")));
	grpc_finish(exchange, GRPC_OK, NULL);
	h2_client_run(client);
	assert_int_equal(h2_client_stream(client, id)->body.size, 8);
}

/* Bodies that are no unary call. */
static const struct text malformed[] = {
	{ "", 0 },                           /* no message */
	{ "\0\0\0\0", 4 },                   /* half a prefix */
	{ "\2\0\0\0\0", 5 },                 /* an unknown flag */
	{ "\1\0\0\0\0", 5 },                 /* compressed in an unknown way */
	{ "\0\0\0\0\4ab", 7 },               /* half a message */
	{ "\0\0\0\0\0\0\0\0\0\0", 10 },      /* two messages */
	{ "\0\377\377\377\377\0\0\0\0", 9 }, /* too large */
};
enum { MALFORMED = sizeof(malformed) / sizeof(malformed[0]) };

static void a_malformed_unary_call_is_told_as_gone_once(void **state)
{
	(void)state;
	for (int i = 0; i < 300; i++) {
		int32_t id = h2_client_request(
		    client, &(struct h2_request){ .path = "/s/m",
		                                  .is_grpc = true,
		                                  .body = malformed[i % MALFORMED] });
		assert_true(h2_client_stream(client, id)->grpc_status > 0);
		assert_int_equal(seen.heads, i + 1);
		assert_int_equal(seen.gone, i + 1);
	}
	assert_int_equal(seen.requests, 0);
	assert_int_equal(loop_counters(pair.loop).exchanges, 0);
}

static void a_malformed_stream_is_told_as_gone_and_ended_by_its_handler(void **state)
{
	(void)state;
	seen.streams = true;
	for (int i = 1; i < MALFORMED; i++) {
		if (malformed[i].size == 10) /* two messages are fine here */
			continue;
		int before = seen.gone;
		int32_t id = h2_client_request(
		    client,
		    &(struct h2_request){ .path = "/s/m", .is_grpc = true, .body = malformed[i] });
		assert_true(h2_client_stream(client, id)->grpc_status > 0);
		assert_int_equal(seen.gone, before + 1);
		assert_int_equal(loop_counters(pair.loop).exchanges, 0);
	}
}

static void a_body_over_its_limit_is_told_as_gone_once(void **state)
{
	(void)state;
	static char large[5 << 20];
	int32_t id = h2_client_request(
	    client, &(struct h2_request){
			.path = "/s/m", .is_grpc = true, .body = { large, sizeof(large) } });
	for (int i = 0; i < 100 && seen.gone == 0; i++)
		h2_client_run(client);
	assert_int_equal(seen.gone, 1);
	assert_int_equal(seen.requests, 0);
	assert_int_equal(h2_client_stream(client, id)->grpc_status, GRPC_RESOURCE_EXHAUSTED);
}

static void a_deadline_before_the_body_is_told_as_gone_once(void **state)
{
	(void)state;
	int32_t id = h2_client_request(
	    client, &(struct h2_request){ .path = "/s/m", .is_grpc = true, .is_open = true });
	assert_int_equal(seen.heads, 1);
	answer_expire(seen.last);
	assert_int_equal(seen.gone, 1);
	h2_client_send(client, id, MESSAGE, true);
	assert_int_equal(seen.requests, 0);
	assert_int_equal(seen.gone, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, answer_set_up, answer_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_answer_after_the_deadline_is_dropped),
		TEST(an_answer_after_a_reset_is_dropped),
		TEST(an_answer_after_the_connection_is_dropped),
		TEST(a_deadline_after_an_answer_changes_nothing),
		TEST(a_malformed_unary_call_is_told_as_gone_once),
		TEST(a_malformed_stream_is_told_as_gone_and_ended_by_its_handler),
		TEST(a_body_over_its_limit_is_told_as_gone_once),
		TEST(a_deadline_before_the_body_is_told_as_gone_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
