/* ticker.c - what is told to listeners from time to time: figures, decisions, GPUs */
#include "api/live/ticker.h"

#include <stdlib.h>

#include "api/job/decision_view.h"
#include "api/live/gpu_watch.h"
#include "api/service/figures.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "store/archive.h"

enum { TICK_MS = 1000, METRICS_EVERY = 5, DECISIONS_MAX = 500 };

struct watcher {
	struct websocket *socket;
	struct identity identity;
	int64_t tenant_id;
	unsigned ticks;
	struct watcher *next;
};

struct ticker {
	struct service *service;
	struct watcher *watchers;
	struct timer timer;
	int64_t ticks;
	struct engine_request engine; /* reads decisions, one at a time */
	bool reading;
	bool knows_last; /* false: nothing is told of decisions that were before */
	int64_t last_decision;
	struct decision_record *decisions;
	int64_t count;
	struct gpu_watch *gpus; /* NULL: nobody wants to know */
	struct buffer text;
};

static void on_tick(struct timer *timer);

struct ticker *ticker_new(struct service *service)
{
	struct ticker *ticker = NEW(struct ticker);
	ticker->service = service;
	ticker->timer = TIMER(on_tick);
	return ticker;
}

void ticker_free(struct ticker *ticker)
{
	if (!ticker)
		return;
	while (ticker->watchers) {
		struct watcher *watcher = ticker->watchers;
		ticker->watchers = watcher->next;
		free(watcher);
	}
	engine_request_free(&ticker->engine);
	gpu_watch_free(ticker->gpus);
	buffer_free(&ticker->text);
	free(ticker);
}

static unsigned wanted(const struct ticker *ticker)
{
	unsigned ticks = 0;
	for (const struct watcher *watcher = ticker->watchers; watcher; watcher = watcher->next)
		ticks |= watcher->ticks;
	return ticks;
}

/* From the moment that the first one listens, what differs is told. */
static void watch_gpus(struct ticker *ticker)
{
	bool is_wanted = wanted(ticker) & TICK_GPUS;
	if (is_wanted && !ticker->gpus) {
		ticker->gpus = gpu_watch_new(ticker->service);
		gpu_watch_look(ticker->gpus);
	} else if (!is_wanted) {
		gpu_watch_free(ticker->gpus);
		ticker->gpus = NULL;
	}
}

void ticker_add(struct ticker *ticker, struct websocket *socket, const struct identity *identity,
                int64_t tenant_id, unsigned ticks)
{
	struct watcher *watcher = NEW(struct watcher);
	bool first = !ticker->watchers;
	*watcher = (struct watcher){ socket, *identity, tenant_id, ticks, ticker->watchers };
	ticker->watchers = watcher;
	watch_gpus(ticker);
	if (first)
		loop_timer_set(ticker->service->port->loop, &ticker->timer, TICK_MS);
}

void ticker_remove(struct ticker *ticker, struct websocket *socket)
{
	struct watcher **place = &ticker->watchers;
	while (*place && (*place)->socket != socket)
		place = &(*place)->next;
	struct watcher *watcher = *place;
	if (!watcher)
		return;
	*place = watcher->next;
	free(watcher);
	watch_gpus(ticker);
	if (!ticker->watchers) {
		loop_timer_clear(ticker->service->port->loop, &ticker->timer);
		ticker->knows_last = false;
	}
}

/* A slow client misses this: the next one has all of it again. */
static void ticker_send(struct watcher *watcher, struct shared *frame)
{
	websocket_send(watcher->socket, frame);
}

static bool sees_the_same(const struct watcher *a, const struct watcher *b)
{
	return a->tenant_id == b->tenant_id && a->identity.tenant_id == b->identity.tenant_id &&
	       (a->identity.role == ROLE_ADMIN) == (b->identity.role == ROLE_ADMIN);
}

/* One frame for all who see the same. */
static void tell_figures(struct ticker *ticker)
{
	const struct watcher *made_for = NULL;
	struct shared *frame = NULL;
	for (struct watcher *watcher = ticker->watchers; watcher; watcher = watcher->next) {
		if (!(watcher->ticks & TICK_METRICS))
			continue;
		if (!made_for || !sees_the_same(made_for, watcher)) {
			if (frame)
				shared_drop(frame);
			buffer_clear(&ticker->text);
			struct json_writer json = json_writer_to(&ticker->text);
			json_open_object(&json, NULL);
			json_put_string(&json, "type", "metrics");
			json_put_string(&json, "topic", "metrics");
			figures_write(&json, ticker->service, &watcher->identity,
			              watcher->tenant_id);
			json_close(&json);
			frame = websocket_frame(
			    (struct text){ ticker->text.data, ticker->text.size }, true);
			made_for = watcher;
		}
		ticker_send(watcher, frame);
	}
	if (frame)
		shared_drop(frame);
}

