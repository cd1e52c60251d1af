/* loop_test.c - tests of timers, and of a loop that other threads post to */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "wire/connection.h"
#include "wire/wire.h"

static int fired[4];
static struct timer timers_of_test[4];

static void note_firing(struct timer *timer)
{
	fired[timer - timers_of_test]++;
}

static void a_timer_fires_once_when_it_is_due(void **state)
{
	(void)state;
	struct timers timers = timers_new();
	for (int i = 0; i < 4; i++) {
		timers_of_test[i] = TIMER(note_firing);
		fired[i] = 0;
	}
	timers_set(&timers, &timers_of_test[0], 100);
	timers_set(&timers, &timers_of_test[1], 50);
	timers_set(&timers, &timers_of_test[2], 70);
	timers_set(&timers, &timers_of_test[2], 200); /* later than it was */
	timers_set(&timers, &timers_of_test[3], 300);
	timers_set(&timers, &timers_of_test[3], 40); /* earlier than it was */
	assert_int_equal(timers_next_ms(&timers), 40);
	timers_run(&timers, 100);
	assert_true(fired[0] == 1 && fired[1] == 1 && fired[2] == 0 && fired[3] == 1);
	assert_int_equal(timers_next_ms(&timers), 200);
	timers_clear(&timers, &timers_of_test[2]);
	timers_run(&timers, 1000);
	assert_int_equal(fired[2], 0);
	assert_true(timers_next_ms(&timers) == INT64_MAX);
	timers_free(&timers);
}

enum { THREADS = 4, POSTS = 20000, GRACE_MS = 1000 };

/* Each thread posts numbers; the loop checks that they come in order. */
struct numbered {
	struct post post;
	int thread, number;
};
static struct {
	struct loop *loop;
	int next[THREADS];
	int left;
} counting;

static void count_post(struct post *post)
{
	struct numbered *numbered = (struct numbered *)post;
	assert_int_equal(counting.next[numbered->thread]++, numbered->number);
	free(numbered);
	if (--counting.left == 0)
		loop_stop(counting.loop, GRACE_MS);
}

static void *post_numbers(void *argument)
{
	int thread = (int)(intptr_t)argument;
	for (int i = 0; i < POSTS; i++) {
		struct numbered *numbered = NEW(struct numbered);
		*numbered = (struct numbered){ { .run = count_post }, thread, i };
		loop_post(counting.loop, &numbered->post);
	}
	return NULL;
}

static void posts_of_many_threads_all_run_each_threads_in_order(void **state)
{
	(void)state;
	struct limits limits = limits_default();
	pthread_t threads[THREADS];
	counting.loop = loop_new(&limits);
	counting.left = THREADS * POSTS;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, post_numbers, (void *)(intptr_t)i);
	loop_run(counting.loop);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(counting.next[i], POSTS);
	}
	loop_free(counting.loop);
}

/* A worker that reads the body of an exchange and posts the answer. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct exchange *waiting[64];
	int count;
	bool is_over;
} worker = { .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER };

struct reply {
	struct post post;
	struct exchange *exchange;
	size_t sum;
};

static void give_reply(struct post *post)
{
	struct reply *reply = (struct reply *)post;
	char text[32];
	snprintf(text, sizeof(text), "%zu", reply->sum);
	exchange_respond(reply->exchange, &(struct response){ .body = text_of(text) });
	free(reply);
}

static void *loop_work(void *nothing)
{
	(void)nothing;
	pthread_mutex_lock(&worker.lock);
	while (!worker.is_over || worker.count > 0) {
		if (worker.count == 0) {
			pthread_cond_wait(&worker.wake, &worker.lock);
			continue;
		}
		struct exchange *exchange = worker.waiting[--worker.count];
		pthread_mutex_unlock(&worker.lock);
		struct reply *reply = NEW(struct reply);
		*reply = (struct reply){ { .run = give_reply }, exchange, 0 };
		for (size_t i = 0; i < exchange->body.size; i++)
			reply->sum += (size_t)(exchange->body.data[i] - '0');
		loop_post(exchange->loop, &reply->post);
		pthread_mutex_lock(&worker.lock);
	}
	pthread_mutex_unlock(&worker.lock);
	return NULL;
}

static void hand_over(struct exchange *exchange)
{
	pthread_mutex_lock(&worker.lock);
	worker.waiting[worker.count++] = exchange;
	pthread_cond_signal(&worker.wake);
	pthread_mutex_unlock(&worker.lock);
}

static const struct handler worker_handler = { .request = hand_over };

static void *run_loop(void *loop)
{
	loop_run(loop);
	return NULL;
}

struct opening {
	struct post post;
	struct loop *loop;
	int socket;
};

static void open_connection(struct post *post)
{
	struct opening *opening = (struct opening *)post;
	connection_open(opening->loop, opening->socket,
	                &(struct reception){ .handler = &worker_handler });
}

static void stop_loop(struct post *post)
{
	loop_stop(((struct opening *)post)->loop, GRACE_MS);
}

/* Asks on a socket and waits for the answer. */
static void loop_ask(int client)
{
	static const char request[] =
	    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n12345";
	char answer[1000] = "";
	size_t size = 0;
	assert_int_equal(write(client, request, sizeof(request) - 1), sizeof(request) - 1);
	while (!strstr(answer, "\r\n\r\n15")) {
		ssize_t part = read(client, answer + size, sizeof(answer) - 1 - size);
		assert_true(part > 0);
		size += (size_t)part;
	}
}

