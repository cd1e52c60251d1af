/* engine.c - the threads behind the engine: the core's, the store's, and the librarian's */
#include "server/engine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "server/delivery.h"
#include "server/inbox.h"
#include "server/librarian.h"
#include "server/steps.h"
#include "server/timekeeper.h"
#include "store/archive.h"

enum {
	ASKS_MAX = 200000,
	LEAD_MS = 100,  /* between tries to lead */
	ROOM_MS = 100,  /* between looks at whether the writer has room */
	TICK_MS = 1000, /* between commands that say that time passed, where anything waits for it
	                 */
	IDLE_TICK_MS = 60000,
	GATHER_MS = 40,     /* that what nobody waits for is stored later, where nothing else is */
	FACTS_MS = 20,      /* that it is acted on later */
	ASKS_AT_ONCE = 256, /* that are applied before a pass may come between */
	HURRY_AFTER = 64,   /* asks that the writer gets before it is told to write them */
	CLOCK_STEP_MS = 5000,
	CLOCK_HOLD_MS = 60000,
};

enum engine_state { ENGINE_WAITING, ENGINE_LEADING, ENGINE_ENDED };

/* `sched`, `effects` and the times belong to the core's thread. */
struct engine {
	struct engine_port port; /* first: one pointer is the other */
	struct engine_options options;
	pthread_t thread;
	struct inbox inbox;
	struct delivery *delivery;
	struct librarian *librarian;

	struct store *store;
	struct journal *journal;
	_Atomic(struct writer *) writer;
	struct redis *redis;

	_Atomic int state; /* enum engine_state */
	atomic_bool store_fails, reconfigure;
	atomic_int_fast64_t active_ms, term, passes, pass_us_total;
	atomic_int_fast64_t added, durable; /* things given to the writer; of these durable */
	int64_t awaited; /* of those added: an answer leaves no earlier than these are durable */

	/* Of the timekeeper, for other threads: the core's time less the steady clock's. */
	atomic_int_fast64_t offset_us, clock_off_ms, clock_steps;

	struct sched *sched;
	struct effects effects;
	struct timekeeper keeper;
	bool hurries; /* somebody waits for what was added, and the writer does not know yet */
	bool changed; /* something that a pass may act on */
	int64_t next_pass_us, next_tick_us; /* not before */
	int64_t gather_us; /* no pass before, to see more of what can wait; 0: none can */
};

static void engine_note(struct engine *engine, const char *sentence)
{
	if (engine->options.note)
		engine->options.note(engine->options.context, sentence);
}

/* What nodes tell of tasks. It comes in numbers, and nobody notices if it is acted on and stored
 * some milliseconds later, together: that a task ended, say, and that its memory is back. What
 * is decided between the two would be a claim, and be decided again. */
static bool is_fact(enum command_kind kind)
{
	switch (kind) {
	case COMMAND_TASK_STARTED:
	case COMMAND_TASK_EXITED:
	case COMMAND_TASK_CHECKPOINT:
	case COMMAND_TASK_NOTICE:
	case COMMAND_MEMORY_RELEASED:
	case COMMAND_GPU_REPORT:
		return true;
	default:
		return false;
	}
}

/* In the loop's thread. */

static void engine_refuse(struct engine *engine, struct engine_request *request,
                          enum error_code code, const char *text)
{
	while (request) {
		/* Once delivered, it is no longer ours to look at. */
		struct engine_request *next = request->together;
		request->ok = false;
		error_set(&request->error, code, "%s", text);
		delivery_ask(engine->delivery, request);
		request = next;
	}
}

static void take_request(struct engine_port *port, struct engine_request *request)
{
	struct engine *engine = (struct engine *)port;
	if (request->read) {
		librarian_ask(engine->librarian, request);
		return;
	}
	int state = atomic_load(&engine->state);
	if (state != ENGINE_LEADING)
		engine_refuse(engine, request, ERROR_UNAVAILABLE,
		              state == ENGINE_WAITING
		                  ? "this scheduler is not the active one: it waits to take over"
		                  : "the scheduler is stopping");
	else if (!request->patient && !request->look && atomic_load(&engine->store_fails))
		engine_refuse(engine, request, ERROR_UNAVAILABLE,
		              "the store cannot commit now: nothing was changed, try again later");
	else if (!request->patient && atomic_load(&engine->inbox.count) >= engine->options.asks_max)
		engine_refuse(engine, request, ERROR_FULL,
		              "too much is waiting for the scheduler: try again later");
	else if (request->patient && request->has_command && is_fact(request->command.kind))
		inbox_put_lazily(&engine->inbox, request);
	else
		inbox_put(&engine->inbox, request);
}

