/* delivery.c - what has become durable, on its way to the loop's thread */
#include "server/delivery.h"

#include <stdlib.h>
#include <string.h>

enum { CALLS_MAX = 8 };

/* What waits, in order: an effect (`request` is NULL), or the answer to a request. */
struct item {
	struct effect effect;
	struct engine_request *request;
};

struct load {
	struct item *items;
	size_t count, capacity;
	struct arena arena;
	struct {
		void (*call)(void *context);
		void *context;
	} calls[CALLS_MAX];
	size_t call_count;
};

/* The mutex guards `filling` and `is_posted`. `emptying` belongs to the loop's thread. */
struct delivery {
	struct post post; /* first: one pointer is the other */
	struct engine_port *port;
	pthread_mutex_t mutex;
	struct load loads[2];
	struct load *filling, *emptying;
	bool is_posted;
};

static void deliver_effect(const struct engine_listener *to, const struct effect *effect)
{
	switch (effect->kind) {
	case EFFECT_START:
	case EFFECT_STOP:
	case EFFECT_LOAD:
	case EFFECT_SUSPEND:
	case EFFECT_RESUME:
		if (to->order)
			to->order(to->context, effect);
		break;
	case EFFECT_ROUTE:
		if (to->route)
			to->route(to->context, &effect->route);
		break;
	case EFFECT_EVENT:
		if (to->event)
			to->event(to->context, &effect->event);
		break;
	default:
		break;
	}
}

static void delivery_run(struct post *post)
{
	struct delivery *delivery = (struct delivery *)post;
	pthread_mutex_lock(&delivery->mutex);
	struct load *load = delivery->filling;
	INVARIANT(delivery->is_posted && delivery->emptying->count == 0);
	delivery->filling = delivery->emptying;
	delivery->emptying = load;
	delivery->is_posted = false;
	pthread_mutex_unlock(&delivery->mutex);

	for (size_t i = 0; i < load->call_count; i++)
		load->calls[i].call(load->calls[i].context);
	for (size_t i = 0; i < load->count; i++) {
		struct engine_request *request = load->items[i].request;
		if (request)
			request->done(request);
		else
			deliver_effect(&delivery->port->listener, &load->items[i].effect);
	}
	load->count = load->call_count = 0;
	arena_reset(&load->arena);
}

struct delivery *delivery_new(struct engine_port *port)
{
	struct delivery *delivery = NEW(struct delivery);
	delivery->post.run = delivery_run;
	delivery->port = port;
	delivery->filling = &delivery->loads[0];
	delivery->emptying = &delivery->loads[1];
	pthread_mutex_init(&delivery->mutex, NULL);
	return delivery;
}

void delivery_free(struct delivery *delivery)
{
	for (int i = 0; i < 2; i++) {
		free(delivery->loads[i].items);
		arena_free(&delivery->loads[i].arena);
	}
	pthread_mutex_destroy(&delivery->mutex);
	free(delivery);
}

static struct load *delivery_begin(struct delivery *delivery)
{
	pthread_mutex_lock(&delivery->mutex);
	return delivery->filling;
}

static void delivery_finish(struct delivery *delivery)
{
	bool post = !delivery->is_posted;
	delivery->is_posted = true;
	pthread_mutex_unlock(&delivery->mutex);
	if (post)
		loop_post(delivery->port->loop, &delivery->post);
}

static struct item *delivery_add(struct load *load)
{
	array_reserve(load->items, load->capacity, load->count + 1);
	struct item *item = &load->items[load->count++];
	item->request = NULL;
	return item;
}

static bool is_delivered(enum effect_kind kind)
{
	return kind == EFFECT_START || kind == EFFECT_STOP || kind == EFFECT_LOAD ||
	       kind == EFFECT_SUSPEND || kind == EFFECT_RESUME || kind == EFFECT_ROUTE ||
	       kind == EFFECT_EVENT;
}

void delivery_batch(struct delivery *delivery, const struct batch *batch)
{
	if (batch->outgoing_count == 0 && batch->reply_count == 0)
		return;
	struct load *load = delivery_begin(delivery);
	/* Orders and routes come before events. */
	for (int events = 0; events < 2; events++) {
		for (size_t i = 0; i < batch->outgoing_count; i++) {
			const struct effect *effect = &batch->outgoing[i];
			if (is_delivered(effect->kind) &&
			    (effect->kind == EFFECT_EVENT) == (events == 1))
				delivery_add(load)->effect = effect_copy(&load->arena, effect);
		}
	}
	for (size_t i = 0; i < batch->reply_count; i++) {
		const struct batch_reply *reply = &batch->replies[i];
		struct engine_request *request = reply->cookie;
		if (!request)
			continue;
		request->reply_id = reply->reply_id;
		request->reply_count = reply->reply_count;
		request->repeated = reply->repeated;
		delivery_add(load)->request = request;
	}
	delivery_finish(delivery);
}

void delivery_effects(struct delivery *delivery, const struct effects *effects,
                      struct engine_request *request)
{
	INVARIANT(request->done);
	struct load *load = delivery_begin(delivery);
	for (size_t i = 0; i < effects->count; i++)
		if (effects->at[i].kind == EFFECT_ROUTE)
			delivery_add(load)->effect = effect_copy(&load->arena, &effects->at[i]);
	delivery_add(load)->request = request;
	delivery_finish(delivery);
}

void delivery_ask(struct delivery *delivery, struct engine_request *request)
{
	INVARIANT(request->done);
	struct load *load = delivery_begin(delivery);
	delivery_add(load)->request = request;
	delivery_finish(delivery);
}

void delivery_call(struct delivery *delivery, void (*call)(void *context), void *context)
{
	struct load *load = delivery_begin(delivery);
	bool known = false;
	for (size_t i = 0; i < load->call_count; i++)
		known = known || (load->calls[i].call == call && load->calls[i].context == context);
	if (!known) {
		INVARIANT(load->call_count < CALLS_MAX);
		load->calls[load->call_count].call = call;
		load->calls[load->call_count++].context = context;
	}
	delivery_finish(delivery);
}
