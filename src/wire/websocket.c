/* websocket.c - messages both ways over one connection */
#include "wire/websocket.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <wslay/wslay.h>

#include "base/memory.h"
#include "base/number.h"
#include "wire/connection.h"
#include "wire/http1.h"

enum {
	CODE_GOING_AWAY = 1001,
	CODE_ABNORMAL = 1006,
	CODE_POLICY = 1008,
	REASON_BYTES_MAX = 123,
	SECOND_MS = 1000,
};

/* wslay understands what comes in and answers pings and closes; messages go out as frames
 * that are made once for all who get them, past wslay. */
struct websocket {
	struct connection *connection;
	const struct websocket_events *events;
	void *context;
	wslay_event_context_ptr wslay;
	struct text input;     /* what wslay has not taken yet */
	struct buffer pending; /* came with the request */
	int code;              /* that the client closed with */
	size_t control_frames; /* since counted_ms */
	int64_t counted_ms, pinged_ms, closing_ms;
	bool is_closing; /* a close frame was sent */
	bool wants_writable;
	bool hurries; /* messages do not wait for company */
};

static const struct connection_protocol websocket_protocol;

static ssize_t take_input(wslay_event_context_ptr wslay, uint8_t *to, size_t room, int flags,
                          void *context)
{
	(void)flags;
	struct websocket *socket = context;
	size_t size = socket->input.size < room ? socket->input.size : room;
	if (size == 0) {
		wslay_event_set_error(wslay, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	memcpy(to, socket->input.data, size);
	socket->input = text_from(socket->input, size);
	return (ssize_t)size;
}

static ssize_t give_output(wslay_event_context_ptr wslay, const uint8_t *data, size_t size,
                           int flags, void *context)
{
	(void)wslay;
	(void)flags;
	struct websocket *socket = context;
	output_bytes(&socket->connection->output, data, size);
	return (ssize_t)size;
}

/* Frames that carry no data are counted; false if there are too many. */
static bool count_control(struct websocket *socket)
{
	struct loop *loop = socket->connection->loop;
	int64_t now_ms = loop_now_ms(loop);
	if (now_ms - socket->counted_ms >= SECOND_MS) {
		socket->counted_ms = now_ms;
		socket->control_frames = 0;
	}
	return ++socket->control_frames <= loop->limits.control_frames_per_second;
}

static void on_frame(wslay_event_context_ptr wslay,
                     const struct wslay_event_on_frame_recv_start_arg *frame, void *context)
{
	struct websocket *socket = context;
	bool is_control = wslay_is_ctrl_frame(frame->opcode) || frame->payload_length == 0;
	if (!is_control || count_control(socket))
		return;
	socket->connection->loop->counters.protocol_errors++;
	websocket_close(socket, CODE_POLICY, "too many frames without data");
	wslay_event_shutdown_read(wslay);
}

static void on_message(wslay_event_context_ptr wslay,
                       const struct wslay_event_on_msg_recv_arg *message, void *context)
{
	(void)wslay;
	struct websocket *socket = context;
	if (message->opcode == WSLAY_CONNECTION_CLOSE) {
		socket->code =
		    message->status_code != 0 ? message->status_code : WSLAY_CODE_NO_STATUS_RCVD;
		return;
	}
	if (wslay_is_ctrl_frame(message->opcode) || socket->is_closing)
		return;
	if (socket->events->message)
		socket->events->message(
		    socket, (struct text){ (const char *)message->msg, message->msg_length },
		    message->opcode == WSLAY_TEXT_FRAME);
}

/* Sends what wslay has to say, and ends the connection when both sides are done. */
static void websocket_settle(struct websocket *socket)
{
	struct connection *connection = socket->connection;
	if (wslay_event_want_write(socket->wslay) && wslay_event_send(socket->wslay) != 0)
		connection_close(connection);
	if (wslay_event_get_close_sent(socket->wslay) && !socket->is_closing) {
		socket->is_closing = true;
		socket->closing_ms = loop_now_ms(connection->loop);
	}
	if (!wslay_event_want_read(socket->wslay) && !wslay_event_want_write(socket->wslay))
		connection_finish(connection);
	connection_touch(connection);
}

static void websocket_receive(struct connection *connection, struct text bytes)
{
	struct websocket *socket = connection->speech;
	socket->input = bytes;
	int status = wslay_event_recv(socket->wslay);
	socket->input = (struct text){ 0 };
	websocket_settle(socket);
	/* wslay gives up on what it cannot understand, after it has said goodbye. */
	if (status != 0)
		connection_finish(connection);
}

/* What came behind the request, once. */
static void produce(struct connection *connection)
{
	struct websocket *socket = connection->speech;
	if (socket->pending.size == 0)
		return;
	struct buffer pending = socket->pending;
	socket->pending = (struct buffer){ 0 };
	websocket_receive(connection, (struct text){ pending.data, pending.size });
	buffer_free(&pending);
}

static bool websocket_wants_input(const struct connection *connection)
{
	(void)connection;
	return true;
}

static int64_t websocket_deadline_ms(const struct connection *connection)
{
	const struct websocket *socket = connection->speech;
	const struct limits *limits = &connection->loop->limits;
	if (socket->is_closing)
		return socket->closing_ms + limits->linger_ms;
	return max64(connection->received_ms, socket->pinged_ms) + limits->ping_ms;
}

static void websocket_expire(struct connection *connection)
{
	struct websocket *socket = connection->speech;
	if (socket->is_closing || socket->pinged_ms > connection->received_ms) {
		connection_close(connection);
		return;
	}
	static const char ping[] = { (char)0x89, 0 };
	socket->pinged_ms = loop_now_ms(connection->loop);
	output_bytes(&connection->output, ping, sizeof(ping));
	connection_touch(connection);
}

static void websocket_stop(struct connection *connection)
{
	websocket_close(connection->speech, CODE_GOING_AWAY, "the service is stopping");
}

static void drained(struct connection *connection)
{
	struct websocket *socket = connection->speech;
	if (!socket->wants_writable || socket->is_closing)
		return;
	socket->wants_writable = false;
	if (socket->events->writable)
		socket->events->writable(socket);
}

static void lost(struct connection *connection)
{
	struct websocket *socket = connection->speech;
	connection->loop->counters.websockets--;
	socket->is_closing = true;
	if (socket->events->closed)
		socket->events->closed(socket, socket->code);
	wslay_event_context_free(socket->wslay);
	buffer_free(&socket->pending);
	free(socket);
}

static const struct connection_protocol websocket_protocol = {
	.receive = websocket_receive,
	.hangup = connection_close,
	.produce = produce,
	.drained = drained,
	.wants_input = websocket_wants_input,
	.deadline_ms = websocket_deadline_ms,
	.expire = websocket_expire,
	.stop = websocket_stop,
	.lost = lost,
};

/* RFC 6455 4.2.2: the key with a fixed text, as SHA-1, in base 64. */
static void accept_key(struct text key, char answer[32])
{
	static const char magic[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	char text[24 + sizeof(magic)];
	INVARIANT(key.size == 24);
	memcpy(text, key.data, key.size);
	memcpy(text + key.size, magic, sizeof(magic));
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned size = 0;
	if (EVP_Digest(text, key.size + sizeof(magic) - 1, digest, &size, EVP_sha1(), NULL) != 1)
		panic("OpenSSL has no SHA-1");
	EVP_EncodeBlock((unsigned char *)answer, digest, (int)size);
}

static struct websocket *socket_new(struct connection *connection,
                                    const struct websocket_events *events, void *context)
{
	struct websocket *socket = NEW(struct websocket);
	const struct wslay_event_callbacks callbacks = {
		.recv_callback = take_input,
		.send_callback = give_output,
		.on_frame_recv_start_callback = on_frame,
		.on_msg_recv_callback = on_message,
	};
	socket->connection = connection;
	socket->events = events;
	socket->context = context;
	socket->code = CODE_ABNORMAL;
	socket->counted_ms = socket->pinged_ms = loop_now_ms(connection->loop);
	if (wslay_event_context_server_init(&socket->wslay, &callbacks, socket) != 0)
		panic("out of memory for a WebSocket");
	wslay_event_config_set_max_recv_msg_length(socket->wslay,
	                                           connection->loop->limits.message_bytes);
	connection->loop->counters.websockets++;
	return socket;
}

struct websocket *websocket_accept(struct exchange *exchange, const struct websocket_events *events,
                                   void *context, const char *protocol)
{
	struct exchange_state *state = exchange_state(exchange);
	INVARIANT(exchange->is_websocket && state->is_owned);
	if (!exchange_takes(state, ANSWER_START)) {
		exchange_finish(state);
		return NULL;
	}
	struct connection *connection = state->connection;
	struct output *output = &connection->output;
	char key[32];
	accept_key(headers_get(&exchange->headers, "sec-websocket-key"), key);
	output_text(output, TEXT("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n"
	                         "connection: Upgrade\r\nsec-websocket-accept: "));
	output_text(output, text_of(key));
	if (protocol) {
		output_text(output, TEXT("\r\nsec-websocket-protocol: "));
		output_text(output, text_of(protocol));
	}
	output_text(output, TEXT("\r\n"));
	http1_put_headers(output, exchange->common_headers, exchange->common_header_count);
	output_text(output, TEXT("\r\n"));
	struct websocket *socket = socket_new(connection, events, context);
	http1_leave(state, &socket->pending);
	connection_speak(connection, &websocket_protocol, socket);
	exchange_finish(state);
	return socket;
}

void *websocket_context(const struct websocket *socket)
{
	return socket->context;
}

/* The head of a frame that is not masked and the only one of its message. */
static size_t frame_head(char head[10], size_t size, bool is_text)
{
	head[0] = (char)(0x80 | (is_text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME));
	size_t bytes = size < 126 ? 0 : size <= UINT16_MAX ? 2 : 8;
	head[1] = (char)(bytes == 0 ? size : bytes == 2 ? 126 : 127);
	for (size_t i = 0; i < bytes; i++)
		head[2 + i] = (char)(unsigned char)(size >> (8 * (bytes - 1 - i)) & 0xff);
	return 2 + bytes;
}

struct shared *websocket_frame(struct text message, bool is_text)
{
	char head[10];
	size_t head_size = frame_head(head, message.size, is_text);
	struct shared *frame = shared_reserve(head_size + message.size);
	memcpy(frame->data, head, head_size);
	if (message.size > 0)
		memcpy(frame->data + head_size, message.data, message.size);
	return frame;
}

/* A message may be as large as it likes if nothing else is waiting. */
static bool websocket_fits(const struct connection *connection, size_t size)
{
	size_t waiting = connection_waiting(connection);
	return waiting == 0 || waiting + size <= connection->loop->limits.output_bytes;
}

static bool has_room(struct websocket *socket, size_t size)
{
	struct connection *connection = socket->connection;
	if (socket->is_closing || connection->is_closing)
		return false;
	/* What waits may only be waiting for company. */
	if (!websocket_fits(connection, size))
		connection_push(connection);
	if (websocket_fits(connection, size) && connection_may_hold(connection, size))
		return !connection->is_closing;
	socket->wants_writable = true;
	connection->is_blocked = true;
	return false;
}

void websocket_hurry(struct websocket *socket)
{
	socket->hurries = true;
}

bool websocket_send(struct websocket *socket, struct shared *frame)
{
	struct connection *connection = socket->connection;
	loop_check_thread(connection->loop);
	if (!has_room(socket, frame->size))
		return false;
	output_share(&connection->output, shared_hold(frame), shared_text(frame));
	if (socket->hurries)
		connection_touch(connection);
	else
		connection_gather(connection);
	return true;
}

bool websocket_send_text(struct websocket *socket, struct text message)
{
	struct shared *frame = websocket_frame(message, true);
	bool is_taken = websocket_send(socket, frame);
	shared_drop(frame);
	return is_taken;
}

void websocket_close(struct websocket *socket, int code, const char *reason)
{
	loop_check_thread(socket->connection->loop);
	if (socket->is_closing)
		return;
	size_t size = reason ? strlen(reason) : 0;
	if (size > REASON_BYTES_MAX)
		size = REASON_BYTES_MAX;
	wslay_event_queue_close(socket->wslay, (uint16_t)code, (const uint8_t *)reason, size);
	websocket_settle(socket);
}
