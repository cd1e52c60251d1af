/* models_router.c - requests, as routers see them: each is answered once */
#include <stdio.h>
#include <string.h>

#include "sim/scenario/models_run.h"

#define LEASE_MS (INT64_C(366) * 24 * 3600 * 1000) /* longer than any case takes */

struct sim_request *router_find(struct models_run *run, int64_t request_id)
{
	for (size_t i = 0; i < run->request_count; i++) {
		if (run->requests[i].id == request_id)
			return &run->requests[i];
	}
	return NULL;
}

struct sim_request *router_ask(struct models_run *run, struct sim_model *model,
                               enum request_use use, int64_t lease_ms, int64_t tenant_id)
{
	array_reserve(run->requests, run->request_capacity, run->request_count + 1);
	struct sim_request *request = &run->requests[run->request_count++];
	*request = (struct sim_request){
		.id = ++run->last_request,
		.model_id = model->record.id,
		.use = use,
		.tenant_id = tenant_id,
		.lease_ms = lease_ms > 0 ? lease_ms : LEASE_MS,
	};
	int64_t id = request->id;
	return router_send(run, id) ? router_find(run, id) : NULL;
}

bool router_send(struct models_run *run, int64_t request_id)
{
	const struct sim_request *request = router_find(run, request_id);
	struct command command = { .kind = COMMAND_REQUEST };
	command.request = (struct request_command){
		.request_id = request->id,
		.model_id = request->model_id,
		.tenant_id = request->tenant_id,
		.lease_ms = request->lease_ms,
	};
	if (!run_send(run, command))
		return false;
	if (!router_find(run, request_id)->told)
		return run_fail(run, "the core said nothing about request %lld",
		                (long long)request_id);
	return true;
}

/* A place in a slot is real: the slot is ready, and has one. */
static bool check_grant(struct models_run *run, const struct sim_request *request)
{
	const struct slot_record *slot = books_slot(run, request->slot_id);
	const struct instance *instance = runner_find(run, request->slot_id);
	int64_t flying = 0;
	for (size_t i = 0; i < run->request_count; i++)
		flying += run->requests[i].state == REQUEST_FLYING &&
		          run->requests[i].slot_id == request->slot_id;
	if (!slot || slot->model_id != request->model_id)
		return run_fail(run, "request %lld was sent to slot %lld, which is not its model's",
		                (long long)request->id, (long long)request->slot_id);
	if (!instance || instance->state != INSTANCE_READY)
		return run_fail(run, "request %lld was sent to slot %lld, which is not ready",
		                (long long)request->id, (long long)request->slot_id);
	if (flying > slot->concurrency)
		return run_fail(run, "slot %lld has %lld requests in flight and room for %lld",
		                (long long)slot->id, (long long)flying,
		                (long long)slot->concurrency);
	return true;
}

bool router_told(struct models_run *run, const struct route_effect *route)
{
	struct sim_request *request = router_find(run, route->request_id);
	if (!request)
		return run_fail(run, "the core answered request %lld, which nobody sent",
		                (long long)route->request_id);
	if (request->state == REQUEST_OVER)
		return run_fail(run, "the core answered request %lld, which has ended",
		                (long long)route->request_id);
	request->told = true;
	request->outcome = (enum route_outcome)route->outcome;
	snprintf(request->reason, sizeof(request->reason), "%s",
	         route->reason ? route->reason : "");
	switch (request->outcome) {
	case ROUTE_GRANTED:
		request->state = REQUEST_FLYING;
		request->slot_id = route->slot_id;
		if (request->use == USE_ASK)
			run_later(run, PENDING_DONE, request->id);
		return check_grant(run, request);
	case ROUTE_QUEUED:
		request->state = REQUEST_WAITING;
		return true;
	case ROUTE_REFUSED:
	case ROUTE_EXPIRED:
	case ROUTE_ENDED:
		request->state = REQUEST_OVER;
		return true;
	}
	return run_fail(run, "the core answered request %lld with %d", (long long)request->id,
	                (int)route->outcome);
}

bool router_done(struct models_run *run, int64_t request_id, enum request_end end)
{
	struct sim_request *request = router_find(run, request_id);
	struct command command = { .kind = COMMAND_REQUEST_DONE };
	if (request->state == REQUEST_OVER ||
	    (end == REQUEST_SUCCEEDED && request->state != REQUEST_FLYING))
		return true;
	command.done.request_id = request_id;
	command.done.end = end;
	request->state = REQUEST_OVER;
	return run_send(run, command);
}

struct sim_request *router_oldest(struct models_run *run, const struct sim_model *model,
                                  enum request_state state)
{
	for (size_t i = 0; i < run->request_count; i++) {
		struct sim_request *request = &run->requests[i];
		if (request->model_id == model->record.id && request->use == USE_HOLD &&
		    request->state == state)
			return request;
	}
	return NULL;
}

bool router_again(struct models_run *run)
{
	for (size_t i = 0; i < run->request_count; i++) {
		struct sim_request *request = &run->requests[i];
		if (request->state == REQUEST_FLYING)
			request->state = REQUEST_OVER;
		if (request->state != REQUEST_WAITING)
			continue;
		request->told = false;
		if (!router_send(run, request->id))
			return false;
	}
	return true;
}