static void tell_health(struct engine_port *port, struct engine_health *health)
{
	struct engine *engine = (struct engine *)port;
	*health = (struct engine_health){
		.leading = atomic_load(&engine->state) == ENGINE_LEADING,
		.term = atomic_load(&engine->term),
		.waiting = atomic_load(&engine->inbox.count),
		.passes = atomic_load(&engine->passes),
		.pass_us_total = atomic_load(&engine->pass_us_total),
		.clock_off_ms = atomic_load(&engine->clock_off_ms),
		.clock_steps = atomic_load(&engine->clock_steps),
	};
	if (!health->leading)
		return;
	writer_health(engine->writer, &health->writer);
	health->has_redis = engine->redis != NULL;
	if (engine->redis)
		redis_health(engine->redis, &health->redis);
}

static int64_t tell_time_ms(struct engine_port *port)
{
	struct engine *engine = (struct engine *)port;
	if (atomic_load(&engine->state) != ENGINE_LEADING)
		return clock_unix_ms();
	return (clock_boot_us() + atomic_load(&engine->offset_us)) / 1000;
}

/* SQLite's lock is held as long as the process lives. */
static int64_t tell_active_ms(struct engine_port *port)
{
	struct engine *engine = (struct engine *)port;
	if (atomic_load(&engine->state) != ENGINE_LEADING)
		return 0;
	return store_is_postgres(engine->store) ? atomic_load(&engine->active_ms)
	                                        : clock_steady_ms();
}

/* In the writer's thread. */

static void engine_on_durable(void *context, const struct batch *batch)
{
	struct engine *engine = context;
	bool is_committed = batch->began_us > 0;
	if (is_committed) {
		atomic_store(&engine->active_ms, batch->began_us / 1000);
		catalogue_apply(engine->port.catalogue, batch);
	}
	delivery_batch(engine->delivery, batch);
	atomic_fetch_add(&engine->durable, (int64_t)batch->reply_count);
	if (engine->redis && is_committed)
		redis_publish(engine->redis, batch, store_position(engine->store).batch);
}

static void engine_on_failed(void *context, const struct error *error)
{
	struct engine *engine = context;
	engine->options.failed(engine->options.context, error);
}

static void tell_changed(void *context)
{
	struct engine *engine = context;
	if (engine->port.listener.changed)
		engine->port.listener.changed(engine->port.listener.context);
}

static void engine_on_changed(void *context)
{
	struct engine *engine = context;
	struct writer *writer = atomic_load(&engine->writer);
	struct writer_health health;
	if (!writer) /* it has only just begun */
		return;
	writer_health(writer, &health);
	atomic_store(&engine->store_fails, !health.ok);
	char sentence[ERROR_TEXT_MAX + 64];
	snprintf(sentence, sizeof(sentence), "%s%s",
	         health.ok ? "the store commits again" : "the store cannot commit: ",
	         health.ok ? "" : health.reason);
	engine_note(engine, sentence);
	delivery_call(engine->delivery, tell_changed, engine);
}

/* In the core's thread. */

/* Requests to models are never stored: one that changes no record needs no transaction. */
static bool is_volatile(const struct engine *engine, const struct command *command)
{
	if (command->kind != COMMAND_REQUEST && command->kind != COMMAND_REQUEST_DONE &&
	    command->kind != COMMAND_REQUEST_RENEW)
		return false;
	for (size_t i = 0; i < engine->effects.count; i++)
		if (engine->effects.at[i].kind != EFFECT_ROUTE)
			return false;
	return true;
}

/* Time passed and nothing else happened. No answer depends on that, and nobody waits for it. */
static bool is_idle(const struct engine *engine, const struct command *command)
{
	if (!command || (command->kind != COMMAND_PASS && command->kind != COMMAND_TIME))
		return false;
	for (size_t i = 0; i < engine->effects.count; i++) {
		const struct effect *effect = &engine->effects.at[i];
		if (effect->kind != EFFECT_PUT || effect->record_kind != RECORD_META)
			return false;
	}
	return true;
}

