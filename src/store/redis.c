/* redis.c - live events and cached reads for other processes, by way of Redis */
#include "store/redis.h"

#include <hiredis.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "store/cell.h"

enum { PORT = 6379, EVENTS_MAX = 100000, CACHE_S = 300, TIMEOUT_MS = 1000, RETRY_MS = 500 };
#define WAITING_MAX ((size_t)16 << 20)

/* Commands wait in `filling`, in the form in which Redis takes them, all for the
 * generation of that moment. Whatever is lost begins the next generation. The
 * mutex guards all but what the thread alone uses. */
struct redis {
	struct redis_options options;
	int64_t term, generation;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct buffer filling, scratch, value;
	int64_t filling_count;
	bool stopping;
	struct redis_health health;
	/* The thread's own. */
	redisContext *connection;
	struct buffer sending;
	int64_t announced; /* the generation that readers were told of */
};

static void put_argument(struct buffer *to, const char *text, size_t length)
{
	buffer_print(to, "$%zu\r\n", length);
	buffer_bytes(to, text, length);
	buffer_bytes(to, "\r\n", 2);
}

static void redis_put_text(struct buffer *to, const char *text)
{
	put_argument(to, text, strlen(text));
}

static void redis_put_number(struct redis *redis, struct buffer *to, int64_t number)
{
	buffer_clear(&redis->value);
	number_put(&redis->value, number);
	put_argument(to, redis->value.data, redis->value.size);
}

static void put_head(struct buffer *to, int arguments)
{
	buffer_print(to, "*%d\r\n", arguments);
}

/* Field and value of each column of a record. */
static void put_fields(struct redis *redis, struct buffer *to, const struct record_type *type,
                       const void *record)
{
	for (int i = 0; i < type->field_count; i++) {
		struct cell cell = cell_of(&type->fields[i], record, &redis->scratch);
		redis_put_text(to, type->fields[i].name);
		if (cell.is_text)
			put_argument(to, cell.text, cell.length);
		else
			redis_put_number(redis, to, cell.number);
	}
}

static void put_key(struct redis *redis, struct buffer *to, const char *rest, int64_t id)
{
	char key[256];
	snprintf(key, sizeof(key), "%s:%lld-%lld:%s:%lld", redis->options.prefix,
	         (long long)redis->term, (long long)redis->generation, rest, (long long)id);
	redis_put_text(to, key);
}

static void put_event(struct redis *redis, struct buffer *to, const struct event *event)
{
	char key[160], id[32];
	snprintf(key, sizeof(key), "%s:events", redis->options.prefix);
	snprintf(id, sizeof(id), "%lld-0", (long long)event->number);
	put_head(to, 6 + 2 * event_type.field_count);
	redis_put_text(to, "XADD");
	redis_put_text(to, key);
	redis_put_text(to, "MAXLEN");
	redis_put_text(to, "~");
	redis_put_number(redis, to, redis->options.events_max);
	redis_put_text(to, id);
	put_fields(redis, to, &event_type, event);
}

/* A part of a row is added to what is there; readers take only what is whole. */
static void put_row(struct redis *redis, struct buffer *to, const struct table *table,
                    const struct batch_row *row, int64_t version)
{
	int fields = 0;
	if (row->deleted) {
		put_head(to, 2);
		redis_put_text(to, "DEL");
		put_key(redis, to, table->types[0]->name, row->key.first);
		redis->filling_count++;
		return;
	}
	for (int of = 0; of < table->type_count; of++)
		fields += row->records[of] ? table->types[of]->field_count : 0;
	put_head(to, 4 + 2 * fields);
	redis_put_text(to, "HSET");
	put_key(redis, to, table->types[0]->name, row->key.first);
	redis_put_text(to, "version");
	redis_put_number(redis, to, version);
	for (int of = 0; of < table->type_count; of++)
		if (row->records[of])
			put_fields(redis, to, table->types[of], row->records[of]);
	put_head(to, 3);
	redis_put_text(to, "EXPIRE");
	put_key(redis, to, table->types[0]->name, row->key.first);
	redis_put_number(redis, to, redis->options.cache_s);
	redis->filling_count += 2;
}

