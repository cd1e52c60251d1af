/* standin.c - a desk for tests: a real core that answers when it is told to */
#include "standin.h"

#include <stdlib.h>

enum { PASS_UNITS = 1000 };

static void take(struct desk *desk, struct ask *ask)
{
	struct standin *standin = (struct standin *)desk;
	INVARIANT(!ask->together);
	ask->next = NULL;
	if (standin->last)
		standin->last->next = ask;
	else
		standin->first = ask;
	standin->last = ask;
}

static void tell_health(struct desk *desk, struct desk_health *health)
{
	const struct standin *standin = (const struct standin *)desk;
	*health = (struct desk_health){ .leading = true, .term = 1 };
	health->writer.ok = standin->healthy;
}

static int64_t tell_active_ms(struct desk *desk)
{
	return loop_now_ms(desk->loop);
}

struct standin *standin_new(struct loop *loop)
{
	struct standin *standin = NEW(struct standin);
	schema_init(&standin->schema);
	standin->sched = sched_new();
	standin->batch = batch_new(&standin->schema);
	standin->now_ms = 1000;
	standin->healthy = true;
	standin->desk = (struct desk){ .ask = take,
		                       .health = tell_health,
		                       .active_ms = tell_active_ms,
		                       .catalogue = catalogue_new(),
		                       .loop = loop };
	return standin;
}

void standin_free(struct standin *standin)
{
	catalogue_free(standin->desk.catalogue);
	batch_free(standin->batch);
	effects_free(&standin->effects);
	sched_free(standin->sched);
	free(standin);
}

static void deliver(const struct desk_listener *listener, const struct effect *effect)
{
	switch (effect->kind) {
	case EFFECT_START:
	case EFFECT_STOP:
	case EFFECT_LOAD:
		if (listener->order)
			listener->order(listener->context, effect);
		break;
	case EFFECT_ROUTE:
		if (listener->route)
			listener->route(listener->context, &effect->route);
		break;
	case EFFECT_EVENT:
		if (listener->event)
			listener->event(listener->context, &effect->event);
		break;
	default:
		break;
	}
}

/* What the last command did becomes durable. */
static void commit(struct standin *standin, const struct command *command)
{
	struct batch *batch = standin->batch;
	batch_add(batch, command, &standin->effects, NULL);
	catalogue_apply(standin->desk.catalogue, batch);
	for (size_t i = 0; i < batch->outgoing_count; i++)
		deliver(&standin->desk.listener, &batch->outgoing[i]);
	batch_clear(batch);
}

static bool apply(struct standin *standin, struct command *command, struct error *error)
{
	command->now_ms = ++standin->now_ms;
	effects_clear(&standin->effects);
	return sched_apply(standin->sched, command, &standin->effects, error);
}

int64_t standin_apply(struct standin *standin, struct command command)
{
	struct error error = { 0 };
	if (!apply(standin, &command, &error))
		panic("%s", error.text);
	int64_t reply_id = standin->effects.reply_id;
	commit(standin, &command);
	return reply_id;
}

int64_t standin_tenant(struct standin *standin, const char *name)
{
	return standin_apply(standin,
	                     (struct command){ .kind = COMMAND_PUT_TENANT,
	                                       .tenant = { .name = name,
	                                                   .payload = "{}",
	                                                   .limit_gpu = UNLIMITED,
	                                                   .limit_cpu = UNLIMITED,
	                                                   .limit_host = UNLIMITED,
	                                                   .limit_gpu_memory = UNLIMITED,
	                                                   .limit_jobs = UNLIMITED,
	                                                   .quota_gpu = QUOTA_UNSET,
	                                                   .quota_cpu = QUOTA_UNSET,
	                                                   .quota_host = QUOTA_UNSET,
	                                                   .weight = 1000,
	                                                   .allow_preemption = true,
	                                                   .max_preemptions = UNLIMITED,
	                                                   .queue_max = UNLIMITED,
	                                                   .budget_per_month = UNLIMITED } });
}

static void serve(struct standin *standin, struct ask *ask)
{
	if (ask->read) {
		ask->ok = error_set(&ask->error, ERROR_NOT_FOUND, "nothing is stored here");
	} else if (ask->look) {
		ask->ok = ask->look(ask, standin->sched, &ask->error);
	} else {
		ask->ok = !ask->has_command || apply(standin, &ask->command, &ask->error);
		if (ask->ok && ask->has_command) {
			ask->reply_id = standin->effects.reply_id;
			ask->reply_count = standin->effects.reply_count;
			ask->repeated = standin->effects.repeated;
			commit(standin, &ask->command);
		}
	}
	ask->done(ask);
}

static void serve_all(struct standin *standin)
{
	while (standin->first) {
		struct ask *ask = standin->first;
		standin->first = ask->next;
		if (!standin->first)
			standin->last = NULL;
		serve(standin, ask);
	}
}

void standin_settle(struct standin *standin)
{
	serve_all(standin);
	standin_apply(standin, (struct command){ .kind = COMMAND_PASS, .units = PASS_UNITS });
	serve_all(standin);
}
