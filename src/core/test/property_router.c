/* property_router.c - requests as a router sees them: each is answered, and given back once */
#include "core/test/property_router.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

void router_free(struct router *router)
{
	free(router->at);
	free(router->uses);
	*router = (struct router){ 0 };
}

static struct tracked *property_router_find(const struct router *router, int64_t id)
{
	for (size_t i = 0; i < router->count; i++)
		if (router->at[i].id == id)
			return &router->at[i];
	return NULL;
}

static struct slot_use *use_of(struct router *router, int64_t slot_id)
{
	for (size_t i = 0; i < router->use_count; i++)
		if (router->uses[i].slot_id == slot_id)
			return &router->uses[i];
	array_reserve(router->uses, router->use_capacity, router->use_count + 1);
	router->uses[router->use_count] = (struct slot_use){ .slot_id = slot_id };
	return &router->uses[router->use_count++];
}

struct slot_use router_slot(const struct router *router, int64_t slot_id)
{
	for (size_t i = 0; i < router->use_count; i++)
		if (router->uses[i].slot_id == slot_id)
			return router->uses[i];
	return (struct slot_use){ .slot_id = slot_id };
}

static void property_router_give_back(struct router *router, struct tracked *request,
                                      int64_t now_ms)
{
	if (!request->slot_id)
		return;
	struct slot_use *use = use_of(router, request->slot_id);
	use->active--;
	use->used_ms = now_ms;
	request->slot_id = 0;
}

static void property_router_forget(struct router *router, struct tracked *request, int64_t now_ms)
{
	property_router_give_back(router, request, now_ms);
	*request = router->at[--router->count];
}

static void property_router_begin(struct router *router, const struct request_command *request)
{
	if (property_router_find(router, request->request_id))
		panic("request %lld was taken twice", (long long)request->request_id);
	array_reserve(router->at, router->capacity, router->count + 1);
	router->at[router->count++] = (struct tracked){
		.id = request->request_id,
		.model_id = request->model_id,
		.number = ++router->last_number,
	};
}

/* Nobody who came earlier still waits for the model. */
static void check_turn(const struct router *router, const struct tracked *request)
{
	for (size_t i = 0; i < router->count; i++) {
		const struct tracked *other = &router->at[i];
		if (other->model_id == request->model_id && !other->slot_id &&
		    other->number < request->number)
			panic("request %lld is served before request %lld, which waits for the "
			      "same model",
			      (long long)request->id, (long long)other->id);
	}
}

static void check_place(struct router *router, const struct keeper *keeper,
                        const struct route_effect *route)
{
	const struct slot_record *slot = keeper_find(keeper, RECORD_SLOT, route->slot_id, 0);

	/* One that was there when the request was granted, and is gone already. */
	if (!slot)
		return;
	if (slot->model_id != route->model_id || !route->address || !*route->address)
		panic("request %lld is sent to slot %lld, which cannot serve it",
		      (long long)route->request_id, (long long)slot->id);
	if (use_of(router, slot->id)->active > slot->concurrency)
		panic("slot %lld has %lld requests in flight, and room for %lld",
		      (long long)slot->id, (long long)use_of(router, slot->id)->active,
		      (long long)slot->concurrency);
}

static void granted(struct router *router, const struct keeper *keeper, struct tracked *request,
                    const struct route_effect *route, int64_t now_ms)
{
	if (request->slot_id)
		panic("request %lld is in flight, and is sent again", (long long)request->id);
	check_turn(router, request);
	request->slot_id = route->slot_id;
	request->until_ms = route->until_ms;
	struct slot_use *use = use_of(router, route->slot_id);
	use->active++;
	use->used_ms = now_ms;
	router->granted++;
	check_place(router, keeper, route);
}

static void told(struct router *router, const struct keeper *keeper, const struct command *command,
                 const struct route_effect *route, int64_t now_ms)
{
	struct tracked *request = property_router_find(router, route->request_id);

	if (!request)
		panic("request %lld is answered, and has ended or was never sent",
		      (long long)route->request_id);
	bool first = !request->answered, flying = request->slot_id != 0;
	request->answered = true;
	switch ((enum route_outcome)route->outcome) {
	case ROUTE_GRANTED:
		granted(router, keeper, request, route, now_ms);
		return;
	case ROUTE_QUEUED:
		if (!first && !flying)
			panic("request %lld waits, and is told so again", (long long)request->id);
		router->moved += flying;
		property_router_give_back(router, request, now_ms);
		return;
	case ROUTE_REFUSED:
		if (!first || !route->reason || !*route->reason)
			panic("request %lld is refused late or without a reason",
			      (long long)request->id);
		router->refused++;
		break;
	case ROUTE_EXPIRED:
		if (!flying || request->until_ms > now_ms)
			panic("request %lld expires before its time", (long long)request->id);
		router->expired++;
		break;
	case ROUTE_ENDED:
		if (command->kind != COMMAND_RESET_REQUESTS && command->kind != COMMAND_START &&
		    command->kind != COMMAND_CLOCK && command->kind != COMMAND_REMOVE_MODEL)
			panic("request %lld ends, and nobody wanted that", (long long)request->id);
		break;
	}
	property_router_forget(router, request, now_ms);
}