/* People, requests to models, and what was decided do not wait for others. */
static bool can_wait(const struct engine *engine, const struct command *command,
                     const struct engine_request *request)
{
	if (!command || (request && !request->patient))
		return false;
	if (is_idle(engine, command))
		return true;
	if (!is_fact(command->kind) && command->kind != COMMAND_TIME)
		return false;
	for (size_t i = 0; i < engine->effects.count; i++)
		if (engine->effects.at[i].kind == EFFECT_ROUTE)
			return false;
	return true;
}

static void engine_add(struct engine *engine, const struct command *command,
                       struct engine_request *request)
{
	/* Once added, the engine request and the command in it are no longer ours to look at. */
	bool hurries = !can_wait(engine, command, request);
	int64_t added = atomic_fetch_add(&engine->added, 1) + 1;
	if (request || !is_idle(engine, command))
		engine->awaited = added;
	writer_add(engine->writer, command, command ? &engine->effects : NULL, request);
	engine->hurries = engine->hurries || hurries;
}

/* Somebody may wait for what was added. */
static void hurry(struct engine *engine)
{
	if (engine->hurries)
		writer_hurry(engine->writer);
	engine->hurries = false;
}

/* The clock: see timekeeper.h. */

static void publish_time(struct engine *engine)
{
	const struct timekeeper *keeper = &engine->keeper;
	atomic_store(&engine->offset_us, keeper->time_us - keeper->steady_us);
	atomic_store(&engine->clock_off_ms, keeper->off_ms);
	atomic_store(&engine->clock_steps, keeper->steps);
}

static void note_clock(struct engine *engine, const char *before, int64_t off_ms, const char *after)
{
	char sentence[256], off[64];
	timekeeper_print(off, sizeof(off), off_ms);
	snprintf(sentence, sizeof(sentence), "%s%s%s", before, off, after);
	engine_note(engine, sentence);
}

static void tell_step(struct engine *engine, enum timekeeper_news news)
{
	if (news == TIME_STEPPED)
		note_clock(engine, "the system clock jumped: it is ", engine->keeper.off_ms,
		           " the scheduler's time. This is not followed unless it lasts");
	else if (news == TIME_BACK)
		engine_note(engine, "the system clock agrees with the scheduler's time again");
	if (news == TIME_STEPPED || news == TIME_BACK)
		delivery_call(engine->delivery, tell_changed, engine);
}

/* What time it is for the core. */
static int64_t engine_read_time(struct engine *engine)
{
	enum timekeeper_news news;
	int64_t time_ms = timekeeper_read(&engine->keeper, clock_unix_us(), clock_boot_us(), &news);
	publish_time(engine);
	tell_step(engine, news);
	return time_ms;
}

/* True if the core may have something to decide after the command that was applied. A place
 * in a slot that is granted makes room for nobody; one that is given back may serve whoever
 * waits. */
static bool wants_pass(const struct engine *engine, const struct command *command)
{
	if (!is_volatile(engine, command))
		return true;
	for (size_t i = 0; i < engine->effects.count; i++)
		if (engine->effects.at[i].route.outcome != ROUTE_GRANTED)
			return true;
	return command->kind == COMMAND_REQUEST_DONE && sched_has_waiting(engine->sched);
}

/* Applies it; whether a pass is wanted, and how soon, is noted. */
static bool apply_at(struct engine *engine, struct command *command,
                     const struct engine_request *request, int64_t now_ms, struct error *error)
{
	bool more = false;

	command->now_ms = now_ms;
	effects_clear(&engine->effects);
	if (!sched_apply(engine->sched, command, &engine->effects, error))
		return false;
	for (size_t i = 0; i < engine->effects.count; i++)
		more = more || engine->effects.at[i].kind == EFFECT_MORE;
	if ((command->kind == COMMAND_PASS && !more) || !wants_pass(engine, command))
		return true;
	if (!can_wait(engine, command, request))
		engine->gather_us = 0;
	else if (!engine->changed)
		engine->gather_us = clock_steady_us() + FACTS_MS * 1000;
	engine->changed = true;
	return true;
}

