/* loop.c - a thread that waits for many connections at once */
#include "wire/loop.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/calendar.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/number.h"
#include "wire/connection.h"
#include "wire/exchange_state.h"
#include "wire/http2.h"
#include "wire/listener_state.h"
#include "wire/loop_state.h"

void loop_check_thread(const struct loop *loop)
{
	INVARIANT(pthread_equal(loop->thread, pthread_self()));
}

/* Runs what was posted, oldest first. */
static void run_posts(uv_async_t *wake)
{
	struct loop *loop = wake->data;
	struct post *latest = atomic_exchange_explicit(&loop->posts, NULL, memory_order_acquire);
	struct post *oldest = NULL;
	while (latest) {
		struct post *next = latest->next;
		latest->next = oldest;
		oldest = latest;
		latest = next;
	}
	while (oldest) {
		struct post *post = oldest;
		oldest = post->next;
		post->run(post);
	}
}

void loop_post(struct loop *loop, struct post *post)
{
	struct post *latest = atomic_load_explicit(&loop->posts, memory_order_relaxed);
	do
		post->next = latest;
	while (!atomic_compare_exchange_weak_explicit(&loop->posts, &latest, post,
	                                              memory_order_release, memory_order_relaxed));
	/* Whoever finds it empty wakes the loop; it takes all that is there by then. */
	if (!latest)
		uv_async_send(&loop->wake);
}

static void run_alarm(uv_timer_t *alarm)
{
	struct loop *loop = alarm->data;
	loop->alarm_ms = INT64_MAX;
	timers_run(&loop->timers, loop_now_ms(loop));
}

static void set_alarm(struct loop *loop)
{
	int64_t next_ms = timers_next_ms(&loop->timers);
	if (next_ms == loop->alarm_ms || loop->is_closing)
		return;
	loop->alarm_ms = next_ms;
	if (next_ms == INT64_MAX) {
		uv_timer_stop(&loop->alarm);
		return;
	}
	int64_t delay_ms = max64(next_ms - loop_now_ms(loop), 0);
	uv_timer_start(&loop->alarm, run_alarm, (uint64_t)delay_ms, 0);
}

static void before_wait(uv_prepare_t *prepare)
{
	struct loop *loop = prepare->data;
	loop_flush(loop);
	set_alarm(loop);
}

static void after_wait(uv_check_t *check)
{
	loop_flush(check->data);
}

static void flush_dirty(struct loop *loop)
{
	while (loop->dirty) {
		struct connection *connection = loop->dirty;
		loop->dirty = connection->next_dirty;
		connection_flush(connection);
	}
}

void loop_flush(struct loop *loop)
{
	flush_dirty(loop);
	while (loop->held.bytes > loop->limits.held_bytes && connections_shed(loop))
		flush_dirty(loop);
}

static void gather_due(struct timer *timer)
{
	struct loop *loop =
	    (struct loop *)(void *)((char *)timer - offsetof(struct loop, gather_timer));
	connections_gathered(loop);
}

static void stop_due(struct timer *timer)
{
	struct loop *loop =
	    (struct loop *)(void *)((char *)timer - offsetof(struct loop, stop_timer));
	for (struct connection *connection = loop->connections; connection;
	     connection = connection->next)
		connection_close(connection);
}

