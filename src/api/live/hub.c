/* hub.c - what happens, told to everyone who listens */
#include "api/live/hub.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/job/event_view.h"
#include "api/live/ticker.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "store/archive.h"

enum {
	RING = 16384, /* events that are kept for those who come back, or are slow */
	PAGE = 500,   /* events that are read from the store at a time */
	PUMP = 1000,  /* events that are sent to one listener before the others have their turn */
	CODE_POLICY = 1008, /* of WebSocket */
};

/* An event that happened lately, and the frame that was made of it, if anyone wanted it. */
struct moment {
	struct event event;
	struct shared *frame;
};

/* A listener is live (`cursor` is the hub's last number: events are sent as they come), or
 * behind: it came back from earlier, or does not read as fast. Then it gets what it has not
 * had from the ring, or first from the store where that is older. */
struct listener {
	struct hub *hub;
	struct stream stream;
	struct websocket *socket;
	struct identity identity;
	unsigned topics;   /* a bit for each */
	int64_t tenant_id; /* only of this one and those below; 0: of all that it may see */
	int64_t cursor;    /* the number up to which it has everything */
	bool blocked;      /* the socket takes nothing now */
	bool is_ending;    /* and will take nothing any more */
	bool from_store;   /* what it misses may be read from the store */
	struct engine_request *reading;
	struct timer pump;
	struct listener *next, *before;
};

struct hub {
	struct service *service;
	struct moment *ring;
	int64_t first, last; /* numbers of the events in the ring; first is larger: none */
	struct listener *listeners;
	struct ticker *ticker;
	struct buffer text;
	struct hub_counters counters;
};

struct hub *hub_new(struct service *service)
{
	struct hub *hub = NEW(struct hub);
	hub->service = service;
	hub->ring = memory_zero(RING, sizeof(*hub->ring));
	hub->ticker = ticker_new(service);
	hub->first = 1;
	return hub;
}

void hub_begin(struct hub *hub, int64_t last_event)
{
	if (last_event <= hub->last)
		return;
	hub->last = last_event;
	hub->first = last_event + 1;
}

static struct moment *moment_of(const struct hub *hub, int64_t number)
{
	return &hub->ring[number % RING];
}

void hub_free(struct hub *hub)
{
	if (!hub)
		return;
	ticker_free(hub->ticker);
	for (size_t i = 0; i < RING; i++)
		if (hub->ring[i].frame)
			shared_drop(hub->ring[i].frame);
	free(hub->ring);
	buffer_free(&hub->text);
	free(hub);
}

struct hub_counters hub_counters(const struct hub *hub)
{
	return hub->counters;
}

static bool is_for(const struct listener *listener, const struct event *event)
{
	const struct roster *roster = &listener->hub->service->roster;
	if (!(listener->topics & 1U << event_topic(event->kind)))
		return false;
	if (event->kind == EVENT_NODE_MISREPORTED)
		return roster_sees_all(&listener->identity);
	/* Nodes are everyone's; what is somebody's is for those who may see it. */
	if (event->tenant_id == 0)
		return (event->job_id == 0 && event->model_id == 0) ||
		       roster_sees_all(&listener->identity);
	if (listener->tenant_id != 0 &&
	    !roster_is_within(roster, event->tenant_id, listener->tenant_id))
		return false;
	return roster_may_see(roster, &listener->identity, event->tenant_id);
}

static struct shared *make_frame(struct hub *hub, const struct event *event)
{
	struct catalogue *catalogue = service_catalogue(hub->service);
	buffer_clear(&hub->text);
	struct json_writer json = json_writer_to(&hub->text);
	catalogue_lock(catalogue);
	event_view_write(&json, event, catalogue);
	catalogue_unlock(catalogue);
	return websocket_frame((struct text){ hub->text.data, hub->text.size }, true);
}

/* One frame for all who see the event. */
static struct shared *frame_of(struct hub *hub, struct moment *moment)
{
	if (!moment->frame)
		moment->frame = make_frame(hub, &moment->event);
	return moment->frame;
}

static bool hub_send(struct listener *listener, struct shared *frame)
{
	if (listener->is_ending || !websocket_send(listener->socket, frame)) {
		listener->blocked = true;
		return false;
	}
	listener->hub->counters.sent++;
	return true;
}

void hub_event(struct hub *hub, const struct event *event)
{
	int64_t before = hub->last;
	struct moment *moment = moment_of(hub, event->number);
	if (event->number <= before)
		return;
	if (moment->frame)
		shared_drop(moment->frame);
	*moment = (struct moment){ .event = *event };
	hub->last = event->number;
	if (event->number != before + 1)
		hub->first = event->number;
	hub->first = max64(hub->first, event->number - RING + 1);
	for (struct listener *listener = hub->listeners; listener; listener = listener->next) {
		if (listener->cursor != before || listener->blocked)
			continue;
		if (!is_for(listener, event) || hub_send(listener, frame_of(hub, moment)))
			listener->cursor = event->number;
	}
}

