/* states.c - a handler that answers when and how a fuzzer says, and checks what it is told */
#include "states.h"

#include "wire/exchange_state.h"

enum { SLOTS = 8, LARGE_BYTES = 20000, ROUNDS = 16 };

/* HEADED: shown by `head` and not ours yet. OWNED: ours to end. */
enum slot_state { EMPTY, HEADED, OWNED };

static struct slot {
	struct exchange *exchange;
	enum slot_state state;
	bool has_begun, is_gone, is_streamed;
} slots[SLOTS];
static struct websocket *sockets[SLOTS];

static void free_slot(struct slot *slot)
{
	slot->exchange->context = NULL;
	slot->exchange->events = NULL;
	*slot = (struct slot){ 0 };
}

static struct slot *slot_of(struct exchange *exchange)
{
	struct slot *slot = exchange->context;
	INVARIANT(slot && slot->state != EMPTY && slot->exchange == exchange);
	return slot;
}

static void states_on_body(struct exchange *exchange, struct text part)
{
	const struct slot *slot = slot_of(exchange);
	INVARIANT(slot->is_streamed && !slot->is_gone);
	if (part.size > 0)
		INVARIANT(part.data[part.size - 1] == part.data[part.size - 1]);
}

static void on_body_end(struct exchange *exchange)
{
	const struct slot *slot = slot_of(exchange);
	INVARIANT(slot->is_streamed && !slot->is_gone);
}

static void states_on_writable(struct exchange *exchange)
{
	const struct slot *slot = slot_of(exchange);
	INVARIANT(slot->state == OWNED && slot->has_begun && !slot->is_gone);
}

static void states_on_gone(struct exchange *exchange)
{
	struct slot *slot = slot_of(exchange);
	INVARIANT(!slot->is_gone);
	slot->is_gone = true;
	if (slot->state == HEADED)
		free_slot(slot);
}

static const struct exchange_events events = { .body = states_on_body,
	                                       .body_end = on_body_end,
	                                       .writable = states_on_writable,
	                                       .gone = states_on_gone };

static void states_on_head(struct exchange *exchange)
{
	struct slot *slot = slots;
	char kind = exchange->path.size > 1 ? exchange->path.data[1] : '\0';
	while (slot < slots + SLOTS && slot->state != EMPTY)
		slot++;
	if (slot == slots + SLOTS || kind == 'r') {
		exchange_refuse(exchange, 401, "unauthorized", "no");
		return;
	}
	*slot = (struct slot){ .exchange = exchange, .state = HEADED };
	exchange->context = slot;
	exchange->events = &events;
	exchange->hangup_is_gone = kind == 'h';
	if (kind == 's') {
		slot->is_streamed = true;
		slot->state = OWNED;
		if (exchange->is_grpc)
			grpc_stream(exchange);
		else
			exchange_stream_body(exchange);
	} else if (kind == 'b' && !exchange->is_grpc && !exchange->is_websocket) {
		slot->state = OWNED;
		slot->has_begun = true;
		exchange_begin(exchange, &(struct response){ 0 });
	}
}

static void states_on_request(struct exchange *exchange)
{
	struct slot *slot = slot_of(exchange);
	INVARIANT(slot->state == HEADED && !slot->is_gone);
	slot->state = OWNED;
}

const struct handler states_handler = { .head = states_on_head, .request = states_on_request };

static void closed(struct websocket *socket, int code)
{
	struct websocket **place = websocket_context(socket);
	INVARIANT(*place == socket && code != 0);
	*place = NULL;
}

static void echo(struct websocket *socket, struct text message, bool is_text)
{
	struct shared *frame = websocket_frame(message, is_text);
	websocket_send(socket, frame);
	shared_drop(frame);
}

static const struct websocket_events socket_events = { .closed = closed, .message = echo };

static struct text some_bytes(unsigned how)
{
	static char bytes[LARGE_BYTES];
	return (struct text){ bytes, how & 1 ? sizeof(bytes) : 10 };
}

