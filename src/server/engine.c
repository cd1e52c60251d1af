/* engine.c - the threads behind the engine: the core's, the store's, and the librarian's */
#include "server/engine_local.h"

#include "server/librarian.h"
#include <stdlib.h>

enum { REQUESTS_MAX = 200000, CLOCK_STEP_MS = 5000, CLOCK_HOLD_MS = 60000 };

void engine_note(struct engine *engine, const char *sentence)
{
	if (engine->options.note)
		engine->options.note(engine->options.context, sentence);
}

static void tell_leading(void *context)
{
	struct engine *engine = context;
	if (engine->options.leading)
		engine->options.leading(engine->options.context);
}

static void *engine_run(void *context)
{
	struct engine *engine = context;
	if (engine_begin(engine)) {
		atomic_store(&engine->state, ENGINE_LEADING);
		delivery_call(engine->delivery, tell_leading, engine);
		engine_work(engine);
	}
	atomic_store(&engine->state, ENGINE_ENDED);
	return NULL;
}

struct engine *engine_start(const struct engine_options *options)
{
	struct engine *engine = NEW(struct engine);
	INVARIANT(options->loop && options->failed);
	engine->options = *options;
	if (options->pass_units == 0)
		engine->options.pass_units = PASS_UNITS_DEFAULT;
	if (options->asks_max == 0)
		engine->options.asks_max = REQUESTS_MAX;
	if (options->clock_step_ms == 0)
		engine->options.clock_step_ms = CLOCK_STEP_MS;
	if (options->clock_hold_ms == 0)
		engine->options.clock_hold_ms = CLOCK_HOLD_MS;
	engine_open_port(engine);
	inbox_init(&engine->inbox);
	engine->delivery = delivery_new(&engine->port);
	engine->librarian = librarian_start(&options->store, engine->delivery);
	engine->store = store_new(&options->store);
	engine->journal = options->journal ? journal_new(options->journal) : NULL;
	if (pthread_create(&engine->thread, NULL, engine_run, engine) != 0)
		panic("a thread for the core could not be started");
	return engine;
}

struct engine_port *engine_port(struct engine *engine)
{
	return &engine->port;
}

void engine_reconfigure(struct engine *engine)
{
	atomic_store(&engine->reconfigure, true);
	inbox_wake(&engine->inbox);
}

void engine_stop(struct engine *engine)
{
	inbox_close(&engine->inbox);
	pthread_join(engine->thread, NULL);
	INVARIANT(atomic_load(&engine->state) == ENGINE_ENDED);
	librarian_stop(engine->librarian);
	writer_stop(engine->writer);
	if (engine->redis)
		redis_stop(engine->redis);
	if (engine->journal)
		journal_free(engine->journal);
	store_free(engine->store);
	sched_free(engine->sched);
	effects_free(&engine->effects);
	catalogue_free(engine->port.catalogue);
	delivery_free(engine->delivery);
	inbox_destroy(&engine->inbox);
	free(engine);
}