static void an_exchange_is_read_and_answered_by_another_thread(void **state)
{
	(void)state;
	struct limits limits = limits_default();
	struct loop *loop = loop_new(&limits);
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	struct opening opening = { { .run = open_connection }, loop, ends[1] };
	struct opening stopping = { { .run = stop_loop }, loop, -1 };
	pthread_t threads[2];
	pthread_create(&threads[0], NULL, run_loop, loop);
	pthread_create(&threads[1], NULL, loop_work, NULL);
	loop_post(loop, &opening.post);
	for (int i = 0; i < 300; i++)
		loop_ask(ends[0]);
	loop_post(loop, &stopping.post);
	pthread_join(threads[0], NULL);
	pthread_mutex_lock(&worker.lock);
	worker.is_over = true;
	pthread_cond_signal(&worker.wake);
	pthread_mutex_unlock(&worker.lock);
	pthread_join(threads[1], NULL);
	close(ends[0]);
	loop_free(loop);
}

static void a_loop_that_never_ran_can_be_freed(void **state)
{
	(void)state;
	struct limits limits = limits_default();
	struct error error = { 0 };
	struct loop *loop = loop_new(&limits);
	struct listener *listener = listener_open(
	    loop, &(struct listener_options){ .address = "127.0.0.1", .handler = &worker_handler },
	    &error);
	assert_non_null(listener);
	assert_int_not_equal(listener_port(listener), 0);
	loop_free(loop);
}

static void an_address_that_is_none_or_taken_is_refused_with_a_reason(void **state)
{
	(void)state;
	struct limits limits = limits_default();
	struct error error = { 0 };
	struct loop *loop = loop_new(&limits);
	struct listener_options options = { .address = "nowhere", .handler = &worker_handler };
	assert_null(listener_open(loop, &options, &error));
	assert_string_equal(error.text, "'nowhere' is not an IPv4 or IPv6 address to listen on");
	options.address = "127.0.0.1";
	struct listener *first = listener_open(loop, &options, &error);
	options.port = listener_port(first);
	assert_null(listener_open(loop, &options, &error));
	assert_int_equal(error.code, ERROR_CONFLICT);
	loop_free(loop);
}

static void loops_may_share_a_port(void **state)
{
	(void)state;
	struct limits limits = limits_default();
	struct error error = { 0 };
	struct loop *one = loop_new(&limits), *other = loop_new(&limits);
	struct listener_options options = { .address = "127.0.0.1",
		                            .handler = &worker_handler,
		                            .shared_port = true };
	options.port = listener_port(listener_open(one, &options, &error));
	assert_non_null(listener_open(other, &options, &error));
	loop_free(one);
	loop_free(other);
}

static void limits_that_make_no_sense_are_named(void **state)
{
	(void)state;
	struct limits limits = limits_default();
	struct error error = { 0 };
	assert_true(limits_check(&limits, &error));
	limits.idle_ms = -5;
	assert_false(limits_check(&limits, &error));
	assert_non_null(strstr(error.text, "idle_ms"));
	limits = limits_default();
	limits.buffered_bytes = limits.body_bytes - 1;
	assert_false(limits_check(&limits, &error));
	assert_non_null(strstr(error.text, "buffered_bytes"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_timer_fires_once_when_it_is_due),
		cmocka_unit_test(posts_of_many_threads_all_run_each_threads_in_order),
		cmocka_unit_test(an_exchange_is_read_and_answered_by_another_thread),
		cmocka_unit_test(a_loop_that_never_ran_can_be_freed),
		cmocka_unit_test(an_address_that_is_none_or_taken_is_refused_with_a_reason),
		cmocka_unit_test(loops_may_share_a_port),
		cmocka_unit_test(limits_that_make_no_sense_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
