/* standin.c - a engine for tests: a real core that answers when it is told to */
#include "standin.h"

#include <stdlib.h>

enum { PASS_UNITS = 1000 };

static void standin_acquire(struct engine_port *port, struct engine_request *request)
{
	struct standin *standin = (struct standin *)port;
	INVARIANT(!request->together);
	request->next = NULL;
	if (standin->last)
		standin->last->next = request;
	else
		standin->first = request;
	standin->last = request;
}

static void tell_health(struct engine_port *port, struct engine_health *health)
{
	const struct standin *standin = (const struct standin *)port;
	*health = (struct engine_health){ .leading = true, .term = 1 };
	health->writer.ok = standin->healthy;
}

static int64_t tell_active_ms(struct engine_port *port)
{
	return loop_now_ms(port->loop);
}

struct standin *standin_new(struct loop *loop)
{
	struct standin *standin = NEW(struct standin);
	schema_init(&standin->schema);
	standin->sched = sched_new();
	standin->batch = batch_new(&standin->schema);
	standin->now_ms = 1000;
	standin->healthy = true;
	standin->port = (struct engine_port){ .send = standin_acquire,
		                              .health = tell_health,
		                              .active_ms = tell_active_ms,
		                              .catalogue = catalogue_new(),
		                              .loop = loop };
	return standin;
}

void standin_free(struct standin *standin)
{
	catalogue_free(standin->port.catalogue);
	batch_free(standin->batch);
	effects_free(&standin->effects);
	sched_free(standin->sched);
	free(standin);
}

static void standin_deliver(const struct engine_listener *listener, const struct effect *effect)
{
	switch (effect->kind) {
	case EFFECT_START:
	case EFFECT_STOP:
	case EFFECT_LOAD:
	case EFFECT_SUSPEND:
	case EFFECT_RESUME:
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
static void standin_commit(struct standin *standin, const struct command *command)
{
	struct batch *batch = standin->batch;
	batch_add(batch, command, &standin->effects, NULL);
	catalogue_apply(standin->port.catalogue, batch);
	for (size_t i = 0; i < batch->outgoing_count; i++)
		standin_deliver(&standin->port.listener, &batch->outgoing[i]);
	batch_clear(batch);
}

static bool standin_execute(struct standin *standin, struct command *command, struct error *error)
{
	command->now_ms = ++standin->now_ms;
	effects_clear(&standin->effects);
	return sched_apply(standin->sched, command, &standin->effects, error);
}

int64_t standin_apply(struct standin *standin, struct command command)
{
	struct error error = { 0 };
	if (!standin_execute(standin, &command, &error))
		panic("%s", error.text);
	int64_t reply_id = standin->effects.reply_id;
	standin_commit(standin, &command);
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

static void standin_serve(struct standin *standin, struct engine_request *request)
{
	if (request->read) {
		request->ok = error_set(&request->error, ERROR_NOT_FOUND, "nothing is stored here");
	} else if (request->look) {
		request->ok = request->look(request, standin->sched, &request->error);
	} else {
		request->ok = !request->has_command ||
		              standin_execute(standin, &request->command, &request->error);
		if (request->ok && request->has_command) {
			request->reply_id = standin->effects.reply_id;
			request->reply_count = standin->effects.reply_count;
			request->repeated = standin->effects.repeated;
			standin_commit(standin, &request->command);
		}
	}
	request->done(request);
}

static void serve_all(struct standin *standin)
{
	while (standin->first) {
		struct engine_request *request = standin->first;
		standin->first = request->next;
		if (!standin->first)
			standin->last = NULL;
		standin_serve(standin, request);
	}
}

void standin_settle(struct standin *standin)
{
	serve_all(standin);
	standin_apply(standin, (struct command){ .kind = COMMAND_PASS, .units = PASS_UNITS });
	serve_all(standin);
}
