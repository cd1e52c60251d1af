/* writer.c - the store's thread: group commit, and what leaves only when it is durable */
#include "store/writer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

enum { ROWS_MAX = 20000, RETRY_MS = 200, RETENTION_MS = 1000 };
#define BYTES_MAX ((size_t)64 << 20)

/* The mutex guards `filling`, the flags and `health`. `writing` belongs to the
 * writer's thread, `kept` to the one that adds: what waits there for the command
 * that it belongs to. */
struct writer {
	struct writer_options options;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t added, room;
	struct batch *filling, *writing, *kept;
	bool stopping, hurried; /* hurried: somebody waits for what is in `filling` */
	bool joined;            /* what is in `filling` is not complete */
	struct writer_health health;
	int64_t failing_since_ms;
	int64_t time_ms; /* of the last command that was added */
	/* The thread's own. */
	int64_t renewed_ms, tidied_ms, began_us;
	int64_t batch_ms; /* the time of the batch's last command; 0: there was none yet */
	bool advances;    /* jobs were archived since it last tidied up */
};

static void init_locks(struct writer *writer)
{
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&writer->mutex, NULL);
	pthread_cond_init(&writer->added, &monotonic);
	pthread_cond_init(&writer->room, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

static bool is_full(const struct writer *writer)
{
	return writer->filling->rows >= writer->options.rows_max ||
	       writer->filling->bytes + writer->filling->commands.size >=
	           writer->options.bytes_max ||
	       writer->filling->reply_count >= writer->options.rows_max;
}

static bool is_empty(const struct batch *batch)
{
	return batch->reply_count == 0 && batch->rows == 0;
}

bool writer_has_room(struct writer *writer, int64_t wait_ms)
{
	struct timespec until = clock_after_us(CLOCK_MONOTONIC, wait_ms * 1000);
	int waited = 0;
	pthread_mutex_lock(&writer->mutex);
	while (is_full(writer) && waited == 0)
		waited = pthread_cond_timedwait(&writer->room, &writer->mutex, &until);
	bool has_room = !is_full(writer);
	pthread_mutex_unlock(&writer->mutex);
	return has_room;
}

void writer_add(struct writer *writer, const struct command *command, const struct effects *effects,
                void *cookie)
{
	pthread_mutex_lock(&writer->mutex);
	bool was_empty = is_empty(writer->filling);
	for (size_t i = 0; i < writer->kept->kept_count; i++) {
		const struct kept *kept = &writer->kept->kept[i];
		batch_keep(writer->filling, kept->kind, kept->key, kept->value);
	}
	batch_add(writer->filling, command, effects, cookie);
	if (command)
		writer->time_ms = command->now_ms;
	if (was_empty || is_full(writer))
		pthread_cond_signal(&writer->added);
	pthread_mutex_unlock(&writer->mutex);
	if (writer->kept->kept_count > 0)
		batch_clear(writer->kept);
}

void writer_note(struct writer *writer, const struct command *command)
{
	pthread_mutex_lock(&writer->mutex);
	batch_note(writer->filling, command);
	if (is_full(writer))
		pthread_cond_signal(&writer->added);
	pthread_mutex_unlock(&writer->mutex);
}

void writer_hurry(struct writer *writer)
{
	pthread_mutex_lock(&writer->mutex);
	/* What was taken already needs no hurry, and what comes next may not either. */
	if (!is_empty(writer->filling)) {
		if (!writer->hurried)
			pthread_cond_signal(&writer->added);
		writer->hurried = true;
	}
	pthread_mutex_unlock(&writer->mutex);
}

void writer_join(struct writer *writer)
{
	pthread_mutex_lock(&writer->mutex);
	writer->joined = true;
	pthread_mutex_unlock(&writer->mutex);
}

void writer_part(struct writer *writer)
{
	pthread_mutex_lock(&writer->mutex);
	writer->joined = false;
	pthread_cond_signal(&writer->added);
	pthread_mutex_unlock(&writer->mutex);
}

void writer_keep(struct writer *writer, const char *kind, const char *key, const char *value)
{
	batch_keep(writer->kept, kind, key, value);
}

void writer_health(struct writer *writer, struct writer_health *health)
{
	pthread_mutex_lock(&writer->mutex);
	*health = writer->health;
	health->waiting_rows = writer->filling->rows;
	if (!health->ok)
		health->failing_ms = clock_steady_ms() - writer->failing_since_ms;
	pthread_mutex_unlock(&writer->mutex);
}

/* How long the thread may sleep: a leader must be heard of. SQLite's lock needs
 * no renewing. */
static int64_t sleep_ms(const struct writer *writer)
{
	int64_t renew_ms = store_renew_ms(writer->options.store);
	if (!store_is_postgres(writer->options.store))
		return RETENTION_MS;
	int64_t left_ms = writer->renewed_ms + renew_ms - clock_steady_ms();
	return left_ms > 0 ? left_ms : 0;
}

/* With the mutex: waits until it is time for the next batch, or somebody wants it now. */
static void writer_gather(struct writer *writer)
{
	int64_t until_us = writer->began_us + writer->options.gather_ms * 1000;
	struct timespec until = { .tv_sec = until_us / 1000000,
		                  .tv_nsec = until_us % 1000000 * 1000 };
	int waited = 0;
	while (!is_empty(writer->filling) && !is_full(writer) && !writer->hurried &&
	       !writer->stopping && waited == 0)
		waited = pthread_cond_timedwait(&writer->added, &writer->mutex, &until);
	writer->hurried = false;
}

/* Waits for something to write, and takes it. False when it is time to end. */
static bool take_batch(struct writer *writer)
{
	struct timespec until = clock_after_us(CLOCK_MONOTONIC, sleep_ms(writer) * 1000);
	int waited = 0;
	pthread_mutex_lock(&writer->mutex);
	while (is_empty(writer->filling) && !is_full(writer) && !writer->stopping && waited == 0)
		waited = pthread_cond_timedwait(&writer->added, &writer->mutex, &until);
	writer_gather(writer);
	while (writer->joined)
		pthread_cond_wait(&writer->added, &writer->mutex);
	bool ends =
	    writer->stopping && is_empty(writer->filling) && writer->filling->command_count == 0;
	struct batch *taken = writer->filling;
	writer->filling = writer->writing;
	writer->writing = taken;
	writer->batch_ms = writer->time_ms;
	pthread_cond_broadcast(&writer->room);
	pthread_mutex_unlock(&writer->mutex);
	return !ends;
}

static bool has_retention(const struct retention *retention)
{
	return retention->decisions_ms || retention->events_ms || retention->jobs_ms ||
	       retention->runs_ms;
}

/* Adds what is too old to the batch, now and then. False if there is nothing to write: answers
 * alone need no transaction. */
static bool complete_batch(struct writer *writer)
{
	int64_t now_ms = clock_steady_ms();
	bool postgres = store_is_postgres(writer->options.store);
	bool renew =
	    postgres && now_ms - writer->renewed_ms >= store_renew_ms(writer->options.store);
	writer->advances = writer->advances || writer->writing->archives;
	bool tidy = (writer->advances || has_retention(&writer->options.retention)) &&
	            writer->batch_ms > 0 && now_ms - writer->tidied_ms >= RETENTION_MS;
	if (tidy) {
		writer->tidied_ms = now_ms;
		if (writer->advances)
			retention_advance_sql(&writer->writing->sql);
		writer->advances = false;
		/* By the core's time: a system clock that jumps must not delete anything. */
		retention_sql(&writer->options.retention, writer->batch_ms, &writer->writing->sql);
	}
	return renew || tidy || writer->writing->rows > 0 || writer->writing->command_count > 0;
}

/* Notes that it works, or why it does not. */
static void writer_record(struct writer *writer, bool ok, const struct error *error)
{
	pthread_mutex_lock(&writer->mutex);
	bool changed = writer->health.ok != ok;
	if (changed && !ok)
		writer->failing_since_ms = clock_steady_ms();
	writer->health.ok = ok;
	memcpy(writer->health.reason, ok ? "" : error->text, ok ? 1 : ERROR_TEXT_MAX);
	pthread_mutex_unlock(&writer->mutex);
	if (changed && writer->options.changed)
		writer->options.changed(writer->options.context);
}

/* Sleeps before the next try; true if it is time to give up instead. */
static bool pause_failing(struct writer *writer)
{
	struct timespec until = clock_after_us(CLOCK_MONOTONIC, writer->options.retry_ms * 1000);
	int waited = 0;
	pthread_mutex_lock(&writer->mutex);
	while (!writer->stopping && waited == 0)
		waited = pthread_cond_timedwait(&writer->added, &writer->mutex, &until);
	bool stopping = writer->stopping;
	pthread_mutex_unlock(&writer->mutex);
	return stopping;
}

static bool writer_commit(struct writer *writer)
{
	struct error error;
	for (;;) {
		enum store_outcome outcome =
		    store_commit(writer->options.store, writer->writing, &error);
		if (outcome == STORE_DONE) {
			writer_record(writer, true, NULL);
			return true;
		}
		writer_record(writer, false, &error);
		if (outcome == STORE_FAILED) {
			writer->options.failed(writer->options.context, &error);
			return false;
		}
		if (pause_failing(writer))
			return false;
	}
}

static void keep_journal(struct writer *writer)
{
	const struct batch *batch = writer->writing;
	struct error error = { 0 };
	if (!writer->options.journal)
		return;
	int64_t last = store_position(writer->options.store).commands;
	bool ok = journal_append(writer->options.journal, last - batch->command_count + 1,
	                         batch->command_count, &batch->commands, &error);
	if (ok)
		return;
	pthread_mutex_lock(&writer->mutex);
	writer->health.journal_ok = false;
	memcpy(writer->health.journal_reason, error.text, sizeof(error.text));
	pthread_mutex_unlock(&writer->mutex);
}

static void count_batch(struct writer *writer, int64_t took_us)
{
	pthread_mutex_lock(&writer->mutex);
	writer->health.batches++;
	writer->health.commands += writer->writing->command_count;
	writer->health.rows += (int64_t)writer->writing->rows;
	writer->health.last_batch_us = took_us;
	pthread_mutex_unlock(&writer->mutex);
}

static void *writer_run(void *context)
{
	struct writer *writer = context;
	while (take_batch(writer)) {
		if (complete_batch(writer)) {
			int64_t began_us = clock_steady_us();
			writer->writing->began_us = writer->began_us = began_us;
			writer->renewed_ms = clock_steady_ms();
			if (!writer_commit(writer))
				break;
			count_batch(writer, clock_steady_us() - began_us);
			writer->options.durable(writer->options.context, writer->writing);
			keep_journal(writer);
		} else if (writer->writing->reply_count > 0) {
			writer->writing->began_us = 0;
			writer->options.durable(writer->options.context, writer->writing);
		}
		batch_clear(writer->writing);
	}
	return NULL;
}

struct writer *writer_start(const struct writer_options *options)
{
	struct writer *writer = NEW(struct writer);
	writer->options = *options;
	if (options->rows_max == 0)
		writer->options.rows_max = ROWS_MAX;
	if (options->bytes_max == 0)
		writer->options.bytes_max = BYTES_MAX;
	if (options->retry_ms == 0)
		writer->options.retry_ms = RETRY_MS;
	writer->filling = batch_new(store_schema(options->store));
	writer->writing = batch_new(store_schema(options->store));
	writer->kept = batch_new(store_schema(options->store));
	writer->health.ok = writer->health.journal_ok = true;
	writer->renewed_ms = clock_steady_ms();
	init_locks(writer);
	if (pthread_create(&writer->thread, NULL, writer_run, writer) != 0)
		panic("a thread for the store could not be started");
	return writer;
}

void writer_stop(struct writer *writer)
{
	if (!writer)
		return;
	pthread_mutex_lock(&writer->mutex);
	writer->stopping = true;
	pthread_cond_broadcast(&writer->added);
	pthread_mutex_unlock(&writer->mutex);
	pthread_join(writer->thread, NULL);
	batch_free(writer->filling);
	batch_free(writer->writing);
	batch_free(writer->kept);
	pthread_cond_destroy(&writer->added);
	pthread_cond_destroy(&writer->room);
	pthread_mutex_destroy(&writer->mutex);
	free(writer);
}