static void tell_gpus(struct ticker *ticker)
{
	const struct watcher *made_for = NULL;
	struct shared *frame = NULL;
	if (!gpu_watch_look(ticker->gpus))
		return;
	for (struct watcher *watcher = ticker->watchers; watcher; watcher = watcher->next) {
		if (!(watcher->ticks & TICK_GPUS))
			continue;
		if (!made_for || !sees_the_same(made_for, watcher)) {
			if (frame)
				shared_drop(frame);
			buffer_clear(&ticker->text);
			struct json_writer json = json_writer_to(&ticker->text);
			json_open_object(&json, NULL);
			json_put_string(&json, "type", "gpus");
			json_put_string(&json, "topic", "gpus");
			gpu_watch_write(ticker->gpus, &json, &watcher->identity);
			json_close(&json);
			frame = websocket_frame(
			    (struct text){ ticker->text.data, ticker->text.size }, true);
			made_for = watcher;
		}
		ticker_send(watcher, frame);
	}
	if (frame)
		shared_drop(frame);
}

static void tell_decision(struct ticker *ticker, const struct catalogue *catalogue,
                          const struct decision_record *decision)
{
	const struct roster *roster = &ticker->service->roster;
	int64_t made_for = -1;
	struct shared *frame = NULL;
	for (struct watcher *watcher = ticker->watchers; watcher; watcher = watcher->next) {
		if (!(watcher->ticks & TICK_DECISIONS) ||
		    !roster_may_see(roster, &watcher->identity, decision->tenant_id) ||
		    (watcher->tenant_id != 0 &&
		     !roster_is_within(roster, decision->tenant_id, watcher->tenant_id)))
			continue;
		int64_t viewer = identity_viewer(&watcher->identity);
		if (viewer != made_for) {
			if (frame)
				shared_drop(frame);
			buffer_clear(&ticker->text);
			struct json_writer json = json_writer_to(&ticker->text);
			json_open_object(&json, NULL);
			json_put_string(&json, "type", "decision");
			json_put_string(&json, "topic", "decisions");
			json_open_array(&json, "decisions");
			decision_view_write(
			    &json, decision,
			    &(struct decision_view){ .catalogue = catalogue, .viewer = viewer });
			json_close(&json);
			json_close(&json);
			frame = websocket_frame(
			    (struct text){ ticker->text.data, ticker->text.size }, true);
			made_for = viewer;
		}
		ticker_send(watcher, frame);
	}
	if (frame)
		shared_drop(frame);
}

static bool read_decisions(struct engine_request *engine, struct store *store, struct error *error)
{
	struct ticker *ticker = engine->context;
	int64_t limit = ticker->knows_last ? DECISIONS_MAX : 1;
	return archive_decisions(store, &(struct decision_filter){ .kind = -1, .limit = limit },
	                         &engine->arena, &ticker->decisions, &ticker->count, error);
}

static void got_decisions(struct engine_request *engine)
{
	struct ticker *ticker = engine->context;
	struct catalogue *catalogue = service_catalogue(ticker->service);
	ticker->reading = false;
	if (!engine->ok)
		return;
	catalogue_lock(catalogue);
	for (int64_t i = ticker->count; ticker->knows_last && i-- > 0;)
		if (ticker->decisions[i].id > ticker->last_decision)
			tell_decision(ticker, catalogue, &ticker->decisions[i]);
	catalogue_unlock(catalogue);
	ticker->last_decision = ticker->count > 0 ? ticker->decisions[0].id : 0;
	ticker->knows_last = true;
}

static void on_tick(struct timer *timer)
{
	struct ticker *ticker = (struct ticker *)((char *)timer - offsetof(struct ticker, timer));
	unsigned ticks = wanted(ticker);
	if (ticker->ticks++ % METRICS_EVERY == 0 && (ticks & TICK_METRICS))
		tell_figures(ticker);
	if (ticker->gpus)
		tell_gpus(ticker);
	if ((ticks & TICK_DECISIONS) && !ticker->reading) {
		ticker->reading = true;
		engine_request_reset(&ticker->engine);
		ticker->engine.read = read_decisions;
		ticker->engine.done = got_decisions;
		ticker->engine.context = ticker;
		engine_port_send(ticker->service->port, &ticker->engine);
	}
	if (ticker->watchers)
		loop_timer_set(ticker->service->port->loop, &ticker->timer, TICK_MS);
}
