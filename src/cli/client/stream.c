/* stream.c - live events of the service, over a WebSocket */
#include "cli/client/stream.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <wslay/wslay.h>

#include "base/memory.h"

enum { HANDSHAKE_MS = 10000, EVENT_BYTES = 16 << 20 };

struct stream {
	struct connection *connection;
	wslay_event_context_ptr socket;
	struct buffer left; /* what came behind the handshake; `taken` of it were read */
	size_t taken;
	json_t *events; /* that were not asked for yet */
	bool over;
};

static ssize_t on_receive(wslay_event_context_ptr socket, uint8_t *data, size_t size, int flags,
                          void *context)
{
	struct stream *stream = context;
	struct error unused;
	(void)flags;
	if (stream->taken < stream->left.size) {
		size_t rest = stream->left.size - stream->taken;
		size_t part = rest < size ? rest : size;
		memcpy(data, stream->left.data + stream->taken, part);
		stream->taken += part;
		return (ssize_t)part;
	}
	long got = connection_read(stream->connection, data, size, 0, &unused);
	if (got > 0)
		return got;
	stream->over = got != CONNECTION_WAITS;
	wslay_event_set_error(socket,
	                      stream->over ? WSLAY_ERR_CALLBACK_FAILURE : WSLAY_ERR_WOULDBLOCK);
	return -1;
}

static ssize_t on_send(wslay_event_context_ptr socket, const uint8_t *data, size_t size, int flags,
                       void *context)
{
	struct stream *stream = context;
	struct error unused;
	(void)flags;
	if (connection_write(stream->connection, data, size, HANDSHAKE_MS, &unused))
		return (ssize_t)size;
	wslay_event_set_error(socket, WSLAY_ERR_CALLBACK_FAILURE);
	return -1;
}

static int on_mask(wslay_event_context_ptr socket, uint8_t *data, size_t size, void *context)
{
	(void)socket, (void)context;
	return RAND_bytes(data, (int)size) == 1 ? 0 : -1;
}

static void on_message(wslay_event_context_ptr socket,
                       const struct wslay_event_on_msg_recv_arg *message, void *context)
{
	struct stream *stream = context;
	(void)socket;
	if (message->opcode != WSLAY_TEXT_FRAME)
		return;
	json_t *event = json_loadb((const char *)message->msg, message->msg_length, 0, NULL);
	if (event)
		json_array_append_new(stream->events, event);
}

/* The answer that a server must give to this key (RFC 6455, 4.2.2). */
static void accept_of(const char *key, char accept[64])
{
	struct buffer text = { 0 };
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned size = 0;
	buffer_print(&text, "%s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
	EVP_Digest(text.data, text.size, digest, &size, EVP_sha1(), NULL);
	EVP_EncodeBlock((unsigned char *)accept, digest, (int)size);
	buffer_free(&text);
}

static bool send_handshake(struct stream *stream, const struct client *client, const char *topics,
                           const char *key, struct error *error)
{
	struct buffer path = { 0 }, extra = { 0 }, bytes = { 0 };
	buffer_text(&path, "/api/v1/stream?topics=");
	client_escape(&path, topics);
	buffer_print(&extra,
	             "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
	             "Sec-WebSocket-Key: %s\r\n",
	             key);
	client_write_head(client, &(struct client_request){ .method = "GET", .path = path.data },
	                  extra.data, &bytes);
	bool sent =
	    connection_write(stream->connection, bytes.data, bytes.size, HANDSHAKE_MS, error);
	explicit_bzero(bytes.data, bytes.size);
	buffer_free(&path);
	buffer_free(&extra);
	buffer_free(&bytes);
	return sent;
}

static bool read_handshake(struct stream *stream, const struct client *client, const char *key,
                           struct error *error)
{
	struct http_answer answer = { 0 };
	char data[4096], accept[64];
	bool good = true;
	http_answer_begin(&answer);
	while (good && !answer.complete) {
		long got =
		    connection_read(stream->connection, data, sizeof(data), HANDSHAKE_MS, error);
		good = got > 0 && http_answer_take(&answer, data, (size_t)got, error);
	}
	if (good && !answer.upgraded) {
		client_refusal(&answer, client, error);
		good = false;
	}
	accept_of(key, accept);
	if (good && (answer.accept.size == 0 || strcmp(answer.accept.data, accept) != 0))
		good = error_set(error, ERROR_UNAVAILABLE, "the service speaks no WebSocket");
	if (good)
		buffer_bytes(&stream->left, answer.left.data, answer.left.size);
	http_answer_free(&answer);
	return good;
}

struct stream *stream_open(const struct client *client, const char *topics, struct error *error)
{
	static const struct wslay_event_callbacks callbacks = {
		.recv_callback = on_receive,
		.send_callback = on_send,
		.genmask_callback = on_mask,
		.on_msg_recv_callback = on_message,
	};
	struct stream *stream = NEW(struct stream);
	unsigned char random[16];
	char key[32];

	stream->events = json_array();
	stream->connection =
	    connection_open(&client->address, client->ca_file, HANDSHAKE_MS, error);
	RAND_bytes(random, sizeof(random));
	EVP_EncodeBlock((unsigned char *)key, random, sizeof(random));
	if (stream->connection && send_handshake(stream, client, topics, key, error) &&
	    read_handshake(stream, client, key, error) &&
	    wslay_event_context_client_init(&stream->socket, &callbacks, stream) == 0) {
		wslay_event_config_set_max_recv_msg_length(stream->socket, EVENT_BYTES);
		return stream;
	}
	stream_close(stream);
	return NULL;
}

void stream_close(struct stream *stream)
{
	if (!stream)
		return;
	if (stream->socket)
		wslay_event_context_free(stream->socket);
	connection_close(stream->connection);
	buffer_free(&stream->left);
	json_decref(stream->events);
	free(stream);
}

bool stream_next(struct stream *stream, json_t **event)
{
	*event = NULL;
	if (json_array_size(stream->events) == 0 && !stream->over) {
		if (wslay_event_recv(stream->socket) != 0 ||
		    wslay_event_get_close_received(stream->socket))
			stream->over = true;
		while (!stream->over && wslay_event_want_write(stream->socket))
			if (wslay_event_send(stream->socket) != 0)
				stream->over = true;
	}
	if (json_array_size(stream->events) > 0) {
		*event = json_incref(json_array_get(stream->events, 0));
		json_array_remove(stream->events, 0);
	}
	return *event || !stream->over;
}

int stream_descriptor(const struct stream *stream)
{
	return connection_descriptor(stream->connection);
}