/* A slot that is ready counts as used; one that is gone is forgotten. */
static void note_slot(struct router *router, const struct effect *effect, int64_t now_ms,
                      enum command_kind command, bool reset)
{
	if (effect->record_kind != RECORD_SLOT)
		return;
	if (effect->kind == EFFECT_PUT) {
		const struct slot_record *slot = effect->record;
		struct slot_use *use = use_of(router, slot->id);
		if (command == COMMAND_CLOCK)
			use->used_ms = slot->used_ms;
		else if (slot->ready_ms == now_ms || reset)
			use->used_ms = max64(use->used_ms, slot->used_ms);
		if (slot->state != SLOT_READY && use->active > 0)
			panic("slot %lld is not ready and has %lld requests in flight",
			      (long long)slot->id, (long long)use->active);
	} else if (effect->kind == EFFECT_DELETE) {
		struct slot_use *use = use_of(router, effect->key.first);
		if (use->active > 0)
			panic("slot %lld is gone with %lld requests in flight",
			      (long long)effect->key.first, (long long)use->active);
		*use = router->uses[--router->use_count];
	}
}

static void property_router_renew(struct router *router, const struct request_command *renewed,
                                  int64_t now_ms)
{
	struct tracked *request = property_router_find(router, renewed->request_id);

	if (!request)
		panic("request %lld has ended, and is renewed", (long long)renewed->request_id);
	/* The lease stays as it was where none is given: it ends no earlier than now. */
	request->until_ms = now_ms;
}

void router_follow(struct router *router, const struct keeper *keeper,
                   const struct command *command, const struct effects *effects, int64_t now_ms)
{
	bool reset = command->kind == COMMAND_RESET_REQUESTS || command->kind == COMMAND_START ||
	             command->kind == COMMAND_CLOCK;

	if (command->kind == COMMAND_REQUEST)
		property_router_begin(router, &command->request);
	/* What expires does so before the command is looked at, and the answers tell. */
	for (size_t i = 0; i < effects->count; i++) {
		const struct route_effect *route = &effects->at[i].route;
		if (effects->at[i].kind == EFFECT_ROUTE && route->outcome == ROUTE_EXPIRED)
			told(router, keeper, command, route, now_ms);
	}
	struct tracked *done = command->kind == COMMAND_REQUEST_DONE
	                           ? property_router_find(router, command->done.request_id)
	                           : NULL;
	if (command->kind == COMMAND_REQUEST_DONE && !done)
		panic("request %lld has ended, and ends again",
		      (long long)command->done.request_id);
	if (done)
		property_router_forget(router, done, now_ms);
	if (command->kind == COMMAND_REQUEST_RENEW)
		property_router_renew(router, &command->request, now_ms);
	for (size_t i = 0; i < effects->count; i++) {
		const struct effect *effect = &effects->at[i];
		if (effect->kind == EFFECT_ROUTE && effect->route.outcome != ROUTE_EXPIRED)
			told(router, keeper, command, &effect->route, now_ms);
	}
	for (size_t i = 0; i < effects->count; i++)
		if (effects->at[i].kind == EFFECT_PUT || effects->at[i].kind == EFFECT_DELETE)
			note_slot(router, &effects->at[i], now_ms, command->kind, reset);
	if (command->kind == COMMAND_REQUEST) {
		const struct tracked *request =
		    property_router_find(router, command->request.request_id);
		if (request && !request->answered)
			panic("request %lld is not answered", (long long)request->id);
	}
	if (reset && router->count > 0)
		panic("all routers restart, and %zu requests are left", router->count);
}

void router_compare(const struct router *router, const struct keeper *keeper,
                    const struct sched *sched)
{
	for (size_t m = 0; m < keeper_model_count(keeper); m++) {
		int64_t id = keeper_model(keeper, m)->id, active = 0, waiting = 0;
		struct model_load load;
		for (size_t i = 0; i < router->count; i++) {
			active += router->at[i].model_id == id && router->at[i].slot_id;
			waiting += router->at[i].model_id == id && !router->at[i].slot_id;
		}
		if (!sched_model_load(sched, id, &load))
			panic("model-%lld is kept, and not known", (long long)id);
		if (load.active != active || load.waiting != waiting)
			panic("model-%lld has %lld requests in flight and %lld waiting, and "
			      "should have %lld and %lld",
			      (long long)id, (long long)load.active, (long long)load.waiting,
			      (long long)active, (long long)waiting);
	}
	for (size_t s = 0; s < keeper_slot_count(keeper); s++) {
		int64_t id = keeper_slot(keeper, s)->id, active;
		if (!sched_slot_active(sched, id, &active))
			panic("slot %lld is kept, and not known", (long long)id);
		if (active != router_slot(router, id).active)
			panic("slot %lld has %lld requests in flight, and should have %lld",
			      (long long)id, (long long)active,
			      (long long)router_slot(router, id).active);
	}
}