static bool engine_apply(struct engine *engine, struct command *command,
                         const struct engine_request *request, struct error *error)
{
	return apply_at(engine, command, request, engine_read_time(engine), error);
}

/* Applies a command that nobody waits for. */
static void apply_own(struct engine *engine, struct command command)
{
	struct error error;
	if (!engine_apply(engine, &command, NULL, &error)) {
		engine_note(engine, error.text);
		return;
	}
	if (engine->effects.count > 0)
		engine_add(engine, &command, NULL);
	hurry(engine);
}

/* The core is told that its clock was wrong. */
static void move_clock(struct engine *engine, int64_t to_us, bool clamp)
{
	struct command command = { .kind = COMMAND_CLOCK };
	command.clock.to_ms = to_us / 1000;
	command.clock.clamp = clamp;
	apply_own(engine, command);
	timekeeper_set(&engine->keeper, to_us, clock_boot_us());
	publish_time(engine);
}

/* Follows a step of the system clock that has lasted. */
static void follow_clock(struct engine *engine)
{
	enum timekeeper_news news;
	int64_t wall_us = clock_unix_us();
	timekeeper_read(&engine->keeper, wall_us, clock_boot_us(), &news);
	tell_step(engine, news);
	if (news != TIME_LASTED)
		return;
	note_clock(engine, "the system clock stays ", engine->keeper.off_ms,
	           " the scheduler's time: all times move with it, and no duration changes");
	move_clock(engine, wall_us, false);
	delivery_call(engine->delivery, tell_changed, engine);
}

static void keep_things(struct engine *engine, const struct engine_request *request)
{
	for (size_t i = 0; i < request->keep_count; i++)
		writer_keep(engine->writer, request->keeps[i].kind, request->keeps[i].key,
		            request->keeps[i].value);
}

/* True if nothing that the core has decided can still be lost. */
static bool is_all_durable(const struct engine *engine)
{
	return atomic_load(&engine->durable) >= engine->awaited;
}

/* An answer that changed nothing waits only if what it saw may still be lost. */
static void answer_unchanged(struct engine *engine, struct engine_request *request)
{
	if (is_all_durable(engine))
		delivery_ask(engine->delivery, request);
	else
		engine_add(engine, NULL, request);
}

/* The answer to a volatile command leaves now, or behind what is being stored, in the order of
 * commands. The journal has its commands in the next transaction. */
static void answer_volatile(struct engine *engine, struct engine_request *request)
{
	const struct command *journaled = engine->journal ? &request->command : NULL;
	if (is_all_durable(engine)) {
		if (journaled)
			writer_note(engine->writer, journaled);
		delivery_effects(engine->delivery, &engine->effects, request);
		return;
	}
	atomic_fetch_add(&engine->added, 1);
	engine->awaited = atomic_load(&engine->added);
	engine->hurries = true;
	writer_add(engine->writer, journaled, &engine->effects, request);
}

/* Whether the core would take all of them now. */
static bool takes_all(struct engine *engine, struct engine_request *first, int64_t now_ms)
{
	struct submit_trial *trials = NULL;
	size_t count = 0, capacity = 0;
	for (struct engine_request *request = first; request; request = request->together) {
		array_reserve(trials, capacity, count + 1);
		trials[count++] = (struct submit_trial){ .submit = &request->command.submit,
			                                 .error = &request->error };
	}
	bool all = sched_takes_all(engine->sched, trials, count, now_ms);
	free(trials);
	return all;
}

/* Nothing comes between what is asked and what is done, so what the core said it would take
 * it takes; and all of it is one transaction. */
static void serve_together(struct engine *engine, struct engine_request *request)
{
	int64_t now_ms = engine_read_time(engine);
	bool all = takes_all(engine, request, now_ms);
	struct engine_request *next;
	writer_join(engine->writer);
	for (; request; request = next) {
		next = request->together;
		request->ok = all;
		if (!all)
			answer_unchanged(engine, request);
		else if (apply_at(engine, &request->command, request, now_ms, &request->error))
			engine_add(engine, &request->command, request);
		else
			panic("a job that was to be taken is refused: %s", request->error.text);
	}
	writer_part(engine->writer);
}