static void accept_socket(struct slot *slot)
{
	struct exchange *exchange = slot->exchange;
	struct websocket **place = sockets;
	while (place < sockets + SLOTS && *place)
		place++;
	free_slot(slot);
	if (place < sockets + SLOTS)
		*place = websocket_accept(exchange, &socket_events, place, NULL);
	else
		exchange_refuse(exchange, 503, "full", "no");
}

/* Ends an exchange of which nothing was sent. */
static void states_answer(struct slot *slot, unsigned how)
{
	struct exchange *exchange = slot->exchange;
	struct text body = some_bytes(how);
	if (exchange->is_websocket && how % 4 != 3) {
		accept_socket(slot);
		return;
	}
	free_slot(slot);
	if (exchange->is_grpc && how % 4 < 2)
		grpc_reply(exchange, body);
	else if (how % 4 == 2)
		exchange_refuse(exchange, 404, "not_found", "no");
	else if (how % 4 == 3)
		exchange_abort(exchange);
	else if (how & 4)
		exchange_respond(exchange,
		                 &(struct response){ .shared = shared_new(body.data, body.size) });
	else
		exchange_respond(exchange, &(struct response){ .body = body });
}

/* Another part of an answer. */
static void states_add(struct slot *slot, unsigned how)
{
	struct exchange *exchange = slot->exchange;
	struct text part = some_bytes(how);
	if (exchange->is_grpc) {
		slot->has_begun = true;
		grpc_send(exchange, part);
	} else if (!slot->has_begun) {
		slot->has_begun = true;
		exchange_begin(exchange, &(struct response){ 0 });
	} else if (how & 2) {
		struct shared *shared = shared_new(part.data, part.size);
		if (!exchange_share(exchange, shared))
			shared_drop(shared);
	} else {
		exchange_write(exchange, part);
	}
}

/* Ends what was begun. */
static void states_finish(struct slot *slot, unsigned how)
{
	struct exchange *exchange = slot->exchange;
	free_slot(slot);
	if (how & 1)
		exchange_abort(exchange);
	else if (exchange->is_grpc)
		grpc_finish(exchange, GRPC_OK, NULL);
	else
		exchange_end(exchange);
}

static void use_socket(struct websocket *socket, unsigned how)
{
	struct text message = some_bytes(how);
	struct shared *frame = websocket_frame(message, true);
	if (how % 4 == 3)
		websocket_close(socket, 1000, "enough");
	else
		websocket_send(socket, frame);
	shared_drop(frame);
}

void states_act(unsigned number)
{
	struct slot *slot = &slots[number % SLOTS];
	unsigned action = number / SLOTS % 4, how = number / SLOTS / 4;
	if (sockets[number % SLOTS])
		use_socket(sockets[number % SLOTS], how);
	if (slot->state == EMPTY)
		return;
	if (action == 0 && slot->exchange->is_grpc) {
		grpc_expire(exchange_state(slot->exchange));
	} else if (slot->state != OWNED) {
		return;
	} else if (action == 0) {
		exchange_pause_body(slot->exchange, how & 1);
	} else if (action == 1) {
		states_add(slot, how);
	} else if (slot->has_begun) {
		states_finish(slot, how);
	} else if (action == 2) {
		states_answer(slot, how);
	}
}

static void end_owned(void)
{
	for (int i = 0; i < SLOTS; i++) {
		if (slots[i].state == OWNED && slots[i].has_begun)
			states_finish(&slots[i], 0);
		else if (slots[i].state == OWNED)
			states_answer(&slots[i], 0);
	}
}

void states_end(struct pair *pair)
{
	pair_hang_up(pair);
	/* An answer may let in requests that had to wait for it. */
	for (int i = 0; i < ROUNDS; i++) {
		end_owned();
		pair_run(pair);
	}
	for (int i = 0; i < SLOTS; i++)
		INVARIANT(!sockets[i] && slots[i].state == EMPTY);
	pair_close(pair);
}
