/* courier_test.c - tests of deliveries: their order, failed tries, and receivers that hang */
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

#include "api/notify/courier.h"
#include "base/clock.h"
#include "base/memory.h"

enum { PARCELS = 200 };

/* For what follows: the courier's threads change it too. Never destroyed, since a thread may be
 * left behind. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;

/* What was tried and what came of it, in order. */
static struct {
	struct loop *loop;
	struct courier *courier;
	bool is_open; /* the receiver "hanging" answers */
	int64_t delivered[2 * PARCELS];
	int delivered_count, tries, over, failed, expected;
	enum error_code last_error;
} seen;

static bool courier_deliver(void *context, const struct parcel *parcel, struct error *error)
{
	(void)context;
	pthread_mutex_lock(&lock);
	seen.tries++;
	while (strcmp(parcel->webhook, "hanging") == 0 && !seen.is_open)
		pthread_cond_wait(&opened, &lock);
	pthread_mutex_unlock(&lock);
	/* As one that does not answer, to somebody who looks whether to wait on. */
	while (
	    strcmp(parcel->webhook, "silent") == 0 &&
	    (atomic_load(parcel->end_ms) == 0 || clock_steady_ms() < atomic_load(parcel->end_ms)))
		usleep(1000);
	pthread_mutex_lock(&lock);
	bool ok = strcmp(parcel->webhook, "never") != 0 && strcmp(parcel->webhook, "silent") != 0 &&
	          (strcmp(parcel->webhook, "third") != 0 || parcel->tries == 2);
	if (ok)
		seen.delivered[seen.delivered_count++] = parcel->number;
	if (strcmp(parcel->webhook, "hanging") == 0)
		pthread_cond_broadcast(&opened);
	if (parcel->number == PARCELS && strcmp(parcel->webhook, "swift") == 0) {
		seen.is_open = true;
		pthread_cond_broadcast(&opened);
	}
	pthread_mutex_unlock(&lock);
	if (ok)
		return true;
	return error_set(error, parcel->subject ? ERROR_NOT_FOUND : ERROR_UNAVAILABLE,
	                 "it is away");
}

static void on_over(void *context, struct parcel *parcel, const struct error *error)
{
	(void)context;
	seen.failed += error != NULL;
	if (error)
		seen.last_error = error->code;
	parcel_free(parcel);
	if (++seen.over == seen.expected)
		loop_stop(seen.loop, 0);
}

static int courier_set_up(void **state)
{
	struct limits limits = limits_default();
	(void)state;
	pthread_mutex_lock(&lock);
	memset(&seen, 0, sizeof(seen));
	pthread_mutex_unlock(&lock);
	seen.loop = loop_new(&limits);
	seen.courier = courier_start(&(struct courier_settings){ .loop = seen.loop,
	                                                         .tries_max = 4,
	                                                         .retry_ms = 1,
	                                                         .retry_ms_max = 4,
	                                                         .deliver = courier_deliver,
	                                                         .over = on_over });
	return 0;
}

static int courier_tear_down(void **state)
{
	(void)state;
	if (seen.courier)
		courier_stop(seen.courier);
	loop_free(seen.loop);
	return 0;
}

static void courier_write(const char *receiver, int64_t number, const char *subject)
{
	struct parcel *parcel = NEW(struct parcel);
	parcel->number = number;
	parcel->webhook = memory_text(receiver);
	parcel->event = memory_text("event");
	parcel->body = memory_text("{}");
	parcel->subject = subject ? memory_text(subject) : NULL;
	courier_put(seen.courier, parcel);
}

static void to_one_receiver_everything_comes_in_order(void **state)
{
	(void)state;
	seen.expected = PARCELS;
	for (int64_t i = 1; i <= PARCELS; i++)
		courier_write("third", i, NULL);
	loop_run(seen.loop);
	assert_int_equal(seen.delivered_count, PARCELS);
	for (int64_t i = 0; i < PARCELS; i++)
		assert_int_equal(seen.delivered[i], i + 1);
	assert_int_equal(seen.tries, 3 * PARCELS);
	assert_int_equal(courier_waiting(seen.courier), 0);
}

static void a_receiver_that_hangs_holds_up_nobody_else(void **state)
{
	(void)state;
	seen.expected = PARCELS + 1;
	courier_write("hanging", 1000, NULL);
	for (int64_t i = 1; i <= PARCELS; i++)
		courier_write("swift", i, NULL);
	loop_run(seen.loop);
	assert_int_equal(seen.delivered[PARCELS], 1000);
	assert_int_equal(seen.failed, 0);
}

static void what_never_arrives_is_given_up(void **state)
{
	(void)state;
	seen.expected = 2;
	courier_write("never", 1, NULL);
	courier_write("swift", 2, NULL);
	loop_run(seen.loop);
	assert_int_equal(seen.failed, 1);
	assert_int_equal(seen.last_error, ERROR_UNAVAILABLE);
	assert_int_equal(seen.tries, 4 + 1);
}

static void what_cannot_ever_arrive_is_not_tried_again(void **state)
{
	(void)state;
	seen.expected = 1;
	courier_write("never", 1, "for good");
	loop_run(seen.loop);
	assert_int_equal(seen.failed, 1);
	assert_int_equal(seen.tries, 1);
}

static void what_waits_when_it_stops_is_freed(void **state)
{
	(void)state;
	courier_write("never", 1, NULL);
	courier_write("never", 2, NULL);
	courier_write("other", 3, NULL);
}

/* Waits until a first try is under way. */
static void courier_await_try(void)
{
	int tries = 0;

	while (tries == 0) {
		usleep(1000);
		pthread_mutex_lock(&lock);
		tries = seen.tries;
		pthread_mutex_unlock(&lock);
	}
}

static void a_receiver_that_is_silent_holds_up_the_end_for_the_grace(void **state)
{
	(void)state;
	courier_write("silent", 1, NULL);
	courier_write("silent", 2, NULL);
	courier_await_try();
	int64_t began_ms = clock_steady_ms();
	courier_stop(seen.courier);
	assert_true(clock_steady_ms() - began_ms >= COURIER_GRACE_MS);
	assert_int_equal(seen.tries, 1);
	seen.courier = NULL;
}

/* A name lookup cannot be interrupted: its thread is left behind, with all that it may still use.
 */
static void a_try_that_cannot_be_given_up_is_left_behind(void **state)
{
	(void)state;
	courier_write("hanging", 1, NULL);
	courier_await_try();
	assert_false(courier_stop(seen.courier));
	seen.courier = NULL;
	pthread_mutex_lock(&lock);
	assert_int_equal(seen.delivered_count, 0);
	seen.is_open = true;
	pthread_cond_broadcast(&opened);
	while (seen.delivered_count == 0)
		pthread_cond_wait(&opened, &lock);
	pthread_mutex_unlock(&lock);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, courier_set_up, courier_tear_down)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(to_one_receiver_everything_comes_in_order),
		TEST(a_receiver_that_hangs_holds_up_nobody_else),
		TEST(what_never_arrives_is_given_up),
		TEST(what_cannot_ever_arrive_is_not_tried_again),
		TEST(what_waits_when_it_stops_is_freed),
		TEST(a_receiver_that_is_silent_holds_up_the_end_for_the_grace),
		TEST(a_try_that_cannot_be_given_up_is_left_behind),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
