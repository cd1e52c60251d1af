/* engine_work.c - the core's thread while it leads: requests, ticks, passes */
#include "server/engine_local.h"

#include "server/steps.h"

enum {
	ROOM_MS = 100,  /* between looks at whether the writer has room */
	TICK_MS = 1000, /* between commands that tell the time, while anything depends on it */
	IDLE_TICK_MS = 60000,
	REQUESTS_AT_ONCE = 256, /* applied before a pass may come between */
	HURRY_AFTER = 64,       /* requests that the writer gets before it is told to write them */
};

/* Waits until the writer takes more. False: it is time to end. */
static bool wait_for_room(struct engine *engine)
{
	while (!writer_has_room(engine->writer, ROOM_MS))
		if (inbox_is_closed(&engine->inbox))
			return false;
	return true;
}

static void pass(struct engine *engine)
{
	int64_t began_us = clock_steady_us();

	INVARIANT(began_us >= engine->next_pass_us);
	engine->changed = false;
	steps_before(engine->sched, engine->port.catalogue);
	engine_apply_own(
	    engine, (struct command){ .kind = COMMAND_PASS, .units = engine->options.pass_units });
	steps_after(engine->sched, engine->port.catalogue, &engine->effects);
	int64_t took_us = clock_steady_us() - began_us;
	atomic_fetch_add(&engine->passes, 1);
	atomic_fetch_add(&engine->pass_us_total, took_us);
	/* So passes take half of this thread's time at the most. */
	int64_t pause_us = max64(took_us, engine->options.pass_interval_ms * 1000);
	engine->next_pass_us = began_us + took_us + pause_us;
}

/* Whether time alone may change something: anything waits, runs or serves. */
static bool is_busy(struct engine *engine)
{
	struct catalogue *catalogue = engine->port.catalogue;
	struct catalogue_filter filter = { .state = -1 };
	struct catalogue_cursor models = { .kind = RECORD_MODEL };
	int64_t archived;
	catalogue_lock(catalogue);
	bool busy = catalogue_count(catalogue, &filter, &archived) > 0 ||
	            catalogue_next(catalogue, &models) != NULL;
	catalogue_unlock(catalogue);
	return busy;
}

void engine_configure(struct engine *engine)
{
	struct config_record config = *sched_config(engine->sched);
	struct error error;
	if (!engine->options.configure)
		return;
	engine->options.configure(engine->options.context, &config);
	if (record_equal(RECORD_CONFIG, &config, sched_config(engine->sched)))
		return;
	if (!config_check(&config, &error))
		engine_note(engine, error.text);
	else
		engine_apply_own(
		    engine, (struct command){ .kind = COMMAND_CONFIGURE, .configure = config });
}

static int64_t pass_due_us(const struct engine *engine)
{
	return max64(engine->next_pass_us, engine->gather_us);
}

static void engine_tick(struct engine *engine)
{
	int64_t time_us = clock_steady_us();
	if (atomic_exchange(&engine->reconfigure, false) && wait_for_room(engine))
		engine_configure(engine);
	if (time_us >= engine->next_tick_us) {
		if (wait_for_room(engine)) {
			engine_follow_clock(engine);
			engine_apply_own(engine, (struct command){ .kind = COMMAND_TIME });
		}
		engine->next_tick_us =
		    time_us +
		    (engine->keeper.off_ms != 0 || is_busy(engine) ? TICK_MS : IDLE_TICK_MS) *
			INT64_C(1000);
	}
	if (engine->changed && time_us >= pass_due_us(engine) && wait_for_room(engine))
		pass(engine);
}

static int64_t sleep_us(const struct engine *engine)
{
	int64_t next_us = engine->next_tick_us;
	if (engine->changed)
		next_us = min64(next_us, pass_due_us(engine));
	return max64(next_us - clock_steady_us(), 0);
}

/* Whether it is too early to act on what is known. */
static bool gathers(const struct engine *engine)
{
	return engine->changed && clock_steady_us() < engine->gather_us;
}

void engine_work(struct engine *engine)
{
	struct engine_request *request = NULL;
	int done = 0;

	INVARIANT(atomic_load(&engine->state) == ENGINE_LEADING && engine->sched);
	while (!inbox_is_closed(&engine->inbox) || request) {
		if (!request && gathers(engine))
			inbox_doze(&engine->inbox, sleep_us(engine));
		if (!request)
			request = inbox_take(&engine->inbox, sleep_us(engine));
		for (done = 0; request && done < REQUESTS_AT_ONCE; done++) {
			struct engine_request *next = request->next;
			if (!wait_for_room(engine))
				return;
			engine_serve(engine, request);
			if (!next || done % HURRY_AFTER == HURRY_AFTER - 1)
				engine_hurry(engine);
			request = next;
		}
		/* A request ends a period of slow ticks. */
		if (done > 0)
			engine->next_tick_us = min64(engine->next_tick_us,
			                             clock_steady_us() + TICK_MS * INT64_C(1000));
		engine_tick(engine);
	}
}
