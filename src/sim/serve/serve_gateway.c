/* serve_gateway.c - the state machine of a gateway, between requests of a trace and the core */
#include "sim/serve/serve_gateway.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/number.h"
#include "gateway/state/gateway.h"

enum { QUEUE_MS = 86400000, NAME_MAX_LENGTH = 32 };

struct serve_call {
	struct gateway_call call;
	char name[NAME_MAX_LENGTH];
	bool open;
};

struct serve_gateway {
	struct gateway *gateway;
	struct gateway_asker *askers; /* by tenant */
	size_t tenants;
	int64_t *weights; /* by tenant */
	struct serve_call *calls;
	size_t call_count;
	int64_t *model_ids;
	size_t model_count;
	serve_send *send;
	void *context;
};

static void on_send(void *context, struct gateway_call *call)
{
	struct serve_gateway *gateway = context;
	const struct serve_call *at = (struct serve_call *)(void *)call;

	gateway->send(gateway->context, (size_t)(at - gateway->calls), call->slot->id);
}

struct serve_gateway *serve_gateway_new(const struct serve_gateway_setup *setup)
{
	struct serve_gateway *gateway = NEW(struct serve_gateway);
	struct gateway_settings settings = { .queue_ms = QUEUE_MS,
		                             .block_tokens = setup->block_tokens,
		                             .slot_blocks = setup->slot_blocks,
		                             .send = on_send,
		                             .context = gateway };

	gateway->calls = memory_zero(setup->requests + 1, sizeof(*gateway->calls));
	gateway->call_count = setup->requests;
	gateway->model_ids = memory_zero(setup->models + 1, sizeof(*gateway->model_ids));
	for (size_t i = 0; i < setup->models; i++)
		gateway->model_ids[i] = setup->model_ids[i];
	gateway->model_count = setup->models;
	gateway->tenants = setup->tenants;
	gateway->askers = memory_zero(setup->tenants + 1, sizeof(*gateway->askers));
	gateway->weights = memory_zero(setup->tenants + 1, sizeof(*gateway->weights));
	for (size_t i = 0; i <= setup->tenants; i++) {
		gateway->askers[i].tenant_id = (int64_t)i;
		gateway->weights[i] =
		    i > 0 && setup->weights ? setup->weights[i - 1] : FAIR_WEIGHT_ONE;
	}
	gateway->send = setup->send;
	gateway->context = setup->context;
	gateway->gateway = gateway_new(&settings);
	return gateway;
}

void serve_gateway_free(struct serve_gateway *gateway)
{
	for (size_t i = 0; i < gateway->call_count; i++)
		if (gateway->calls[i].open)
			gateway_finish(gateway->gateway, &gateway->calls[i].call, -1, -1, 0);
	gateway_free(gateway->gateway);
	free(gateway->calls);
	free(gateway->askers);
	free(gateway->weights);
	free(gateway->model_ids);
	free(gateway);
}

/* The gateway keeps what it is told, as it came from the wire. */
static void tell(struct serve_gateway *gateway, const Gateway__Routes *routes, int64_t now_ms)
{
	size_t size = gateway__routes__get_packed_size(routes);
	uint8_t *bytes = memory_alloc(size + 1);

	gateway__routes__pack(routes, bytes);
	Gateway__Routes *copy = gateway__routes__unpack(NULL, size, bytes);
	INVARIANT(copy);
	gateway_routes(gateway->gateway, copy, now_ms);
	free(bytes);
}

