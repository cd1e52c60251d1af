/* engine_apply.c - commands on their way through the core to the writer */
#include "server/engine_local.h"

enum { FACTS_MS = 20 /* delay of reports of nodes */ };

bool engine_is_fact(enum command_kind kind)
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

bool engine_is_volatile(const struct engine *engine, const struct command *command)
{
	if (command->kind != COMMAND_REQUEST && command->kind != COMMAND_REQUEST_DONE &&
	    command->kind != COMMAND_REQUEST_RENEW)
		return false;
	for (size_t i = 0; i < engine->effects.count; i++)
		if (engine->effects.at[i].kind != EFFECT_ROUTE)
			return false;
	return true;
}

/* True if time passed and nothing else changed: no answer depends on that. */
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

/* True if the effects may be stored later, with others. Requests of people and of models, and
 * decisions, are not delayed. */
static bool engine_can_wait(const struct engine *engine, const struct command *command,
                            const struct engine_request *request)
{
	if (!command || (request && !request->patient))
		return false;
	if (is_idle(engine, command))
		return true;
	if (!engine_is_fact(command->kind) && command->kind != COMMAND_TIME)
		return false;
	for (size_t i = 0; i < engine->effects.count; i++)
		if (engine->effects.at[i].kind == EFFECT_ROUTE)
			return false;
	return true;
}

void engine_add(struct engine *engine, const struct command *command,
                struct engine_request *request)
{
	/* Once added, the request and the command in it belong to the writer. */
	bool hurries = !engine_can_wait(engine, command, request);

	INVARIANT(engine->writer && (command || request));
	int64_t added = atomic_fetch_add(&engine->added, 1) + 1;
	if (request || !is_idle(engine, command))
		engine->awaited = added;
	INVARIANT(engine->awaited <= added);
	writer_add(engine->writer, command, command ? &engine->effects : NULL, request);
	engine->hurries = engine->hurries || hurries;
}

void engine_hurry(struct engine *engine)
{
	INVARIANT(engine->writer || !engine->hurries);
	if (engine->hurries)
		writer_hurry(engine->writer);
	engine->hurries = false;
}

/* True if the command may lead to a decision. A lease that is granted frees nothing; one that is
 * returned may serve a request that waits. */
static bool wants_pass(const struct engine *engine, const struct command *command)
{
	if (!engine_is_volatile(engine, command))
		return true;
	for (size_t i = 0; i < engine->effects.count; i++)
		if (engine->effects.at[i].route.outcome != ROUTE_GRANTED)
			return true;
	return command->kind == COMMAND_REQUEST_DONE && sched_has_waiting(engine->sched);
}

bool engine_apply_at(struct engine *engine, struct command *command,
                     const struct engine_request *request, int64_t now_ms, struct error *error)
{
	bool more = false;

	INVARIANT(engine->sched && (!request || &request->command == command));
	command->now_ms = now_ms;
	effects_clear(&engine->effects);
	if (!sched_apply(engine->sched, command, &engine->effects, error))
		return false;
	for (size_t i = 0; i < engine->effects.count; i++)
		more = more || engine->effects.at[i].kind == EFFECT_MORE;
	if ((command->kind == COMMAND_PASS && !more) || !wants_pass(engine, command))
		return true;
	if (!engine_can_wait(engine, command, request))
		engine->gather_us = 0;
	else if (!engine->changed)
		engine->gather_us = clock_steady_us() + FACTS_MS * 1000;
	engine->changed = true;
	return true;
}

bool engine_apply(struct engine *engine, struct command *command,
                  const struct engine_request *request, struct error *error)
{
	return engine_apply_at(engine, command, request, engine_read_time(engine), error);
}

void engine_apply_own(struct engine *engine, struct command command)
{
	struct error error;
	INVARIANT(engine->writer); /* it keeps what came of the command */
	if (!engine_apply(engine, &command, NULL, &error)) {
		engine_note(engine, error.text);
		return;
	}
	if (engine->effects.count > 0)
		engine_add(engine, &command, NULL);
	engine_hurry(engine);
}
