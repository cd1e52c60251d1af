/* chaos_request.c - people who ask models something, and a router that asks the core */
#include "sim/chaos/chaos_world.h"

void request_forget_all(struct chaos *chaos)
{
	chaos->request_count = 0;
}

static struct chaos_request *chaos_request_find(const struct chaos *chaos, int64_t id)
{
	for (size_t i = 0; i < chaos->request_count; i++)
		if (chaos->requests[i].id == id)
			return &chaos->requests[i];
	return NULL;
}

static void chaos_request_forget(struct chaos *chaos, struct chaos_request *request)
{
	*request = chaos->requests[--chaos->request_count];
}

void request_send(struct chaos *chaos)
{
	struct command command = { .kind = COMMAND_REQUEST };
	uint64_t *random = &chaos->random;

	if (chaos->model_count == 0 || !chaos->servers[0].sched || chaos->request_count > 30 ||
	    !chance(random, 40))
		return;
	command.request = (struct request_command){
		.request_id = ++chaos->last_request,
		.model_id = chaos->model_ids[between(random, 0, chaos->model_count - 1)]
	};
	array_reserve(chaos->requests, chaos->request_capacity, chaos->request_count + 1);
	chaos->requests[chaos->request_count++] =
	    (struct chaos_request){ command.request.request_id, command.request.model_id, 0 };
	const struct chaos_batch *batch = server_decide(chaos, 0, &command);
	if (batch->effects.count == 0) /* refused at once */
		chaos_request_forget(chaos, chaos_request_find(chaos, command.request.request_id));
}

/* No slot serves more requests at a time than it has places for. */
static void check_places(struct chaos *chaos, const struct route_effect *route)
{
	const struct slot_record *slot = world_find(&chaos->store, RECORD_SLOT, route->slot_id, 0);
	int64_t active = 0;

	for (size_t i = 0; i < chaos->request_count; i++)
		active += chaos->requests[i].slot_id == route->slot_id;
	if (slot && active > slot->concurrency)
		chaos_broken(chaos, "places", "slot %lld serves %lld requests and has %lld places",
		             (long long)slot->id, (long long)active, (long long)slot->concurrency);
}

void request_routed(struct chaos *chaos, const struct route_effect *route)
{
	struct chaos_request *request = chaos_request_find(chaos, route->request_id);

	if (!request)
		return; /* over since */
	if (route->outcome == ROUTE_QUEUED) {
		request->slot_id = 0;
		return;
	}
	if (route->outcome != ROUTE_GRANTED) {
		chaos_request_forget(chaos, request);
		return;
	}
	request->slot_id = route->slot_id;
	check_places(chaos, route);
	chaos->result->requests++;
	chaos_later(chaos, between(&chaos->random, 10, 5000),
	            (struct chaos_event){
			.kind = HAPPEN_REQUEST, .id = request->id, .life = route->slot_id });
}

void request_event(struct chaos *chaos, const struct chaos_event *event)
{
	struct chaos_request *request = chaos_request_find(chaos, event->id);
	struct command command = { .kind = COMMAND_REQUEST_DONE };

	if (!request || request->slot_id != event->life || !chaos->servers[0].sched)
		return; /* its slot was lost meanwhile */
	command.done.request_id = event->id;
	command.done.end = chance(&chaos->random, 90) ? REQUEST_SUCCEEDED : REQUEST_FAILED;
	chaos_request_forget(chaos, request);
	server_decide(chaos, 0, &command);
}
