/* engine_local.h - the engine's inside, shared by the files engine_*.c */
#ifndef SERVER_ENGINE_LOCAL_H
#define SERVER_ENGINE_LOCAL_H

#include "base/clock.h"
#include "server/delivery.h"
#include "server/engine.h"
#include "server/inbox.h"
#include "server/timekeeper.h"
#include "store/writer.h"

enum engine_state { ENGINE_WAITING, ENGINE_LEADING, ENGINE_ENDED };

/* `sched`, `effects` and the times belong to the core's thread. Atomic members are read by
 * others. Of the things given to the writer, durable <= added, and awaited <= added. */
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

/* In any thread: a sentence for the log. */
void engine_note(struct engine *engine, const char *sentence);

/* Fills in the port: how requests come in, and what the loop's thread reads of the engine. */
void engine_open_port(struct engine *engine);
/* Reports of nodes about tasks and memory. They come in bursts, so they are applied and stored
 * together, some milliseconds later. A decision between two of them would be a claim, and would be
 * made again. */
bool engine_is_fact(enum command_kind kind);

/* In the writer's thread; see struct writer_options. */
void engine_on_durable(void *context, const struct batch *batch);
void engine_on_failed(void *context, const struct error *error);
void engine_on_changed(void *context);
/* In the loop's thread: tells the port's listener that the health of the engine has changed. */
void engine_tell_changed(void *context);

/* The rest is for the core's thread. */

/* Time. */
void engine_begin_time(struct engine *engine);
/* The time of the next command. */
int64_t engine_read_time(struct engine *engine);
/* Follows a step of the system clock that has lasted. */
void engine_follow_clock(struct engine *engine);

/* Commands. */

/* Applies a command at a given time. Fills `effects`, and notes if a pass is wanted and how soon.
 * False with a reason: nothing changed. `request` is the one that has the command, or NULL. */
bool engine_apply_at(struct engine *engine, struct command *command,
                     const struct engine_request *request, int64_t now_ms, struct error *error);
/* Does so now. */
bool engine_apply(struct engine *engine, struct command *command,
                  const struct engine_request *request, struct error *error);
/* Applies a command that nobody waits for, and has it stored. */
void engine_apply_own(struct engine *engine, struct command command);
/* True if the command changed no record. The outcome of a request to a model is never stored. */
bool engine_is_volatile(const struct engine *engine, const struct command *command);
/* Gives the writer the command with its effects, and the request to answer when they are durable.
 * One of both may be NULL. Neither may be used afterwards. */
void engine_add(struct engine *engine, const struct command *command,
                struct engine_request *request);
/* Tells the writer if somebody waits for what was added. */
void engine_hurry(struct engine *engine);

/* Serves one request, or several that belong together. */
void engine_serve(struct engine *engine, struct engine_request *request);

/* Changes the core's settings to those of the configuration. */
void engine_configure(struct engine *engine);
/* Waits to lead, loads the store and begins a term. False: it failed, or the engine is to stop. */
bool engine_begin(struct engine *engine);
/* Serves until the inbox is closed. */
void engine_work(struct engine *engine);

#endif