/* Tells what will not come any more. */
static bool tell_missed(struct listener *listener, int64_t from, int64_t to)
{
	char text[160];
	int64_t count = to - from + 1;
	int size = snprintf(text, sizeof(text),
	                    "{\"type\":\"missed\",\"from\":%lld,\"to\":%lld,\"count\":%lld}",
	                    (long long)from, (long long)to, (long long)count);
	struct shared *frame = websocket_frame((struct text){ text, (size_t)size }, true);
	bool sent = hub_send(listener, frame);
	shared_drop(frame);
	if (sent)
		listener->hub->counters.skipped += count;
	return sent;
}

struct reading {
	struct engine_request engine; /* first: one pointer is the other */
	struct listener *listener;    /* NULL: it has gone meanwhile */
	struct hub *hub;
	int64_t since, until;
	struct event *events;
	int64_t count;
};

static bool hub_read_events(struct engine_request *engine, struct store *store, struct error *error)
{
	struct reading *reading = (struct reading *)engine;
	return archive_events(store,
	                      &(struct event_filter){ .since = reading->since, .limit = PAGE },
	                      &engine->arena, &reading->events, &reading->count, error);
}

static void pump(struct listener *listener);

static void got_events(struct engine_request *engine)
{
	struct reading *reading = (struct reading *)engine;
	struct listener *listener = reading->listener;
	if (listener) {
		listener->reading = NULL;
		for (int64_t i = 0; i < reading->count && engine->ok && !listener->blocked; i++) {
			const struct event *event = &reading->events[i];
			if (event->number > reading->until)
				break;
			if (is_for(listener, event)) {
				struct shared *frame = make_frame(reading->hub, event);
				bool sent = hub_send(listener, frame);
				shared_drop(frame);
				if (!sent)
					break;
			}
			listener->cursor = event->number;
		}
		/* Nothing more is stored before what the ring has. */
		bool is_end = !engine->ok || reading->count < PAGE;
		if (is_end && !listener->blocked)
			listener->from_store = false;
		pump(listener);
	}
	engine_request_free(engine);
	free(reading);
}

static void read_from_store(struct listener *listener)
{
	struct reading *reading = NEW(struct reading);
	struct hub *hub = listener->hub;
	reading->listener = listener;
	reading->hub = hub;
	reading->since = listener->cursor;
	reading->until = hub->first - 1;
	reading->engine.read = hub_read_events;
	reading->engine.done = got_events;
	listener->reading = &reading->engine;
	engine_port_send(hub->service->port, &reading->engine);
}

/* Sends what a listener that is behind has not had, as far as that goes now. */
static void pump(struct listener *listener)
{
	struct hub *hub = listener->hub;
	if (listener->blocked || listener->reading || listener->cursor >= hub->last)
		return;
	if (listener->cursor + 1 < hub->first) {
		if (listener->from_store) {
			read_from_store(listener);
			return;
		}
		if (!tell_missed(listener, listener->cursor + 1, hub->first - 1))
			return;
		listener->cursor = hub->first - 1;
	}
	for (int i = 0; listener->cursor < hub->last; i++) {
		if (i == PUMP) {
			loop_timer_set(hub->service->port->loop, &listener->pump, 1);
			return;
		}
		struct moment *moment = moment_of(hub, listener->cursor + 1);
		if (is_for(listener, &moment->event) && !hub_send(listener, frame_of(hub, moment)))
			return;
		listener->cursor++;
	}
	listener->from_store = false;
}

static void on_pump(struct timer *timer)
{
	pump((struct listener *)((char *)timer - offsetof(struct listener, pump)));
}

static void hub_on_writable(struct websocket *socket)
{
	struct listener *listener = websocket_context(socket);
	listener->blocked = listener->is_ending;
	pump(listener);
}

static void on_closed(struct websocket *socket, int code)
{
	struct listener *listener = websocket_context(socket);
	struct hub *hub = listener->hub;
	(void)code;
	streams_remove(&listener->stream);
	if (listener->reading)
		((struct reading *)listener->reading)->listener = NULL;
	loop_timer_clear(hub->service->port->loop, &listener->pump);
	ticker_remove(hub->ticker, socket);
	if (listener->before)
		listener->before->next = listener->next;
	else
		hub->listeners = listener->next;
	if (listener->next)
		listener->next->before = listener->before;
	hub->counters.listeners--;
	free(listener);
}

