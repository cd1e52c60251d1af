/* greeting.c - the first bytes of a connection, and what they say about the rest */
#include "wire/greeting.h"

#include "wire/http1.h"
#include "wire/http2.h"
#include "wire/tls_session.h"

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
enum { PREFACE_BYTES = sizeof(preface) - 1 };

static void greeting_receive(struct connection *connection, struct text bytes)
{
	_Static_assert(PREFACE_BYTES == sizeof(connection->greeting), "the preface fits exactly");
	size_t room = PREFACE_BYTES - connection->greeting_size;
	size_t taken = bytes.size < room ? bytes.size : room;
	memcpy(connection->greeting + connection->greeting_size, bytes.data, taken);
	connection->greeting_size += taken;
	struct text start = { connection->greeting, connection->greeting_size };
	bool is_http2 = memcmp(start.data, preface, start.size) == 0;
	if (is_http2 && start.size < PREFACE_BYTES)
		return;
	if (is_http2)
		http2_open(connection);
	else
		http1_open(connection);
	connection->protocol->receive(connection, start);
	if (bytes.size > taken && !connection->is_closing)
		connection->protocol->receive(connection, text_from(bytes, taken));
}

static void greeting_end(struct connection *connection)
{
	connection_close(connection);
}

static void greeting_stop(struct connection *connection)
{
	if (connection->greeting_size == 0)
		connection_close(connection);
}

static void nothing(struct connection *connection)
{
	(void)connection;
}

static bool greeting_wants_input(const struct connection *connection)
{
	(void)connection;
	return true;
}

static int64_t greeting_deadline_ms(const struct connection *connection)
{
	const struct limits *limits = &connection->loop->limits;
	if (connection->awaits_proxy)
		return connection->opened_ms + limits->head_ms;
	if (connection->tls && !tls_session_is_ready(connection->tls))
		return connection->opened_ms + limits->handshake_ms;
	if (connection->greeting_size > 0)
		return connection->received_ms + limits->head_ms;
	return connection->opened_ms + limits->idle_ms;
}

const struct connection_protocol greeting_protocol = {
	.receive = greeting_receive,
	.hangup = greeting_end,
	.drained = nothing,
	.wants_input = greeting_wants_input,
	.deadline_ms = greeting_deadline_ms,
	.expire = greeting_end,
	.stop = greeting_stop,
	.lost = nothing,
};
