/* stream.c - live events of the service, over a WebSocket */
#include "cli/client/stream.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <wslay/wslay.h>

#include "base/memory.h"

enum { HANDSHAKE_MS = 10000, HEAD_BYTES = 64 << 10, EVENT_BYTES = 16 << 20 };

struct stream {
	struct fetch_tunnel *tunnel;
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
	(void)flags;
	if (stream->taken < stream->left.size) {
		size_t rest = stream->left.size - stream->taken;
		size_t part = rest < size ? rest : size;
		memcpy(data, stream->left.data + stream->taken, part);
		stream->taken += part;
		return (ssize_t)part;
	}
	long got = fetch_tunnel_receive(stream->tunnel, data, size, 0);
	if (got > 0)
		return got;
	stream->over = got != FETCH_TUNNEL_WAITS;
	wslay_event_set_error(socket,
	                      stream->over ? WSLAY_ERR_CALLBACK_FAILURE : WSLAY_ERR_WOULDBLOCK);
	return -1;
}

static ssize_t on_send(wslay_event_context_ptr socket, const uint8_t *data, size_t size, int flags,
                       void *context)
{
	struct stream *stream = context;
	(void)flags;
	if (fetch_tunnel_send(stream->tunnel, data, size, HANDSHAKE_MS))
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

/* Appends the request to become a WebSocket. */
static void write_handshake(struct buffer *to, const struct client *client, const char *topics,
                            const char *key)
{
	buffer_print(to, "GET %s/api/v1/stream?topics=", client->address.prefix);
	client_escape(to, topics);
	buffer_print(to,
	             " HTTP/1.1\r\nHost: %s\r\nUser-Agent: gpu-cli/" GPU_SCHEDULER_VERSION
	             "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
	             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n",
	             client->address.authority, key);
	if (client->token)
		buffer_print(to, "Authorization: Bearer %s\r\n", client->token);
	buffer_text(to, "\r\n");
}

static bool send_handshake(struct stream *stream, const struct client *client, const char *topics,
                           const char *key, struct error *error)
{
	struct buffer bytes = { 0 };
	write_handshake(&bytes, client, topics, key);
	bool sent = fetch_tunnel_send(stream->tunnel, bytes.data, bytes.size, HANDSHAKE_MS);
	explicit_bzero(bytes.data, bytes.size);
	buffer_free(&bytes);
	return sent || error_set(error, ERROR_UNAVAILABLE, "the service closed the connection");
}

/* Receives up to the end of the headers, which is where `left` begins. */
static bool read_head(struct stream *stream, struct buffer *head, struct error *error)
{
	char data[4096];
	for (;;) {
		long got = fetch_tunnel_receive(stream->tunnel, data, sizeof(data), HANDSHAKE_MS);
		if (got <= 0 || head->size > HEAD_BYTES)
			return error_set(error, ERROR_UNAVAILABLE,
			                 "the service does not answer as a WebSocket");
		buffer_bytes(head, data, (size_t)got);
		buffer_text(head, "");
		const char *end = strstr(head->data, "\r\n\r\n");
		if (!end)
			continue;
		size_t size = (size_t)(end - head->data) + 4;
		buffer_bytes(&stream->left, head->data + size, head->size - size);
		head->data[size] = '\0';
		return true;
	}
}

bool stream_is_accepted(const char *head, const char *key)
{
	static const char name[] = "sec-websocket-accept:";
	char accept[64];
	accept_of(key, accept);
	if (strncmp(head, "HTTP/1.1 101 ", 13) != 0)
		return false;
	for (const char *line = strstr(head, "\r\n"); line; line = strstr(line + 2, "\r\n")) {
		if (strncasecmp(line + 2, name, sizeof(name) - 1) != 0)
			continue;
		const char *value = line + 2 + sizeof(name) - 1;
		value += strspn(value, " \t");
		size_t size = strcspn(value, " \t\r\n");
		return size == strlen(accept) && strncmp(value, accept, size) == 0;
	}
	return false;
}

static bool read_handshake(struct stream *stream, const char *key, struct error *error)
{
	struct buffer head = { 0 };
	bool good = read_head(stream, &head, error);
	if (good && (!head.data || !stream_is_accepted(head.data, key)))
		good = error_set(error, ERROR_UNAVAILABLE,
		                 "the service does not answer as a WebSocket");
	buffer_free(&head);
	return good;
}

static struct fetch_tunnel *open_tunnel(const struct client *client, struct error *error)
{
	struct client_call call;
	client_call_begin(&call, client, &(struct client_request){ .method = "GET", .path = "/" });
	call.request.connect_ms = HANDSHAKE_MS;
	struct fetch_tunnel *tunnel = fetch_tunnel(&call.request, error);
	client_call_end(&call);
	return tunnel;
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
	stream->tunnel = open_tunnel(client, error);
	RAND_bytes(random, sizeof(random));
	EVP_EncodeBlock((unsigned char *)key, random, sizeof(random));
	if (stream->tunnel && send_handshake(stream, client, topics, key, error) &&
	    read_handshake(stream, key, error) &&
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
	fetch_tunnel_close(stream->tunnel);
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
	return fetch_tunnel_descriptor(stream->tunnel);
}
