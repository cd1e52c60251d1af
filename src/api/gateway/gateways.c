/* gateways.c - sessions of gateways: their streams, and orders that wait for them */
#include "api/gateway/gateways.h"

#include <stdlib.h>

#include "api/gateway/gateways_local.h"
#include "api/service/service_state.h"
#include "api/text/protobuf.h"
#include "base/clock.h"
#include "base/memory.h"

enum {
	TICK_MS = 100,
	LOST_MS = 10000,  /* of silence, after which a gateway is gone */
	GUARD_MS = 10000, /* and after a start, one that does not come back */
	STOP_MS = 900000, /* the last request in a slot may take that long */
	WAITING_BYTES_MAX = 16 << 20,
	NAME_BYTES_MAX = 90,
};

static void on_tick(struct timer *timer);

struct gateways *gateways_new(struct service *service)
{
	struct gateways *gateways = NEW(struct gateways);

	gateways->service = service;
	gateways->loop = service->port->loop;
	gateways->tick = TIMER(on_tick);
	return gateways;
}

static void end_link(struct gateway_link *link, enum grpc_status status, const char *text)
{
	struct gateway_peer *peer = link->peer;
	struct request *request = link->request;

	request->state = NULL;
	streams_remove(&link->stream);
	buffer_free(&link->waiting);
	if (peer && peer->link == link) {
		peer->link = NULL;
		serving_forget(&link->gateways->service->serving, peer->name);
	}
	free(link);
	request_finish(request, status, text);
}

static void keep_waiting(struct gateway_link *link, struct text bytes)
{
	uint32_t size = (uint32_t)bytes.size;

	buffer_bytes(&link->waiting, &size, sizeof(size));
	buffer_bytes(&link->waiting, bytes.data, bytes.size);
}

void gateways_send(struct gateway_link *link, const Gateway__Envelope *envelope)
{
	struct arena *arena = &link->gateways->packing;
	struct text bytes = protobuf_write(envelope, arena);

	if (link->waiting.size > 0 || !grpc_send(link->request->exchange, bytes))
		keep_waiting(link, bytes);
	arena_reset(arena);
}

static void on_writable(struct exchange *exchange)
{
	struct gateway_link *link = ((struct request *)exchange->context)->state;
	struct buffer *waiting = &link->waiting;
	size_t at = 0;

	while (at < waiting->size) {
		uint32_t size;
		memcpy(&size, waiting->data + at, sizeof(size));
		if (!grpc_send(exchange, (struct text){ waiting->data + at + sizeof(size), size }))
			break;
		at += sizeof(size) + size;
	}
	if (at > 0)
		memmove(waiting->data, waiting->data + at, waiting->size - at);
	waiting->size -= at;
}

static void on_gone(struct exchange *exchange)
{
	end_link(((struct request *)exchange->context)->state, GRPC_CANCELLED, NULL);
}

static void on_end(struct exchange *exchange)
{
	end_link(((struct request *)exchange->context)->state, GRPC_OK, NULL);
}

static void end_sign_in(struct stream *stream, const char *reason)
{
	end_link(
	    (struct gateway_link *)(void *)((char *)stream - offsetof(struct gateway_link, stream)),
	    GRPC_UNAUTHENTICATED, reason);
}

static struct gateway_peer *find_peer(struct gateways *gateways, const char *name)
{
	struct gateway_peer *peer = gateways->peers;

	while (peer && strcmp(peer->name, name) != 0)
		peer = peer->next;
	return peer;
}

static bool may_speak(const struct identity *identity, const char *name)
{
	if (identity->role == ROLE_ADMIN)
		return true;
	return identity->role == ROLE_GATEWAY &&
	       (!identity->node[0] || strcmp(identity->node, name) == 0);
}

static bool is_name(const char *name)
{
	size_t size = strlen(name);

	for (const char *at = name; *at; at++)
		if (*at <= ' ' || *at > '~' || strchr("/\\\"'?#%", *at))
			return false;
	return size > 0 && size <= NAME_BYTES_MAX;
}

