/* engine_clock.c - the time that the core is given */
#include "server/engine_local.h"

#include <stdio.h>

static void engine_publish_time(struct engine *engine)
{
	const struct timekeeper *keeper = &engine->keeper;
	atomic_store(&engine->offset_us, keeper->time_us - keeper->steady_us);
	atomic_store(&engine->clock_off_ms, keeper->off_ms);
	atomic_store(&engine->clock_steps, keeper->steps);
}

static void engine_note_clock(struct engine *engine, const char *before, int64_t off_ms,
                              const char *after)
{
	char sentence[256], off[64];
	timekeeper_print(off, sizeof(off), off_ms);
	snprintf(sentence, sizeof(sentence), "%s%s%s", before, off, after);
	engine_note(engine, sentence);
}

static void tell_step(struct engine *engine, enum timekeeper_news news)
{
	if (news == TIME_STEPPED)
		engine_note_clock(engine, "the system clock jumped: it is ", engine->keeper.off_ms,
		                  " the scheduler's time. This is not followed unless it lasts");
	else if (news == TIME_BACK)
		engine_note(engine, "the system clock agrees with the scheduler's time again");
	if (news == TIME_STEPPED || news == TIME_BACK)
		delivery_call(engine->delivery, engine_tell_changed, engine);
}

int64_t engine_read_time(struct engine *engine)
{
	enum timekeeper_news news;
	INVARIANT(engine->keeper.step_ms > 0); /* it has begun */
	int64_t time_ms = timekeeper_read(&engine->keeper, clock_unix_us(), clock_boot_us(), &news);
	engine_publish_time(engine);
	tell_step(engine, news);
	return time_ms;
}

/* Tells the core that its clock was wrong. */
static void engine_move_clock(struct engine *engine, int64_t to_us, bool clamp)
{
	struct command command = { .kind = COMMAND_CLOCK };
	command.clock.to_ms = to_us / 1000;
	command.clock.clamp = clamp;
	engine_apply_own(engine, command);
	timekeeper_set(&engine->keeper, to_us, clock_boot_us());
	engine_publish_time(engine);
}

void engine_follow_clock(struct engine *engine)
{
	enum timekeeper_news news;
	int64_t wall_us = clock_unix_us();
	timekeeper_read(&engine->keeper, wall_us, clock_boot_us(), &news);
	tell_step(engine, news);
	if (news != TIME_LASTED)
		return;
	engine_note_clock(engine, "the system clock stays ", engine->keeper.off_ms,
	                  " the scheduler's time: all times move with it, and no duration changes");
	engine_move_clock(engine, wall_us, false);
	delivery_call(engine->delivery, engine_tell_changed, engine);
}

/* Stored times may be ahead of the clock: by a moment after a restart or a takeover, by years if
 * the clock was wrong. */
void engine_begin_time(struct engine *engine)
{
	INVARIANT(engine->sched && engine->writer);
	int64_t stored_ms = sched_meta(engine->sched)->now_ms, wall_us = clock_unix_us();
	int64_t ahead_ms = stored_ms - wall_us / 1000, step_ms = engine->options.clock_step_ms;
	engine->keeper = timekeeper_begin(step_ms, engine->options.clock_hold_ms,
	                                  max64(wall_us, stored_ms * 1000), clock_boot_us());
	engine_publish_time(engine);
	if (ahead_ms <= step_ms)
		return;
	engine_note_clock(engine, "what is stored is ", ahead_ms,
	                  " the system clock: times that have not come yet are set to now");
	engine_move_clock(engine, wall_us, true);
}
