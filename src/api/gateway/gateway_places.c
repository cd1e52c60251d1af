/* gateway_places.c - places of gateways in slots: asked for, granted, taken back */
#include <stdlib.h>

#include "api/gateway/gateways_local.h"
#include "api/service/service_state.h"
#include "base/memory.h"

enum {
	PLACE_MS = 86400000, /* how long a place is held without being renewed */
	RENEW_MS = 3600000,  /* renewed when less than this is left */
	GUARD_PLACE_MS = 15000,
	WAITING_MOST = 1024, /* places that a gateway waits for, by model */
	ASKED_AT_ONCE = 512,
};

static struct place **head_of(struct gateways *gateways, struct gateway_peer *peer)
{
	return peer ? &peer->places : &gateways->guards;
}

/* It is in no list any more. */
static void free_place(struct place *place)
{
	map_remove(&place->gateways->places, place->id);
	if (place->peer)
		place->peer->shares_dirty = true;
	free(place);
}

/* The core has ended it. */
static void forget_place(struct place *place)
{
	struct place **at = head_of(place->gateways, place->peer);

	while (*at && *at != place)
		at = &(*at)->next;
	if (*at)
		*at = place->next;
	free_place(place);
}

static void on_quiet(struct engine_request *engine)
{
	request_drop(request_of(engine));
}

/* The core refused it, or it has ended meanwhile. */
static void on_asked(struct engine_request *engine)
{
	struct gateways *gateways = request_of(engine)->service->gateways;
	struct place *place = map_get(&gateways->places, engine->command.request.request_id);

	if (!engine->ok && place)
		forget_place(place);
	request_drop(request_of(engine));
}

static void hand_in(struct gateways *gateways, struct command command,
                    void (*done)(struct engine_request *engine))
{
	struct request *request = request_take_own(&gateways->service->requests);

	request->engine.command = command;
	request->engine.has_command = true;
	request->engine.patient = true;
	request_send(request, done);
}

/* `slot_id` 0: in any slot, and waits for one. */
static void ask_place(struct gateways *gateways, struct gateway_peer *peer, int64_t model_id,
                      int64_t slot_id)
{
	struct place *place = NEW(struct place);
	int64_t lease_ms = peer ? PLACE_MS : GUARD_PLACE_MS;
	struct command command = { .kind = COMMAND_REQUEST };

	place->gateways = gateways;
	place->peer = peer;
	place->id = ++gateways->last_place;
	place->model_id = model_id;
	place->until_ms = loop_now_ms(gateways->loop) + lease_ms;
	place->next = *head_of(gateways, peer);
	*head_of(gateways, peer) = place;
	map_put(&gateways->places, place->id, place);
	command.request = (struct request_command){ .request_id = place->id,
		                                    .model_id = model_id,
		                                    .lease_ms = lease_ms,
		                                    .slot_id = slot_id };
	hand_in(gateways, command, on_asked);
}

/* Gives back one that is in no list any more. */
static void give_back(struct place *place)
{
	struct command command = { .kind = COMMAND_REQUEST_DONE };

	command.done.request_id = place->id;
	command.done.end = place->slot_id > 0 ? REQUEST_SUCCEEDED : REQUEST_GONE;
	hand_in(place->gateways, command, on_quiet);
	free_place(place);
}

void places_drop_all(struct place **head)
{
	struct place *place = *head, *next;

	*head = NULL;
	for (; place; place = next) {
		next = place->next;
		give_back(place);
	}
}

static void renew(struct place *place)
{
	struct command command = { .kind = COMMAND_REQUEST_RENEW };
	int64_t now_ms = loop_now_ms(place->gateways->loop);

	if (place->until_ms - now_ms > RENEW_MS)
		return;
	place->until_ms = now_ms + PLACE_MS;
	command.request = (struct request_command){ .request_id = place->id,
		                                    .model_id = place->model_id,
		                                    .lease_ms = PLACE_MS };
	hand_in(place->gateways, command, on_quiet);
}

void gateways_route(struct gateways *gateways, const struct route_effect *route)
{
	struct place *place = map_get(&gateways->places, route->request_id);

	if (!place)
		return;
	if (place->peer)
		place->peer->shares_dirty = true;
	if (route->outcome == ROUTE_GRANTED)
		place->slot_id = route->slot_id;
	else if (route->outcome == ROUTE_QUEUED)
		place->slot_id = place->lowered = 0;
	else
		forget_place(place);
	gateways_touch(gateways);
}