static void welcome(struct gateway_peer *peer, const Gateway__Hello *hello)
{
	struct gateways *gateways = peer->gateways;
	Gateway__Envelope envelope = GATEWAY__ENVELOPE__INIT;
	Gateway__Welcome welcome = GATEWAY__WELCOME__INIT;
	struct engine_health health;
	size_t count = hello->n_boots;
	Gateway__UsageTaken *counted = memory_zero(count + 1, sizeof(*counted));
	Gateway__UsageTaken **list = memory_zero(count + 1, sizeof(*list));

	for (size_t i = 0; i < count; i++) {
		gateway__usage_taken__init(&counted[i]);
		counted[i].boot = hello->boots[i];
		counted[i].to = usage_counted(gateways, peer->name, hello->boots[i]);
		list[i] = &counted[i];
	}
	gateways->service->port->health(gateways->service->port, &health);
	welcome.term = health.term;
	welcome.n_counted = count;
	welcome.counted = list;
	envelope.welcome = &welcome;
	gateways_send(peer->link, &envelope);
	free(counted);
	free(list);
}

static void take_hello(struct gateway_link *link, const Gateway__Hello *hello)
{
	struct gateways *gateways = link->gateways;
	struct gateway_peer *peer;

	if (!is_name(hello->name) || !may_speak(&link->request->identity, hello->name)) {
		end_link(link, GRPC_PERMISSION_DENIED, "this token is not for that gateway");
		return;
	}
	peer = find_peer(gateways, hello->name);
	if (!peer) {
		peer = NEW(struct gateway_peer);
		peer->gateways = gateways;
		peer->name = memory_text(hello->name);
		peer->next = gateways->peers;
		gateways->peers = peer;
	}
	if (peer->link && peer->link != link)
		end_link(peer->link, GRPC_ABORTED, "the gateway has another connection now");
	link->peer = peer;
	peer->link = link;
	peer->boot = hello->boot;
	serving_hear_hello(&gateways->service->serving, peer->name, hello->url);
	peer->seen_ms = loop_now_ms(gateways->loop);
	peer->told_routes = peer->told_shares = 0;
	peer->tokens_hash = 0;
	peer->has_reported = false;
	welcome(peer, hello);
	routes_tell(peer);
	tokens_tell(peer);
}

static void take(struct gateway_link *link, const Gateway__Envelope *envelope)
{
	struct gateway_peer *peer = link->peer;

	if (envelope->hello) {
		take_hello(link, envelope->hello);
		return;
	}
	if (!peer) {
		end_link(link, GRPC_FAILED_PRECONDITION, "hello comes first");
		return;
	}
	peer->seen_ms = loop_now_ms(link->gateways->loop);
	if (envelope->load) {
		places_take_load(peer, envelope->load);
		serving_hear_load(&link->gateways->service->serving, peer->name, envelope->load);
	}
	if (envelope->question)
		verdict_tell(peer, envelope->question);
	if (envelope->usage)
		usage_take(peer, envelope->usage);
}

static void on_body(struct exchange *exchange, struct text part)
{
	struct gateway_link *link = ((struct request *)exchange->context)->state;
	struct arena arena = { 0 };
	Gateway__Envelope *envelope = protobuf_read(&gateway__envelope__descriptor, part, &arena);

	if (!envelope)
		end_link(link, GRPC_INVALID_ARGUMENT, "this is not a gateway.Envelope");
	else
		take(link, envelope);
	arena_free(&arena);
}

static const struct exchange_events link_events = {
	.body = on_body, .body_end = on_end, .writable = on_writable, .gone = on_gone
};

