/* engine_serve.c - requests in the core's thread: applied, and answered when that is durable */
#include "server/engine_local.h"

#include <stdlib.h>

static void keep_things(struct engine *engine, const struct engine_request *request)
{
	for (size_t i = 0; i < request->keep_count; i++)
		writer_keep(engine->writer, request->keeps[i].kind, request->keeps[i].key,
		            request->keeps[i].value);
}

/* True if nothing that the core has decided can still be lost. */
static bool is_all_durable(const struct engine *engine)
{
	INVARIANT(engine->awaited <= atomic_load(&engine->added));
	return atomic_load(&engine->durable) >= engine->awaited;
}

/* An answer without a change waits only while what it saw may still be lost. */
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

	INVARIANT(request->ok && request->keep_count == 0);
	if (is_all_durable(engine)) {
		if (journaled)
			writer_note(engine->writer, journaled);
		delivery_effects(engine->delivery, &engine->effects, request);
		return;
	}
	engine->awaited = atomic_fetch_add(&engine->added, 1) + 1;
	engine->hurries = true;
	writer_add(engine->writer, journaled, &engine->effects, request);
}

/* True if the core would accept all of them now. */
static bool takes_all(struct engine *engine, struct engine_request *first, int64_t now_ms)
{
	struct submit_trial *trials = NULL;
	size_t count = 0, capacity = 0;
	for (struct engine_request *request = first; request; request = request->together) {
		INVARIANT(request->has_command && request->command.kind == COMMAND_SUBMIT);
		array_reserve(trials, capacity, count + 1);
		trials[count++] = (struct submit_trial){ .submit = &request->command.submit,
			                                 .error = &request->error };
	}
	bool all = sched_takes_all(engine->sched, trials, count, now_ms);
	free(trials);
	return all;
}

/* All or none, in one transaction. Nothing comes between the trial and the submissions, so what
 * the core accepted in the trial it accepts. */
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
		else if (engine_apply_at(engine, &request->command, request, now_ms,
		                         &request->error))
			engine_add(engine, &request->command, request);
		else
			panic("a job that was to be taken is refused: %s", request->error.text);
	}
	writer_part(engine->writer);
}

void engine_serve(struct engine *engine, struct engine_request *request)
{
	INVARIANT(!request->read && !(request->look && request->has_command));
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
	    engine_is_volatile(engine, &request->command)) {
		answer_volatile(engine, request);
		return;
	}
	keep_things(engine, request);
	engine_add(engine, request->has_command ? &request->command : NULL, request);
}