static void put_batch(struct redis *redis, const struct batch *batch, int64_t version)
{
	static const enum record_kind cached[] = { RECORD_JOB, RECORD_TENANT, RECORD_NODE,
		                                   RECORD_GPU };
	for (size_t i = 0; i < batch->outgoing_count; i++) {
		if (batch->outgoing[i].kind != EFFECT_EVENT)
			continue;
		put_event(redis, &redis->filling, &batch->outgoing[i].event);
		redis->filling_count++;
	}
	for (size_t i = 0; i < sizeof(cached) / sizeof(cached[0]); i++) {
		const struct table *table = batch->schema->kinds[cached[i]].table;
		const struct batch_table *rows = &batch->tables[table - batch->schema->tables];
		for (size_t j = 0; j < rows->count; j++)
			put_row(redis, &redis->filling, table, &rows->rows[j], version);
	}
}

void redis_publish(struct redis *redis, const struct batch *batch, int64_t version)
{
	pthread_mutex_lock(&redis->mutex);
	put_batch(redis, batch, version);
	if (redis->filling.size > redis->options.waiting_max) {
		redis->health.dropped += redis->filling_count;
		redis->filling_count = 0;
		buffer_clear(&redis->filling);
		redis->generation++;
	}
	pthread_cond_signal(&redis->changed);
	pthread_mutex_unlock(&redis->mutex);
}

void redis_health(struct redis *redis, struct redis_health *health)
{
	pthread_mutex_lock(&redis->mutex);
	*health = redis->health;
	pthread_mutex_unlock(&redis->mutex);
}

static void redis_note(struct redis *redis, bool ok, const char *reason)
{
	pthread_mutex_lock(&redis->mutex);
	redis->health.ok = ok;
	snprintf(redis->health.reason, sizeof(redis->health.reason), "%s", reason);
	pthread_mutex_unlock(&redis->mutex);
}

/* An error, or none: then it is fine. */
static bool is_fine(const redisReply *reply)
{
	return reply && reply->type != REDIS_REPLY_ERROR;
}

static bool command(struct redis *redis, const char *first, const char *second, const char *third)
{
	const char *arguments[] = { first, second, third };
	redisReply *reply = redisCommandArgv(redis->connection, third ? 3 : 2, arguments, NULL);
	bool fine = is_fine(reply);
	if (reply)
		freeReplyObject(reply);
	return fine;
}

/* What was cached before cannot be trusted: readers are led to this generation. */
static bool announce(struct redis *redis, int64_t generation)
{
	char key[160], value[64];
	snprintf(key, sizeof(key), "%s:generation", redis->options.prefix);
	snprintf(value, sizeof(value), "%lld-%lld", (long long)redis->term, (long long)generation);
	if (!command(redis, "SET", key, value))
		return false;
	redis->announced = generation;
	return true;
}

static void disconnect(struct redis *redis, const char *reason)
{
	redis_note(redis, false, reason);
	redisFree(redis->connection);
	redis->connection = NULL;
	redis->announced = -1;
}

static bool connect_to(struct redis *redis)
{
	struct timeval timeout = { .tv_sec = redis->options.timeout_ms / 1000,
		                   .tv_usec = redis->options.timeout_ms % 1000 * 1000 };
	const char *host = redis->options.host;
	redis->connection = *host == '/'
	                        ? redisConnectUnixWithTimeout(host, timeout)
	                        : redisConnectWithTimeout(host, redis->options.port, timeout);
	if (!redis->connection || redis->connection->err) {
		disconnect(redis, redis->connection ? redis->connection->errstr : "no memory");
		return false;
	}
	redisSetTimeout(redis->connection, timeout);
	if (redis->options.password && !command(redis, "AUTH", redis->options.password, NULL)) {
		disconnect(redis, "Redis does not accept the password");
		return false;
	}
	char number[16];
	snprintf(number, sizeof(number), "%d", redis->options.database);
	if (redis->options.database != 0 && !command(redis, "SELECT", number, NULL)) {
		disconnect(redis, "Redis does not have the database of that number");
		return false;
	}
	redis_note(redis, true, "");
	return true;
}

/* Sends what was taken and reads the answers; an event that Redis has already is
 * refused by it, and that is fine. */
static bool send_all(struct redis *redis, int64_t count)
{
	redisContext *connection = redis->connection;
	int done = 0;
	if (redisAppendFormattedCommand(connection, redis->sending.data, redis->sending.size) !=
	    REDIS_OK)
		return false;
	while (!done)
		if (redisBufferWrite(connection, &done) != REDIS_OK)
			return false;
	for (int64_t i = 0; i < count; i++) {
		void *reply = NULL;
		if (redisGetReply(connection, &reply) != REDIS_OK)
			return false;
		freeReplyObject(reply);
	}
	return true;
}

/* Waits for something to send and takes it, with its generation; how many
 * commands that are, or -1 when it is time to end. */