void gateways_connect(struct request *request)
{
	struct gateways *gateways = request->service->gateways;
	struct gateway_link *link = NEW(struct gateway_link);

	link->gateways = gateways;
	link->request = request;
	request->state = link;
	request->exchange->events = &link_events;
	streams_add(request->service->streams, &link->stream, &request->identity, end_sign_in);
	grpc_stream(request->exchange);
}

static void free_peer(struct gateway_peer *peer)
{
	places_drop_all(&peer->places);
	free(peer->occupied);
	free(peer->wishes);
	free(peer->name);
	free(peer);
}

static void forget_lost(struct gateways *gateways)
{
	struct gateway_peer **at = &gateways->peers, *peer;
	int64_t now_ms = loop_now_ms(gateways->loop);

	while ((peer = *at) != NULL) {
		if (peer->seen_ms + LOST_MS > now_ms) {
			at = &peer->next;
			continue;
		}
		*at = peer->next;
		if (peer->link)
			end_link(peer->link, GRPC_ABORTED, "the gateway was silent");
		free_peer(peer);
	}
}

int64_t gateways_part(const struct gateways *gateways, int64_t limit)
{
	int64_t connected = 0;

	for (const struct gateway_peer *peer = gateways->peers; peer; peer = peer->next)
		connected += peer->link != NULL;
	return limit > 0 ? max64(limit / max64(connected, 1), 1) : 0;
}

static bool all_reported(const struct gateways *gateways)
{
	for (const struct gateway_peer *peer = gateways->peers; peer; peer = peer->next)
		if (!peer->has_reported)
			return false;
	for (size_t i = 0; i < gateways->known.capacity; i++)
		if (gateways->known.entries[i].value &&
		    !find_peer((struct gateways *)gateways, gateways->known.entries[i].key))
			return false;
	return true;
}

/* Whether a gateway may have a request in the slot. */
static bool is_used(const struct gateways *gateways, int64_t slot_id)
{
	if (loop_now_ms(gateways->loop) < gateways->guarded_until_ms && !all_reported(gateways))
		return true;
	for (const struct gateway_peer *peer = gateways->peers; peer; peer = peer->next)
		if (places_are_used(peer, slot_id) || !peer->has_reported ||
		    (peer->link &&
		     (peer->routes_dirty || peer->told_routes < peer->routes_version)))
			return true;
	return false;
}

bool gateways_hold(struct gateways *gateways, const struct effect *effect)
{
	struct catalogue *catalogue = service_catalogue(gateways->service);
	int64_t slot_id = effect->kind == EFFECT_STOP ? effect->order.reservation_id : 0;

	if (slot_id == 0 || (!gateways->peers && gateways->known.count == 0))
		return false;
	catalogue_lock(catalogue);
	const struct slot_record *slot = catalogue_get(catalogue, RECORD_SLOT, slot_id, 0);
	bool was_ready = slot && slot->ready_ms > 0;
	catalogue_unlock(catalogue);
	if (!was_ready)
		return false;
	for (const struct held_stop *at = gateways->stops; at; at = at->next)
		if (at->slot_id == slot_id)
			return true;
	for (struct gateway_peer *peer = gateways->peers; peer; peer = peer->next)
		peer->routes_dirty = true;
	struct held_stop *held = NEW(struct held_stop);
	held->effect = effect_copy(&held->arena, effect);
	held->slot_id = slot_id;
	held->since_ms = loop_now_ms(gateways->loop);
	held->next = gateways->stops;
	gateways->stops = held;
	gateways_touch(gateways);
	return true;
}

static void free_stop(struct held_stop *held)
{
	arena_free(&held->arena);
	free(held);
}

static void release_stops(struct gateways *gateways)
{
	struct held_stop **at = &gateways->stops, *held;
	int64_t now_ms = loop_now_ms(gateways->loop);

	while ((held = *at) != NULL) {
		if (is_used(gateways, held->slot_id) && held->since_ms + STOP_MS > now_ms) {
			at = &held->next;
			continue;
		}
		*at = held->next;
		agents_order(gateways->service->agents, &held->effect);
		free_stop(held);
	}
}