static int64_t occupied_of(const struct gateway_peer *peer, int64_t slot_id)
{
	for (size_t i = 0; i < peer->occupied_count; i++)
		if (peer->occupied[i].slot_id == slot_id)
			return peer->occupied[i].requests;
	return 0;
}

bool places_are_used(const struct gateway_peer *peer, int64_t slot_id)
{
	return occupied_of(peer, slot_id) > 0;
}

int64_t places_share(const struct gateway_peer *peer, int64_t slot_id)
{
	int64_t share = 0;

	for (const struct place *place = peer->places; place; place = place->next)
		share += place->slot_id == slot_id && place->lowered == 0;
	return share;
}

static int64_t held_in(const struct gateway_peer *peer, int64_t slot_id)
{
	int64_t held = 0;

	for (const struct place *place = peer->places; place; place = place->next)
		held += place->slot_id == slot_id;
	return held;
}

static struct gateway_wish *wish_of(struct gateway_peer *peer, int64_t model_id)
{
	for (size_t i = 0; i < peer->wish_count; i++)
		if (peer->wishes[i].model_id == model_id)
			return &peer->wishes[i];
	array_reserve(peer->wishes, peer->wish_capacity, peer->wish_count + 1);
	peer->wishes[peer->wish_count] = (struct gateway_wish){ .model_id = model_id };
	return &peer->wishes[peer->wish_count++];
}

/* Whether the core has closed the slot for another model. */
static bool is_closing(const struct gateways *gateways, int64_t slot_id)
{
	struct catalogue *catalogue = service_catalogue(gateways->service);

	catalogue_lock(catalogue);
	const struct slot_record *slot = catalogue_get(catalogue, RECORD_SLOT, slot_id, 0);
	bool closing = slot && (slot->closing_for != 0 || slot->evicted);
	catalogue_unlock(catalogue);
	return closing;
}

static int64_t model_of_slot(const struct gateways *gateways, int64_t slot_id)
{
	struct catalogue *catalogue = service_catalogue(gateways->service);

	catalogue_lock(catalogue);
	const struct slot_record *slot = catalogue_get(catalogue, RECORD_SLOT, slot_id, 0);
	int64_t model_id = slot ? slot->model_id : 0;
	catalogue_unlock(catalogue);
	return model_id;
}

/* What is in flight without a place was there before this scheduler: it gets one there. */
static void adopt(struct gateway_peer *peer, const Gateway__Occupied *occupied)
{
	int64_t model_id = model_of_slot(peer->gateways, occupied->slot_id);
	int64_t missing = occupied->requests - held_in(peer, occupied->slot_id);

	for (int64_t i = 0; model_id > 0 && i < missing && i < ASKED_AT_ONCE; i++)
		ask_place(peer->gateways, peer, model_id, occupied->slot_id);
}

void places_take_load(struct gateway_peer *peer, const Gateway__Load *load)
{
	bool first = !peer->has_reported;

	peer->has_reported = true;
	peer->told_routes = load->routes_version;
	peer->told_shares = load->shares_version;
	peer->occupied_count = 0;
	for (size_t i = 0; i < peer->wish_count; i++)
		peer->wishes[i].wanted = 0;
	for (size_t i = 0; i < load->n_occupied; i++) {
		const Gateway__Occupied *occupied = load->occupied[i];
		if (occupied->requests <= 0)
			continue;
		array_reserve(peer->occupied, peer->occupied_capacity, peer->occupied_count + 1);
		peer->occupied[peer->occupied_count++] =
		    (struct gateway_occupied){ occupied->slot_id, occupied->requests };
		wish_of(peer, model_of_slot(peer->gateways, occupied->slot_id))->wanted +=
		    occupied->requests;
		if (first)
			adopt(peer, occupied);
	}
	for (size_t i = 0; i < load->n_demands; i++)
		wish_of(peer, load->demands[i]->model_id)->wanted +=
		    max64(load->demands[i]->waiting, 0);
	gateways_touch(peer->gateways);
}

/* Some more than is used, so that most requests find a place; and slowly less afterwards. */
static void settle_wishes(struct gateway_peer *peer)
{
	for (size_t i = peer->wish_count; i-- > 0;) {
		struct gateway_wish *wish = &peer->wishes[i];
		int64_t wanted = wish->wanted > 0 ? wish->wanted + wish->wanted / 4 + 1 : 0;
		wish->peak = max64(wanted, wish->peak - wish->peak / 16 - 1);
		wish->have = 0;
		if (wish->peak <= 0)
			peer->wishes[i] = peer->wishes[--peer->wish_count];
	}
}

