/* leases.c - a place in a slot of a model for one request: given, renewed, given back */
#include "api/model/leases.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/model/leases_local.h"
#include "api/service/service_state.h"
#include "base/clock.h"
#include "base/memory.h"

enum {
	LINGER_MS = 5000, /* a request that nobody waits for, so that its model is loaded */
	NODE_MS = 10000,  /* for the node to say that it holds the key */
	LEASE_KEY_BYTES = 32,
};

struct leases *leases_new(struct service *service)
{
	struct leases *leases = NEW(struct leases);

	leases->service = service;
	leases->loop = service->port->loop;
	return leases;
}

/* The name of the node that the lease's slot is on; empty: it has none. To be freed. */
static char *node_of(const struct lease *lease)
{
	struct catalogue *catalogue = service_catalogue(lease->leases->service);

	catalogue_lock(catalogue);
	const struct node_record *node =
	    lease->slot_id > 0 ? catalogue_get(catalogue, RECORD_NODE, lease->node_id, 0) : NULL;
	char *name = memory_text(node ? node->name : "");
	catalogue_unlock(catalogue);
	return name;
}

/* Nobody gets into its slot with the key any more. */
static void end_key(const struct lease *lease)
{
	if (!lease->key[0] || lease->slot_id == 0)
		return;
	char *node = node_of(lease);
	agents_end_lease(lease->leases->service->agents, node, lease->slot_id, lease->id);
	free(node);
}

static bool make_key(struct lease *lease)
{
	unsigned char random[LEASE_KEY_BYTES];

	if (lease->key[0])
		return true;
	if (RAND_bytes(random, sizeof(random)) != 1)
		return false;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(lease->key + 2 * i, 3, "%02x", random[i]);
	OPENSSL_cleanse(random, sizeof(random));
	return true;
}

bool leases_tell_key(struct lease *lease)
{
	struct agents *agents = lease->leases->service->agents;
	struct agents_lease told = { .lease_id = lease->id,
		                     .slot_id = lease->slot_id,
		                     .until_ms = lease->until_ms };
	char *node = node_of(lease);
	bool has_own = agents_slot_has_lease_keys(agents, node, lease->slot_id) && make_key(lease);

	if (has_own) {
		memcpy(told.key, lease->key, sizeof(told.key));
		agents_tell_lease(agents, node, &told);
		OPENSSL_cleanse(&told, sizeof(told));
	}
	free(node);
	return has_own;
}

static void leases_forget(struct lease *lease)
{
	struct leases *leases = lease->leases;

	end_key(lease);
	OPENSSL_cleanse(lease->key, sizeof(lease->key));
	map_remove(&leases->by_id, lease->id);
	*lease->link = lease->next;
	if (lease->next)
		lease->next->link = lease->link;
	loop_timer_clear(leases->loop, &lease->timer);
	free(lease->address);
	free(lease);
}

/* Nothing of the lease is in the request any more: it is the caller's to end. */
static struct request *let_go(struct lease *lease)
{
	struct request *request = lease->request;

	lease->request = NULL;
	streams_remove(&lease->stream);
	if (request)
		request->state = NULL;
	return request;
}

void leases_free(struct leases *leases)
{
	if (!leases)
		return;
	struct lease *lease = leases->first, *next;
	for (leases->first = NULL; lease; lease = next) {
		struct request *request = let_go(lease);
		next = lease->next;
		if (request)
			request_refuse(request, 503, "unavailable", "the scheduler is stopping");
		loop_timer_clear(leases->loop, &lease->timer);
		OPENSSL_cleanse(lease->key, sizeof(lease->key));
		free(lease->address);
		free(lease);
	}
	map_free(&leases->by_id);
	free(leases);
}

static void on_quiet(struct engine_request *engine)
{
	request_drop(request_of(engine));
}

/* A command that nobody waits for, and that must not be lost. */
static void command_quietly(struct leases *leases, struct command command)
{
	struct request *request = request_take_own(&leases->service->requests);

	request->engine.command = command;
	request->engine.has_command = true;
	request->engine.patient = true;
	request_send(request, on_quiet);
}