/* Others have come or gone: everyone's part of the limits is another. */
static void divide_limits(struct gateways *gateways)
{
	int64_t part = gateways_part(gateways, INT64_MAX);

	for (struct gateway_peer *peer = gateways->peers; peer && part != gateways->parts;
	     peer = peer->next)
		peer->routes_dirty = true;
	gateways->parts = part;
}

static void on_tick(struct timer *timer)
{
	struct gateways *gateways =
	    (struct gateways *)(void *)((char *)timer - offsetof(struct gateways, tick));

	forget_lost(gateways);
	usage_watch_budgets(gateways);
	divide_limits(gateways);
	for (struct gateway_peer *peer = gateways->peers; peer; peer = peer->next) {
		if (peer->link && peer->routes_dirty)
			routes_tell(peer);
		if (peer->link)
			tokens_tell(peer);
		places_balance(peer);
		if (peer->link && peer->shares_dirty)
			places_tell(peer);
	}
	if (gateways->guards &&
	    (loop_now_ms(gateways->loop) >= gateways->guarded_until_ms || all_reported(gateways)))
		places_drop_all(&gateways->guards);
	release_stops(gateways);
	if (gateways->peers || gateways->stops || gateways->guards)
		loop_timer_set(gateways->loop, &gateways->tick, TICK_MS);
}

void gateways_touch(struct gateways *gateways)
{
	loop_timer_set(gateways->loop, &gateways->tick, 0);
}

void gateways_slots_changed(struct gateways *gateways)
{
	for (struct gateway_peer *peer = gateways->peers; peer; peer = peer->next)
		peer->routes_dirty = true;
	if (gateways->peers)
		gateways_touch(gateways);
}

void gateways_event(struct gateways *gateways, const struct event *event)
{
	if (event->kind < EVENT_NODE_CHANGED || event->kind == EVENT_GPU_OVER ||
	    event->kind == EVENT_GPU_FREE_AGAIN || event->kind > EVENT_MODEL_FAILED)
		return;
	gateways_slots_changed(gateways);
}

void gateways_load(struct gateways *gateways, const struct kept *keep)
{
	usage_load(gateways, keep);
}

void gateways_begin(struct gateways *gateways)
{
	gateways->begun = true;
	/* So that a place of an earlier start is never taken for one of this. */
	gateways->last_place = (INT64_C(1) << 61) + (clock_unix_ms() << 14);
	gateways->guarded_until_ms = loop_now_ms(gateways->loop) + GUARD_MS;
	if (gateways->known.count == 0)
		return;
	places_guard(gateways);
	gateways_touch(gateways);
}

void gateways_stop(struct gateways *gateways)
{
	for (const struct gateway_peer *peer = gateways->peers; peer; peer = peer->next)
		if (peer->link)
			end_link(peer->link, GRPC_UNAVAILABLE, "the scheduler is stopping");
}

void gateways_free(struct gateways *gateways)
{
	if (!gateways)
		return;
	loop_timer_clear(gateways->loop, &gateways->tick);
	while (gateways->peers) {
		struct gateway_peer *peer = gateways->peers;
		gateways->peers = peer->next;
		if (peer->link)
			end_link(peer->link, GRPC_UNAVAILABLE, "the scheduler is stopping");
		while (peer->places) {
			struct place *place = peer->places;
			peer->places = place->next;
			free(place);
		}
		free_peer(peer);
	}
	while (gateways->guards) {
		struct place *place = gateways->guards;
		gateways->guards = place->next;
		free(place);
	}
	while (gateways->stops) {
		struct held_stop *held = gateways->stops;
		gateways->stops = held->next;
		free_stop(held);
	}
	map_free(&gateways->places);
	usage_free(gateways);
	serving_free(&gateways->service->serving);
	arena_free(&gateways->packing);
	free(gateways);
}
