/* leases.c - a place in a slot of a model for one request: given, renewed, given back */
#include "api/model/leases.h"

#include <stdlib.h>

#include "api/model/leases_local.h"
#include "api/text/ids.h"
#include "base/clock.h"
#include "base/memory.h"

enum {
	LINGER_MS = 5000, /* a request that nobody waits for, so that its model is loaded */
};

struct leases *leases_new(struct desk *desk, const struct roster *roster, struct streams *streams)
{
	struct leases *leases = NEW(struct leases);

	leases->desk = desk;
	leases->loop = desk->loop;
	leases->roster = roster;
	leases->streams = streams;
	return leases;
}

static void forget(struct lease *lease)
{
	struct leases *leases = lease->leases;

	map_remove(&leases->by_id, lease->id);
	*lease->link = lease->next;
	if (lease->next)
		lease->next->link = lease->link;
	loop_timer_clear(leases->loop, &lease->timer);
	free(lease->address);
	free(lease);
}

/* The client's exchange is its own again: nothing of the lease is in it. */
static struct exchange *let_go(struct lease *lease)
{
	struct exchange *exchange = lease->exchange;

	lease->exchange = NULL;
	streams_remove(&lease->stream);
	if (exchange) {
		exchange->context = NULL;
		exchange->events = NULL;
	}
	return exchange;
}

void leases_free(struct leases *leases)
{
	if (!leases)
		return;
	struct lease *lease = leases->first, *next;
	for (leases->first = NULL; lease; lease = next) {
		struct exchange *exchange = let_go(lease);
		next = lease->next;
		if (exchange)
			exchange_refuse(exchange, 503, "unavailable", "the scheduler is stopping");
		loop_timer_clear(leases->loop, &lease->timer);
		free(lease->address);
		free(lease);
	}
	while (leases->all) {
		struct lease_ask *ask = leases->all;
		memory_unpoison(ask, sizeof(*ask));
		leases->all = ask->next_of_all;
		ask_free(&ask->ask);
		free(ask);
	}
	map_free(&leases->by_id);
	free(leases);
}

struct lease_ask *leases_take_ask(struct leases *leases, enum command_kind kind,
                                  void (*done)(struct ask *ask))
{
	struct lease_ask *ask = leases->spare;

	if (ask) {
		memory_unpoison(ask, sizeof(*ask));
		leases->spare = ask->next;
	} else {
		ask = NEW(struct lease_ask);
		ask->next_of_all = leases->all;
		leases->all = ask;
	}
	ask->leases = leases;
	ask->exchange = NULL;
	ask->lease_id = 0;
	ask->ask.command.kind = kind;
	ask->ask.has_command = true;
	ask->ask.done = done;
	return ask;
}

void leases_give_ask(struct lease_ask *ask)
{
	struct leases *leases = ask->leases;

	ask_reset(&ask->ask);
	ask->next = leases->spare;
	leases->spare = ask;
	memory_poison(ask, sizeof(*ask));
}

static void on_quiet(struct ask *ask)
{
	leases_give_ask((struct lease_ask *)ask);
}

void leases_begin(struct leases *leases)
{
	/* So that a lease of an earlier start is never taken for one of this. */
	leases->last_id = clock_unix_ms() / 1000 << 20;
	struct lease_ask *ask = leases_take_ask(leases, COMMAND_RESET_REQUESTS, on_quiet);
	ask->ask.patient = true;
	desk_ask(leases->desk, &ask->ask);
}

/* Nobody wants it any more. */
static void withdraw(struct lease *lease)
{
	struct lease_ask *ask = leases_take_ask(lease->leases, COMMAND_REQUEST_DONE, on_quiet);

	ask->ask.command.done.request_id = lease->id;
	ask->ask.command.done.end = REQUEST_GONE;
	ask->ask.patient = true;
	struct desk *desk = lease->leases->desk;
	forget(lease);
	desk_ask(desk, &ask->ask);
}

static void on_gone(struct exchange *exchange)
{
	struct lease *lease = exchange->context;

	let_go(lease);
	exchange_abort(exchange);
	withdraw(lease);
}

/* Who waits is not who it was let in as any more. */
static void end_waiting(struct stream *stream, const char *reason)
{
	struct lease *lease =
	    (struct lease *)(void *)((char *)stream - offsetof(struct lease, stream));

	exchange_refuse(let_go(lease), 401, "unauthenticated", "%s", reason);
	withdraw(lease);
}

static const struct exchange_events waiting_events = { .gone = on_gone };

