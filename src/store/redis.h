/* redis.h - live events and cached reads for other processes, by way of Redis */
#ifndef STORE_REDIS_H
#define STORE_REDIS_H

#include "store/batch.h"

/* Optional, and never waited for: a thread of its own sends what is durable, in
 * order, and drops the oldest when Redis does not keep up. Losing Redis loses
 * nothing but the freshness of what others read there.
 *
 * PREFIX:events is a stream with the events, each with its fields; their ids are
 * NUMBER-0, so a reader that was away resumes after the last one it saw, and
 * sees from the numbers whether some are missing. PREFIX:generation is a text
 * that changes whenever updates may have been lost; PREFIX:GENERATION:job:ID,
 * and the same for tenant, node and gpu, is a hash with the columns of that row,
 * and `version`, the number of the batch that wrote it. So a reader that asks for
 * the generation first never sees what was changed while Redis was not told. A
 * hash without a name is part of a row: the reader asks the scheduler instead. */
struct redis;

struct redis_options {
	const char *host;     /* a name, or a path that begins with '/' */
	int port;             /* 0: 6379 */
	const char *password; /* NULL: none */
	int database;         /* by its number */
	const char *prefix;   /* NULL: "gpu-scheduler" */
	int64_t events_max;   /* kept in the stream, about; 0: 100,000 */
	int64_t cache_s;      /* how long a cached read lives; 0: 300 */
	int64_t timeout_ms;   /* 0: 1000 */
	size_t waiting_max;   /* bytes that wait for Redis; 0: 16 MiB */
};

struct redis_health {
	bool ok;
	char reason[ERROR_TEXT_MAX];
	int64_t sent, dropped; /* updates */
};

/* Never NULL: an unreachable server is tried again. `term` is part of the
 * generation, so that two schedulers never share one. */
struct redis *redis_start(const struct redis_options *options, int64_t term);
void redis_stop(struct redis *redis);
/* Passes on what a durable batch says; `version` is its
 * number. Does not wait. */
void redis_publish(struct redis *redis, const struct batch *batch, int64_t version);
void redis_health(struct redis *redis, struct redis_health *health);

#endif