/* Who listens is not who it was let in as any more. */
static void end_listening(struct stream *stream, const char *reason)
{
	struct listener *listener =
	    (struct listener *)(void *)((char *)stream - offsetof(struct listener, stream));
	streams_remove(stream);
	listener->is_ending = listener->blocked = true;
	ticker_remove(listener->hub->ticker, listener->socket);
	websocket_close(listener->socket, CODE_POLICY, reason);
}

static const struct websocket_events socket_events = { .writable = hub_on_writable,
	                                               .closed = on_closed };

/* What is asked for in the query. */

static bool read_topics(struct request *request, unsigned *topics, unsigned *ticks)
{
	struct text list = query_get(&request->exchange->query, "topics"), item;
	*topics = *ticks = 0;
	if (!list.data || list.size == 0) {
		*topics = (1U << TOPICS) - 1;
		*ticks = TICK_METRICS | TICK_DECISIONS;
		return true;
	}
	while (text_next(&list, ',', &item)) {
		unsigned bit = text_is(item, "metrics")     ? TICK_METRICS
		               : text_is(item, "decisions") ? TICK_DECISIONS
		               : text_is(item, "gpus")      ? TICK_GPUS
		                                            : 0;
		*ticks |= bit;
		for (unsigned topic = 0; topic < TOPICS; topic++)
			if (text_is(item, event_topic_names[topic])) {
				*topics |= 1U << topic;
				bit = 1;
			}
		if (bit)
			continue;
		request_refuse(
		    request, 400, "invalid",
		    "topics must be of jobs, nodes, slots, tenants, decisions, metrics and "
		    "gpus, separated by commas");
		return false;
	}
	return true;
}

static bool hub_read_tenant(struct request *request, int64_t *tenant_id)
{
	struct text name = query_get(&request->exchange->query, "tenant_id");
	*tenant_id = 0;
	if (!name.data || name.size == 0)
		return true;
	const struct roster_tenant *tenant = roster_named(&request->service->roster, name);
	if (!tenant || !roster_may_see(&request->service->roster, &request->identity, tenant->id)) {
		request_unknown(request, "tenant", name);
		return false;
	}
	*tenant_id = tenant->id;
	return true;
}

/* Of the protocols that the client offers one has to be taken: none with a token, if there
 * is another. */
static const char *choose_protocol(struct request *request)
{
	struct text list = headers_get(&request->exchange->headers, "sec-websocket-protocol"), item;
	struct text chosen = { NULL, 0 };
	if (!list.data)
		return NULL;
	while (text_next(&list, ',', &item))
		if (item.size > 0 && (!chosen.data || text_starts(chosen, "bearer.")))
			chosen = item;
	if (!chosen.data)
		return NULL;
	char *copy = arena_alloc(&request->engine.arena, chosen.size + 1);
	memcpy(copy, chosen.data, chosen.size);
	copy[chosen.size] = '\0';
	return copy;
}

static void greet(struct listener *listener)
{
	char text[80];
	int size = snprintf(text, sizeof(text), "{\"type\":\"hello\",\"seq\":%lld}",
	                    (long long)listener->hub->last);
	websocket_send_text(listener->socket, (struct text){ text, (size_t)size });
}

void hub_listen(struct request *request)
{
	struct hub *hub = request->service->hub;
	struct error error = { 0 };
	unsigned topics, ticks;
	int64_t tenant_id, since;

	if (!request->exchange->is_websocket) {
		request_header(request, "upgrade", TEXT("websocket"));
		request_refuse(request, 426, "upgrade_required",
		               "this is a WebSocket: connect to it with ws:// or wss://");
		return;
	}
	if (!read_topics(request, &topics, &ticks) || !hub_read_tenant(request, &tenant_id))
		return;
	if (!query_integer(&request->exchange->query, "since", 0, INT64_MAX, -1, &since, &error)) {
		request_fail(request, &error);
		return;
	}
	struct listener *listener = NEW(struct listener);
	*listener = (struct listener){ .hub = hub,
		                       .identity = request->identity,
		                       .topics = topics,
		                       .tenant_id = tenant_id,
		                       .cursor = since >= 0 ? min64(since, hub->last) : hub->last,
		                       .from_store = since >= 0,
		                       .pump = TIMER(on_pump),
		                       .next = hub->listeners };
	request->exchange->events = NULL;
	request_count(request, 101);
	listener->socket =
	    websocket_accept(request->exchange, &socket_events, listener, choose_protocol(request));
	if (!listener->socket) {
		free(listener);
		request_drop(request);
		return;
	}
	if (hub->listeners)
		hub->listeners->before = listener;
	hub->listeners = listener;
	hub->counters.listeners++;
	streams_add(request->service->streams, &listener->stream, &request->identity,
	            end_listening);
	greet(listener);
	if (ticks)
		ticker_add(hub->ticker, listener->socket, &request->identity, tenant_id, ticks);
	request_drop(request);
	pump(listener);
}
