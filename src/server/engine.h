/* engine.h - the threads behind the engine: the core's, the store's, and the librarian's */
#ifndef SERVER_ENGINE_H
#define SERVER_ENGINE_H

#include "api/engine/engine_port.h"
#include "store/journal.h"
#include "store/redis.h"
#include "store/retention.h"
#include "store/store.h"

/* The core's thread waits until it leads and loads the store. Then it applies requests in order,
 * and makes a scheduling pass after changes. The writer's thread makes the effects durable; only
 * then does the loop's thread learn of them. Reads of the store have their own thread. */
struct engine;

struct engine_options {
	struct loop *loop;
	struct store_options store;
	const struct journal_options *journal; /* NULL: none */
	const struct redis_options *redis;     /* NULL: none */
	struct retention retention;
	/* Changes the stored settings to those that are wanted, at the start; may be NULL. */
	void (*configure)(void *context, struct config_record *config);
	int64_t pass_interval_ms;             /* the least time between two passes; 0: none */
	int64_t pass_units;                   /* of work in one pass; 0: PASS_UNITS_DEFAULT */
	int64_t clock_step_ms, clock_hold_ms; /* see timekeeper.h; 0: 5,000 and 60,000 */
	size_t asks_max; /* that wait for the core; more are refused. 0: 200,000 */

	/* In the core's thread, when it leads and before anyone is served. */
	void (*kept)(void *context, const struct kept *kept);
	/* In the loop's thread, once: it leads, and all is loaded. */
	void (*leading)(void *context);
	/* In any thread, once: the engine failed, and nothing more will be answered. The process
	 * must exit; the next one starts from the database. */
	void (*failed)(void *context, const struct error *error);
	/* A sentence for the log, in any thread; may be NULL. */
	void (*note)(void *context, const char *sentence);
	void *context;
};

/* Never NULL. The options are copied, the texts in them are not: they must last. */
struct engine *engine_start(const struct engine_options *options);
struct engine_port *engine_port(struct engine *engine);
/* When no more requests come, and before the loop is freed: writes what is under way, ends
 * the threads, gives up the leadership. Asks that were not answered never are. */
void engine_stop(struct engine *engine);

/* Changes settings while it runs: `configure` is called again. */
void engine_reconfigure(struct engine *engine);

#endif