static void ask_more(struct gateway_peer *peer)
{
	for (size_t i = 0; i < peer->wish_count; i++) {
		struct gateway_wish *wish = &peer->wishes[i];
		int64_t wanted =
		    min64(wish->wanted > 0 ? wish->peak : wish->have, wish->have + ASKED_AT_ONCE);
		int64_t waiting = 0;
		for (const struct place *place = peer->places; place; place = place->next)
			waiting += place->model_id == wish->model_id && place->slot_id == 0;
		for (int64_t have = wish->have; have < wanted && waiting < WAITING_MOST;
		     have++, waiting++)
			ask_place(peer->gateways, peer, wish->model_id, 0);
	}
}

/* A place that is not wanted any more: one that waits goes at once, one that was granted when the
 * gateway goes by shares without it and uses no more. */
static bool is_ripe(const struct gateway_peer *peer, const struct place *place)
{
	if (place->lowered == 0 || place->slot_id == 0 ||
	    (peer->link && peer->told_shares < place->lowered))
		return false;
	return occupied_of(peer, place->slot_id) < held_in(peer, place->slot_id);
}

static void take_back(struct gateway_peer *peer)
{
	struct place **at = &peer->places;

	while (*at) {
		struct place *place = *at;
		if (!is_ripe(peer, place)) {
			at = &place->next;
			continue;
		}
		*at = place->next;
		give_back(place);
	}
}

/* Counts a place that is wanted. False: it waits, and is not wanted any more. */
static bool count_or_lower(struct gateway_peer *peer, struct place *place)
{
	struct gateway_wish *wish = wish_of(peer, place->model_id);

	renew(place);
	if (place->lowered > 0)
		return true;
	bool closing = place->slot_id != 0 && is_closing(peer->gateways, place->slot_id);
	if (wish->have < wish->peak && !closing) {
		wish->have++;
		return true;
	}
	if (place->slot_id == 0)
		return false;
	place->lowered = INT64_MAX; /* until it is told */
	peer->shares_dirty = true;
	return true;
}

static void count_and_lower(struct gateway_peer *peer)
{
	struct place **at = &peer->places;

	while (*at) {
		struct place *place = *at;
		if (count_or_lower(peer, place)) {
			at = &place->next;
			continue;
		}
		*at = place->next;
		give_back(place);
	}
}

void places_balance(struct gateway_peer *peer)
{
	if (!peer->has_reported)
		return;
	settle_wishes(peer);
	take_back(peer);
	count_and_lower(peer);
	ask_more(peer);
}

/* All that changed is in the version that is sent now. */
void places_tell(struct gateway_peer *peer)
{
	Gateway__Envelope envelope = GATEWAY__ENVELOPE__INIT;
	Gateway__Shares shares = GATEWAY__SHARES__INIT;
	struct catalogue *catalogue = service_catalogue(peer->gateways->service);
	struct catalogue_cursor cursor = { .kind = RECORD_SLOT };
	const struct slot_record *slot;
	Gateway__Shares__Row *rows = NULL, **list = NULL;
	size_t count = 0, capacity = 0;

	peer->shares_dirty = false;
	peer->shares_version++;
	for (struct place *place = peer->places; place; place = place->next)
		if (place->lowered == INT64_MAX)
			place->lowered = peer->shares_version;
	catalogue_lock(catalogue);
	while ((slot = catalogue_next(catalogue, &cursor)) != NULL) {
		array_reserve(rows, capacity, count + 1);
		gateway__shares__row__init(&rows[count]);
		rows[count++].slot_id = slot->id;
	}
	catalogue_unlock(catalogue);
	list = memory_zero(count + 1, sizeof(*list));
	for (size_t i = 0; i < count; i++) {
		rows[i].share = places_share(peer, rows[i].slot_id);
		list[i] = &rows[i];
	}
	shares.version = peer->shares_version;
	shares.n_rows = count;
	shares.rows = list;
	envelope.shares = &shares;
	gateways_send(peer->link, &envelope);
	free(rows);
	free(list);
}

void places_guard(struct gateways *gateways)
{
	struct catalogue *catalogue = service_catalogue(gateways->service);
	struct catalogue_cursor cursor = { .kind = RECORD_SLOT };
	const struct slot_record *slot;

	catalogue_lock(catalogue);
	while ((slot = catalogue_next(catalogue, &cursor)) != NULL)
		if (slot->state == SLOT_READY)
			ask_place(gateways, NULL, slot->model_id, slot->id);
	catalogue_unlock(catalogue);
}