void serve_gateway_routes(struct serve_gateway *gateway, const struct serve_route *routes,
                          size_t count, int64_t now_ms)
{
	static const Gateway__Slot__State states[] = { GATEWAY__SLOT__STATE__LOADING,
		                                       GATEWAY__SLOT__STATE__READY,
		                                       GATEWAY__SLOT__STATE__CLOSING };
	struct arena arena = { 0 };
	Gateway__Routes said = GATEWAY__ROUTES__INIT;

	said.n_models = gateway->model_count;
	said.models = arena_alloc(&arena, (said.n_models + 1) * sizeof(*said.models));
	for (size_t i = 0; i < gateway->model_count; i++) {
		Gateway__Model *model = arena_alloc(&arena, sizeof(*model));
		char *name = arena_alloc(&arena, NAME_MAX_LENGTH);
		gateway__model__init(model);
		snprintf(name, NAME_MAX_LENGTH, "m%" PRId64, gateway->model_ids[i]);
		model->model_id = gateway->model_ids[i];
		model->name = name;
		model->shared = true;
		said.models[i] = model;
	}
	said.n_tenants = gateway->tenants;
	said.tenants = arena_alloc(&arena, (said.n_tenants + 1) * sizeof(*said.tenants));
	for (size_t i = 0; i < gateway->tenants; i++) {
		Gateway__Tenant *tenant = arena_alloc(&arena, sizeof(*tenant));
		char *name = arena_alloc(&arena, NAME_MAX_LENGTH);
		gateway__tenant__init(tenant);
		snprintf(name, NAME_MAX_LENGTH, "t%zu", i + 1);
		tenant->tenant_id = (int64_t)i + 1;
		tenant->name = name;
		tenant->weight = gateway->weights[i + 1];
		said.tenants[i] = tenant;
	}
	said.n_slots = count;
	said.slots = arena_alloc(&arena, (count + 1) * sizeof(*said.slots));
	for (size_t i = 0; i < count; i++) {
		Gateway__Slot *slot = arena_alloc(&arena, sizeof(*slot));
		gateway__slot__init(slot);
		slot->slot_id = routes[i].slot_id;
		slot->model_id = routes[i].model_id;
		slot->address = "http://slot";
		slot->state = states[routes[i].state];
		slot->share = routes[i].share;
		said.slots[i] = slot;
	}
	tell(gateway, &said, now_ms);
	arena_free(&arena);
}

bool serve_gateway_ask(struct serve_gateway *gateway, size_t request,
                       const struct serve_asked *asked, int64_t now_ms)
{
	struct serve_call *at = &gateway->calls[request];
	struct refusal refusal;

	INVARIANT(request < gateway->call_count && !at->open);
	INVARIANT(asked->tenant <= gateway->tenants);
	snprintf(at->name, sizeof(at->name), "m%" PRId64, asked->model_id);
	at->call = (struct gateway_call){ .asker = &gateway->askers[asked->tenant],
		                          .model_name = at->name,
		                          .is_stream = true,
		                          .prompt_tokens = asked->prompt,
		                          .answer_tokens = asked->answer,
		                          .blocks = asked->blocks,
		                          .block_count = asked->block_count };
	at->open = gateway_ask(gateway->gateway, &at->call, now_ms, &refusal);
	return at->open;
}

void serve_gateway_serve(struct serve_gateway *gateway, int64_t now_ms)
{
	gateway_serve(gateway->gateway, now_ms);
}

void serve_gateway_begun(struct serve_gateway *gateway, size_t request)
{
	gateway_begun(&gateway->calls[request].call);
}

int64_t serve_gateway_spread(const struct serve_gateway *gateway)
{
	const struct names *names = &gateway->gateway->names;
	int64_t spread = 0;

	for (size_t m = 0; m < names->model_count; m++) {
		const struct fair *queue = &names->all_models[m]->queue;
		int64_t least = INT64_MAX, most = INT64_MIN;
		for (size_t i = 0; i < queue->count; i++) {
			if (queue->all[i]->waiting == 0)
				continue;
			least = min64(least, queue->all[i]->counter);
			most = max64(most, queue->all[i]->counter);
		}
		if (most > least)
			spread = max64(spread, (most - least) / 1000);
	}
	return spread;
}

void serve_gateway_finish(struct serve_gateway *gateway, size_t request, int64_t prompt,
                          int64_t answer, int64_t now_ms)
{
	struct serve_call *at = &gateway->calls[request];

	INVARIANT(request < gateway->call_count && at->open);
	at->open = false;
	gateway_finish(gateway->gateway, &at->call, prompt, answer, now_ms);
}