void leases_begin(struct leases *leases)
{
	/* So that a lease of an earlier start is never taken for one of this: no start gives 1,024
	 * in a millisecond. */
	leases->last_id = clock_unix_ms() << 10;
	agents_begin_leases(leases->service->agents, leases->last_id + 1);
	command_quietly(leases, (struct command){ .kind = COMMAND_RESET_REQUESTS });
}

/* Nobody wants it any more. */
static void withdraw(struct lease *lease)
{
	struct leases *leases = lease->leases;
	struct command command = { .kind = COMMAND_REQUEST_DONE };

	command.done.request_id = lease->id;
	command.done.end = REQUEST_GONE;
	leases_forget(lease);
	command_quietly(leases, command);
}

static void leases_on_gone(struct exchange *exchange)
{
	struct lease *lease = ((struct request *)exchange->context)->state;

	request_abort(let_go(lease));
	withdraw(lease);
}

/* Who waits is not who it was let in as any more. */
static void end_waiting(struct stream *stream, const char *reason)
{
	struct lease *lease =
	    (struct lease *)(void *)((char *)stream - offsetof(struct lease, stream));

	request_refuse(let_go(lease), 401, "unauthenticated", "%s", reason);
	withdraw(lease);
}

static const struct exchange_events waiting_events = { .gone = leases_on_gone };

static void refuse_wait(struct lease *lease)
{
	struct request *request = let_go(lease);

	if (request)
		request_refuse(request, 503, "unavailable",
		               "no slot of the model has a free place: try again, or wait longer");
}

static void leases_on_timer(struct timer *timer)
{
	struct lease *lease =
	    (struct lease *)(void *)((char *)timer - offsetof(struct lease, timer));

	if (lease->awaits_node && lease->request)
		request_refuse(let_go(lease), 503, "unavailable",
		               "the node of the slot does not answer: try again");
	else
		refuse_wait(lease);
	withdraw(lease);
}

static void answer_refused(struct request *request, const struct route_effect *route)
{
	const char *reason =
	    route->reason && route->reason[0] ? route->reason : "the request has ended";

	if (route->outcome == ROUTE_REFUSED)
		request_refuse(request, 422, "impossible", "%s", reason);
	else
		request_refuse(request, 503, "unavailable", "%s", reason);
}

/* After a start of the scheduler, until the slot's node is back. */
static bool key_follows(const struct lease *lease)
{
	const struct service *service = lease->leases->service;
	struct catalogue *catalogue = service_catalogue(service);
	bool follows = false;

	catalogue_lock(catalogue);
	const struct node_record *node = catalogue_get(catalogue, RECORD_NODE, lease->node_id, 0);
	if (node)
		agents_slot_key(service->agents, node->name, lease->slot_id, &follows);
	catalogue_unlock(catalogue);
	return follows;
}

static void refuse_keyless(struct lease *lease)
{
	request_refuse(let_go(lease), 503, "unavailable",
	               "the node of the slot has not connected to this scheduler yet: try again");
	withdraw(lease);
}

/* It has a place now. Who waits for it is answered when the slot's node holds its key. */
static void grant(struct lease *lease)
{
	if (lease->is_asked && !lease->request) {
		withdraw(lease); /* who asked has been told to try again */
		return;
	}
	if (lease->request && key_follows(lease)) {
		refuse_keyless(lease);
		return;
	}
	lease->awaits_node = leases_tell_key(lease) && lease->request;
	if (lease->awaits_node)
		loop_timer_set(lease->leases->loop, &lease->timer, NODE_MS);
	else if (lease->request)
		leases_answer(lease, let_go(lease), 201);
}

void leases_taken(struct leases *leases, int64_t lease_id, const char *reason)
{
	struct lease *lease = map_get(&leases->by_id, lease_id);

	if (!lease || !lease->awaits_node)
		return;
	lease->awaits_node = false;
	loop_timer_clear(leases->loop, &lease->timer);
	if (!reason) {
		leases_answer(lease, let_go(lease), 201);
		return;
	}
	request_refuse(let_go(lease), 503, "unavailable", "%s: try again", reason);
	withdraw(lease);
}