static void refuse_wait(struct lease *lease)
{
	struct exchange *exchange = let_go(lease);

	if (exchange)
		exchange_refuse(exchange, 503, "unavailable",
		                "no slot of the model has a place now: try again, or wait longer "
		                "with ?wait=30s");
}

static void on_timer(struct timer *timer)
{
	struct lease *lease =
	    (struct lease *)(void *)((char *)timer - offsetof(struct lease, timer));

	refuse_wait(lease);
	withdraw(lease);
}

static void answer_refused(struct exchange *exchange, const struct route_effect *route)
{
	const char *reason =
	    route->reason && route->reason[0] ? route->reason : "the request has ended";

	if (route->outcome == ROUTE_REFUSED)
		exchange_refuse(exchange, 422, "impossible", "%s", reason);
	else
		exchange_refuse(exchange, 503, "unavailable", "%s", reason);
}

void leases_route(struct leases *leases, const struct route_effect *route)
{
	struct lease *lease = map_get(&leases->by_id, route->request_id);

	if (!lease)
		return;
	free(lease->address);
	lease->address = NULL;
	lease->slot_id = 0;
	if (route->outcome == ROUTE_GRANTED) {
		lease->address = memory_text(route->address);
		lease->slot_id = route->slot_id;
		lease->node_id = route->node_id;
		lease->until_ms = route->until_ms;
		loop_timer_clear(leases->loop, &lease->timer);
		if (lease->is_asked && !lease->exchange)
			withdraw(lease); /* who asked has been told to try again */
		else if (lease->exchange)
			leases_answer(lease, let_go(lease), 201);
	} else if (route->outcome != ROUTE_QUEUED) {
		struct exchange *exchange = let_go(lease);
		if (exchange)
			answer_refused(exchange, route);
		forget(lease);
	}
}

/* The core has taken it in: if it waits, so do we, or who asked is told. */
static void on_asked(struct ask *done)
{
	struct lease_ask *ask = (struct lease_ask *)done;
	struct lease *lease = map_get(&ask->leases->by_id, ask->lease_id);

	if (lease && !done->ok) {
		struct exchange *exchange = let_go(lease);
		if (exchange)
			leases_fail(exchange, &done->error);
		forget(lease);
	} else if (lease && lease->slot_id == 0 && lease->exchange) {
		if (lease->wait_ms == 0)
			refuse_wait(lease);
		lease->is_asked = lease->wait_ms == 0;
		loop_timer_set(ask->leases->loop, &lease->timer,
		               lease->wait_ms == 0 ? LINGER_MS : lease->wait_ms);
	}
	leases_give_ask(ask);
}

void leases_ask(struct leases *leases, struct exchange *exchange, const struct lease_wish *wish)
{
	struct lease *lease = NEW(struct lease);

	lease->leases = leases;
	lease->id = ++leases->last_id;
	lease->model_id = wish->model_id;
	lease->tenant_id = wish->tenant_id;
	lease->wait_ms = wish->wait_ms;
	lease->lease_ms = wish->lease_ms;
	lease->exchange = exchange;
	lease->timer = TIMER(on_timer);
	lease->next = leases->first;
	lease->link = &leases->first;
	if (lease->next)
		lease->next->link = &lease->next;
	leases->first = lease;
	map_put(&leases->by_id, lease->id, lease);
	streams_add(leases->streams, &lease->stream, wish->identity, end_waiting);
	exchange->context = lease;
	exchange->events = &waiting_events;
	exchange->hangup_is_gone = true;
	struct lease_ask *ask = leases_take_ask(leases, COMMAND_REQUEST, on_asked);
	ask->lease_id = lease->id;
	ask->ask.command.request =
	    (struct request_command){ lease->id, wish->model_id, wish->tenant_id, wish->lease_ms };
	desk_ask(leases->desk, &ask->ask);
}

static void on_given_back(struct ask *done)
{
	struct lease_ask *ask = (struct lease_ask *)done;

	if (done->ok || done->error.code == ERROR_NOT_FOUND)
		exchange_respond(
		    ask->exchange,
		    &(struct response){ .content_type = "application/json",
		                        .body = TEXT("{\"message\":\"Lease given back\"}") });
	else
		leases_fail(ask->exchange, &done->error);
	leases_give_ask(ask);
}

void leases_end(struct lease *lease, struct exchange *exchange, enum request_end end)
{
	struct leases *leases = lease->leases;
	struct lease_ask *ask = leases_take_ask(leases, COMMAND_REQUEST_DONE, on_given_back);

	ask->exchange = exchange;
	ask->ask.command.done.request_id = lease->id;
	ask->ask.command.done.end = end;
	forget(lease);
	desk_ask(leases->desk, &ask->ask);
}