struct loop *loop_new(const struct limits *limits)
{
	struct error error = { 0 };
	if (!limits_check(limits, &error))
		panic("%s", error.text);
	/* A client that is gone is an error value of write, never a signal. */
	signal(SIGPIPE, SIG_IGN);
	struct loop *loop = NEW(struct loop);
	loop->limits = *limits;
	loop->timers = timers_new();
	loop->admission = admission_new(limits->connections, limits->connections_reserved);
	loop->gather_timer = TIMER(gather_due);
	loop->stop_timer = TIMER(stop_due);
	loop->alarm_ms = INT64_MAX;
	loop->gathered_ms = INT64_MIN / 2;
	loop->thread = pthread_self();
	loop->input = memory_alloc(LOOP_INPUT_BYTES);
	atomic_init(&loop->posts, NULL);
	if (uv_loop_init(&loop->uv) != 0 || uv_async_init(&loop->uv, &loop->wake, run_posts) != 0)
		panic("an event loop cannot be made: are there file descriptors left?");
	uv_prepare_init(&loop->uv, &loop->before_wait);
	uv_check_init(&loop->uv, &loop->after_wait);
	uv_timer_init(&loop->uv, &loop->alarm);
	loop->wake.data = loop->before_wait.data = loop->after_wait.data = loop->alarm.data = loop;
	uv_prepare_start(&loop->before_wait, before_wait);
	uv_check_start(&loop->after_wait, after_wait);
	return loop;
}

/* Closes the loop's own handles, after which uv_run returns. */
static void close_handles(struct loop *loop)
{
	if (loop->is_closing)
		return;
	loop->is_closing = true;
	listeners_close(loop);
	uv_close((uv_handle_t *)&loop->wake, NULL);
	uv_close((uv_handle_t *)&loop->before_wait, NULL);
	uv_close((uv_handle_t *)&loop->after_wait, NULL);
	uv_close((uv_handle_t *)&loop->alarm, NULL);
}

void loop_check_end(struct loop *loop)
{
	if (loop->is_stopping && !loop->connections && loop->counters.exchanges == 0)
		close_handles(loop);
}

void loop_run(struct loop *loop)
{
	loop->thread = pthread_self();
	uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_free(struct loop *loop)
{
	INVARIANT(!loop->connections && loop->counters.exchanges == 0);
	close_handles(loop);
	uv_run(&loop->uv, UV_RUN_DEFAULT);
	int status = uv_loop_close(&loop->uv);
	INVARIANT(status == 0);
	exchanges_free_spare(loop);
	http2_shared_free(loop->http2);
	timers_free(&loop->timers);
	map_free(&loop->addresses);
	output_blocks_free(&loop->blocks);
	compressor_free(&loop->compressor);
	buffer_free(&loop->scratch);
	free(loop->input);
	free(loop->plain);
	free(loop);
}

void loop_stop(struct loop *loop, int64_t grace_ms)
{
	loop_check_thread(loop);
	bool is_first = !loop->is_stopping;
	loop->is_stopping = true;
	loop_timer_set(loop, &loop->stop_timer, grace_ms);
	for (struct connection *connection = loop->connections; is_first && connection;
	     connection = connection->next)
		connection_stop(connection);
	loop_check_end(loop);
}

bool loop_is_stopping(const struct loop *loop)
{
	return loop->is_stopping;
}

int64_t loop_now_ms(const struct loop *loop)
{
	return (int64_t)uv_now(&loop->uv);
}

void loop_timer_set(struct loop *loop, struct timer *timer, int64_t delay_ms)
{
	/* Never 0, which is what a timer has that is not set. */
	timers_set(&loop->timers, timer, max64(loop_now_ms(loop) + delay_ms, 1));
}

void loop_timer_clear(struct loop *loop, struct timer *timer)
{
	timers_clear(&loop->timers, timer);
}

const struct limits *loop_limits(const struct loop *loop)
{
	return &loop->limits;
}

struct loop_counters loop_counters(const struct loop *loop)
{
	struct loop_counters counters = loop->counters;
	counters.held_bytes = loop->held.bytes;
	return counters;
}

struct text loop_date(struct loop *loop)
{
	int64_t now_ms = clock_ns(CLOCK_REALTIME_COARSE) / 1000000;

	if (now_ms / 1000 != loop->date_s) {
		struct buffer date = { 0 };
		calendar_print_mail(&date, now_ms);
		snprintf(loop->date, sizeof(loop->date), "date: %s GMT\r\n", date.data);
		buffer_free(&date);
		loop->date_s = now_ms / 1000;
	}
	return text_of(loop->date);
}