void leases_route(struct leases *leases, const struct route_effect *route)
{
	struct lease *lease = map_get(&leases->by_id, route->request_id);

	if (!lease)
		return;
	end_key(lease);
	free(lease->address);
	lease->address = NULL;
	lease->slot_id = 0;
	lease->awaits_node = false;
	if (route->outcome == ROUTE_GRANTED) {
		lease->address = memory_text(route->address);
		lease->slot_id = route->slot_id;
		lease->node_id = route->node_id;
		lease->until_ms = route->until_ms;
		loop_timer_clear(leases->loop, &lease->timer);
		grant(lease);
	} else if (route->outcome != ROUTE_QUEUED) {
		struct request *request = let_go(lease);
		if (request)
			answer_refused(request, route);
		leases_forget(lease);
	}
}

/* The core has taken it in: if it waits, so do we, or who asked is told. A request that was
 * answered by leases_route does not come here. */
static void on_asked(struct engine_request *engine)
{
	struct lease *lease = request_of(engine)->state;

	INVARIANT(lease && lease->request == request_of(engine));
	if (!engine->ok) {
		request_fail(let_go(lease), &engine->error);
		leases_forget(lease);
	} else if (lease->slot_id == 0) {
		lease->is_asked = lease->wait_ms == 0;
		if (lease->is_asked)
			refuse_wait(lease);
		loop_timer_set(lease->leases->loop, &lease->timer,
		               lease->is_asked ? LINGER_MS : lease->wait_ms);
	}
}

static struct lease *lease_new(struct leases *leases, const struct lease_wish *wish)
{
	struct lease *lease = NEW(struct lease);

	lease->leases = leases;
	lease->id = ++leases->last_id;
	lease->model_id = wish->model_id;
	lease->tenant_id = wish->tenant_id;
	lease->wait_ms = wish->wait_ms;
	lease->lease_ms = wish->lease_ms;
	lease->timer = TIMER(leases_on_timer);
	lease->next = leases->first;
	lease->link = &leases->first;
	if (lease->next)
		lease->next->link = &lease->next;
	leases->first = lease;
	map_put(&leases->by_id, lease->id, lease);
	return lease;
}

void leases_ask(struct leases *leases, struct request *request, const struct lease_wish *wish)
{
	struct lease *lease = lease_new(leases, wish);

	lease->request = request;
	request->state = lease;
	streams_add(leases->service->streams, &lease->stream, &request->identity, end_waiting);
	request->exchange->events = &waiting_events;
	request->exchange->hangup_is_gone = true;
	request->engine.command = (struct command){ .kind = COMMAND_REQUEST };
	request->engine.command.request = (struct request_command){ .request_id = lease->id,
		                                                    .model_id = wish->model_id,
		                                                    .tenant_id = wish->tenant_id,
		                                                    .lease_ms = wish->lease_ms };
	request->engine.has_command = true;
	request_send(request, on_asked);
}

static void on_given_back(struct engine_request *engine)
{
	if (engine->ok || engine->error.code == ERROR_NOT_FOUND)
		request_answer_message(request_of(engine), 200, "Lease given back");
	else
		request_fail(request_of(engine), &engine->error);
}

void leases_end(struct lease *lease, struct request *request, enum request_end end)
{
	request->engine.command = (struct command){ .kind = COMMAND_REQUEST_DONE };
	request->engine.command.done.request_id = lease->id;
	request->engine.command.done.end = end;
	request->engine.has_command = true;
	leases_forget(lease);
	request_send(request, on_given_back);
}

int64_t leases_in_slot(const struct leases *leases, int64_t slot_id)
{
	int64_t count = 0;
	for (const struct lease *lease = leases->first; lease; lease = lease->next)
		count += lease->slot_id == slot_id;
	return count;
}