static int64_t redis_take(struct redis *redis, int64_t *generation)
{
	struct timespec until = clock_after_us(CLOCK_REALTIME, 1000000);
	int waited = 0;
	pthread_mutex_lock(&redis->mutex);
	while (!redis->stopping && redis->filling.size == 0 && waited == 0)
		waited = pthread_cond_timedwait(&redis->changed, &redis->mutex, &until);
	int64_t count = redis->stopping ? -1 : redis->filling_count;
	struct buffer taken = redis->filling;
	redis->filling = redis->sending;
	redis->sending = taken;
	buffer_clear(&redis->filling);
	redis->filling_count = 0;
	*generation = redis->generation;
	pthread_mutex_unlock(&redis->mutex);
	return count;
}

/* What is lost is counted. The commands that wait are for the same generation,
 * so they go, too. */
static void lose(struct redis *redis, int64_t count)
{
	pthread_mutex_lock(&redis->mutex);
	count += redis->filling_count;
	redis->health.dropped += count;
	redis->filling_count = 0;
	buffer_clear(&redis->filling);
	if (count > 0)
		redis->generation++;
	pthread_mutex_unlock(&redis->mutex);
}

/* In short steps, so that it can be stopped. */
static void pause_a_while(struct redis *redis)
{
	bool stopping = false;
	for (int waited_ms = 0; waited_ms < RETRY_MS && !stopping; waited_ms += 50) {
		nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
		pthread_mutex_lock(&redis->mutex);
		stopping = redis->stopping;
		pthread_mutex_unlock(&redis->mutex);
	}
}

static bool redis_deliver(struct redis *redis, int64_t count, int64_t generation)
{
	if (!redis->connection && !connect_to(redis))
		return false;
	if ((redis->announced == generation || announce(redis, generation)) &&
	    (count == 0 || send_all(redis, count)))
		return true;
	disconnect(redis, *redis->connection->errstr ? redis->connection->errstr
	                                             : "Redis refuses commands");
	return false;
}

static void *redis_run(void *context)
{
	struct redis *redis = context;
	int64_t count, generation;
	sigset_t broken;
	/* A server that is gone is an error here, not the end of the process. */
	sigemptyset(&broken);
	sigaddset(&broken, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &broken, NULL);
	while ((count = redis_take(redis, &generation)) >= 0) {
		if (!redis_deliver(redis, count, generation)) {
			lose(redis, count);
			pause_a_while(redis);
			continue;
		}
		pthread_mutex_lock(&redis->mutex);
		redis->health.sent += count;
		pthread_mutex_unlock(&redis->mutex);
	}
	return NULL;
}

struct redis *redis_start(const struct redis_options *options, int64_t term)
{
	struct redis *redis = NEW(struct redis);
	redis->options = *options;
	redis->term = term;
	redis->announced = -1;
	snprintf(redis->health.reason, sizeof(redis->health.reason), "not connected yet");
	redis->options.host = memory_text(options->host);
	redis->options.password = options->password ? memory_text(options->password) : NULL;
	redis->options.prefix = memory_text(options->prefix ? options->prefix : "gpu-scheduler");
	if (options->port == 0)
		redis->options.port = PORT;
	if (options->events_max == 0)
		redis->options.events_max = EVENTS_MAX;
	if (options->cache_s == 0)
		redis->options.cache_s = CACHE_S;
	if (options->timeout_ms == 0)
		redis->options.timeout_ms = TIMEOUT_MS;
	if (options->waiting_max == 0)
		redis->options.waiting_max = WAITING_MAX;
	pthread_mutex_init(&redis->mutex, NULL);
	pthread_cond_init(&redis->changed, NULL);
	if (pthread_create(&redis->thread, NULL, redis_run, redis) != 0)
		panic("a thread for Redis could not be started");
	return redis;
}

void redis_stop(struct redis *redis)
{
	if (!redis)
		return;
	pthread_mutex_lock(&redis->mutex);
	redis->stopping = true;
	pthread_cond_signal(&redis->changed);
	pthread_mutex_unlock(&redis->mutex);
	pthread_join(redis->thread, NULL);
	if (redis->connection)
		redisFree(redis->connection);
	buffer_free(&redis->filling);
	buffer_free(&redis->sending);
	buffer_free(&redis->scratch);
	buffer_free(&redis->value);
	free((char *)redis->options.host);
	free((char *)redis->options.password);
	free((char *)redis->options.prefix);
	pthread_cond_destroy(&redis->changed);
	pthread_mutex_destroy(&redis->mutex);
	free(redis);
}