static void engine_serve(struct engine *engine, struct engine_request *request)
{
	if (request->together) {
		serve_together(engine, request);
		return;
	}
	if (request->look) {
		request->ok = request->look(request, engine->sched, &request->error);
		answer_unchanged(engine, request);
		return;
	}
	request->ok = !request->has_command ||
	              engine_apply(engine, &request->command, request, &request->error);
	if (!request->ok) {
		answer_unchanged(engine, request);
		return;
	}
	if (request->has_command && request->keep_count == 0 &&
	    is_volatile(engine, &request->command)) {
		answer_volatile(engine, request);
		return;
	}
	keep_things(engine, request);
	engine_add(engine, request->has_command ? &request->command : NULL, request);
}

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
	engine->changed = false;
	steps_before(engine->sched, engine->port.catalogue);
	apply_own(engine,
	          (struct command){ .kind = COMMAND_PASS, .units = engine->options.pass_units });
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

static void engine_configure(struct engine *engine)
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
		apply_own(engine,
		          (struct command){ .kind = COMMAND_CONFIGURE, .configure = config });
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
			follow_clock(engine);
			apply_own(engine, (struct command){ .kind = COMMAND_TIME });
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

static void engine_work(struct engine *engine)
{
	struct engine_request *request = NULL;
	int done = 0;
	while (!inbox_is_closed(&engine->inbox) || request) {
		if (!request && gathers(engine))
			inbox_doze(&engine->inbox, sleep_us(engine));
		if (!request)
			request = inbox_take(&engine->inbox, sleep_us(engine));
		for (done = 0; request && done < ASKS_AT_ONCE; done++) {
			struct engine_request *next = request->next;
			if (!wait_for_room(engine))
				return;
			engine_serve(engine, request);
			if (!next || done % HURRY_AFTER == HURRY_AFTER - 1)
				hurry(engine);
			request = next;
		}
		/* When someone asks, ticks have been slow for no longer. */
		if (done > 0)
			engine->next_tick_us = min64(engine->next_tick_us,
			                             clock_steady_us() + TICK_MS * INT64_C(1000));
		engine_tick(engine);
	}
}

/* Beginning. */

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

/* What is stored may be ahead of the clock: by a moment after a restart or a takeover, by
 * years where the clock was wrong. */
static void begin_time(struct engine *engine)
{
	int64_t stored_ms = sched_meta(engine->sched)->now_ms, wall_us = clock_unix_us();
	int64_t ahead_ms = stored_ms - wall_us / 1000, step_ms = engine->options.clock_step_ms;
	engine->keeper = timekeeper_begin(step_ms, engine->options.clock_hold_ms,
	                                  max64(wall_us, stored_ms * 1000), clock_boot_us());
	publish_time(engine);
	if (ahead_ms <= step_ms)
		return;
	note_clock(engine, "what is stored is ", ahead_ms,
	           " the system clock: times that have not come yet are set to now");
	move_clock(engine, wall_us, true);
}

static bool engine_begin(struct engine *engine)
{
	if (!wait_to_lead(engine) || !engine_load(engine))
		return false;
	if (engine->options.redis)
		engine->redis =
		    redis_start(engine->options.redis, sched_meta(engine->sched)->term + 1);
	start_writer(engine);
	begin_time(engine);
	apply_own(engine, (struct command){ .kind = COMMAND_START });
	apply_own(engine, (struct command){ .kind = COMMAND_RESET_REQUESTS });
	engine_configure(engine);
	atomic_store(&engine->term, sched_meta(engine->sched)->term);
	/* Nobody hears of a term before it is stored. */
	while (atomic_load(&engine->durable) < atomic_load(&engine->added)) {
		if (inbox_is_closed(&engine->inbox))
			return false;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return true;
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
	engine->options = *options;
	if (options->pass_units == 0)
		engine->options.pass_units = PASS_UNITS_DEFAULT;
	if (options->asks_max == 0)
		engine->options.asks_max = ASKS_MAX;
	if (options->clock_step_ms == 0)
		engine->options.clock_step_ms = CLOCK_STEP_MS;
	if (options->clock_hold_ms == 0)
		engine->options.clock_hold_ms = CLOCK_HOLD_MS;
	engine->port = (struct engine_port){
		.send = take_request,
		.health = tell_health,
		.active_ms = tell_active_ms,
		.time_ms = tell_time_ms,
		.catalogue = catalogue_new(),
		.loop = options->loop,
	};
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
