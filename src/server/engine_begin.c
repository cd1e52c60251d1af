/* engine_begin.c - the core's thread until it leads: waiting, loading */
#include "server/engine_local.h"

#include "store/archive.h"
#include <string.h>
#include <time.h>

enum {
	LEAD_MS = 100,  /* between attempts to lead */
	GATHER_MS = 40, /* delay of a transaction that nobody waits for */
};

static void engine_fail(struct engine *engine, const struct error *error)
{
	atomic_store(&engine->state, ENGINE_ENDED);
	engine->options.failed(engine->options.context, error);
}

static bool wait_to_lead(struct engine *engine)
{
	struct error error = { 0 };
	char told[ERROR_TEXT_MAX] = "";
	for (;;) {
		enum store_outcome outcome = store_lead(engine->store, &error);
		if (outcome == STORE_DONE)
			return true;
		if (outcome == STORE_FAILED) {
			engine_fail(engine, &error);
			return false;
		}
		if (strcmp(told, error.text) != 0)
			engine_note(engine, error.text);
		memcpy(told, error.text, sizeof(told));
		inbox_take(&engine->inbox, LEAD_MS * 1000);
		if (inbox_is_closed(&engine->inbox))
			return false;
	}
}

static void load_record(void *context, enum record_kind kind, const void *record)
{
	catalogue_load(context, kind, record);
}

static bool load_kept(void *context, const struct kept *kept, struct error *error)
{
	struct engine *engine = context;
	(void)error;
	if (engine->options.kept)
		engine->options.kept(engine->options.context, kept);
	return true;
}

static bool load_archived(void *context, int64_t tenant_id, enum job_state state, int64_t count,
                          struct error *error)
{
	(void)error;
	catalogue_load_archived(context, tenant_id, state, count);
	return true;
}

static bool engine_load(struct engine *engine)
{
	struct error error = { 0 };
	struct catalogue *catalogue = engine->port.catalogue;
	INVARIANT(!engine->sched);
	engine->sched = sched_new();
	store_watch_load(engine->store, load_record, catalogue);
	if (store_load(engine->store, engine->sched, &error) &&
	    store_load_kept(engine->store, load_kept, engine, &error) &&
	    archive_count_each(engine->store, load_archived, catalogue, &error))
		return true;
	engine_fail(engine, &error);
	return false;
}

static void start_writer(struct engine *engine)
{
	engine->writer = writer_start(&(struct writer_options){
	    .store = engine->store,
	    .journal = engine->journal,
	    .retention = engine->options.retention,
	    .gather_ms = GATHER_MS,
	    .durable = engine_on_durable,
	    .failed = engine_on_failed,
	    .changed = engine_on_changed,
	    .context = engine,
	});
}

bool engine_begin(struct engine *engine)
{
	INVARIANT(atomic_load(&engine->state) == ENGINE_WAITING && !engine->writer);
	if (!wait_to_lead(engine) || !engine_load(engine))
		return false;
	if (engine->options.redis)
		engine->redis =
		    redis_start(engine->options.redis, sched_meta(engine->sched)->term + 1);
	start_writer(engine);
	engine_begin_time(engine);
	engine_apply_own(engine, (struct command){ .kind = COMMAND_START });
	engine_apply_own(engine, (struct command){ .kind = COMMAND_RESET_REQUESTS });
	engine_configure(engine);
	atomic_store(&engine->term, sched_meta(engine->sched)->term);
	/* The term is not used before it is stored. */
	while (atomic_load(&engine->durable) < atomic_load(&engine->added)) {
		if (inbox_is_closed(&engine->inbox))
			return false;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return true;
}
