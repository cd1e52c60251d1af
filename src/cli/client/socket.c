/* socket.c - a WebSocket to the service */
#include "cli/client/socket.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <wslay/wslay.h>

#include "base/memory.h"

enum { HANDSHAKE_MS = 10000, HEAD_BYTES = 64 << 10, MESSAGE_BYTES = 16 << 20 };

struct socket {
	struct fetch_tunnel *tunnel;
	wslay_event_context_ptr wslay;
	struct buffer left; /* what came behind the handshake; `taken` of it were read */
	size_t taken;
	socket_message message;
	void *context;
	bool over;
	int code; /* that the service closed with */
	struct buffer reason;
};

static ssize_t on_receive(wslay_event_context_ptr wslay, uint8_t *data, size_t size, int flags,
                          void *context)
{
	struct socket *socket = context;
	(void)flags;
	if (socket->taken < socket->left.size) {
		size_t rest = socket->left.size - socket->taken;
		size_t part = rest < size ? rest : size;
		memcpy(data, socket->left.data + socket->taken, part);
		socket->taken += part;
		return (ssize_t)part;
	}
	long got = fetch_tunnel_receive(socket->tunnel, data, size, 0);
	if (got > 0)
		return got;
	socket->over = got != FETCH_TUNNEL_WAITS;
	wslay_event_set_error(wslay,
	                      socket->over ? WSLAY_ERR_CALLBACK_FAILURE : WSLAY_ERR_WOULDBLOCK);
	return -1;
}

static ssize_t on_send(wslay_event_context_ptr wslay, const uint8_t *data, size_t size, int flags,
                       void *context)
{
	struct socket *socket = context;
	(void)flags;
	if (fetch_tunnel_send(socket->tunnel, data, size, HANDSHAKE_MS))
		return (ssize_t)size;
	wslay_event_set_error(wslay, WSLAY_ERR_CALLBACK_FAILURE);
	return -1;
}

static int on_mask(wslay_event_context_ptr wslay, uint8_t *data, size_t size, void *context)
{
	(void)wslay, (void)context;
	return RAND_bytes(data, (int)size) == 1 ? 0 : -1;
}

static void on_message(wslay_event_context_ptr wslay,
                       const struct wslay_event_on_msg_recv_arg *message, void *context)
{
	struct socket *socket = context;
	struct text bytes = { (const char *)message->msg, message->msg_length };

	(void)wslay;
	if (message->opcode == WSLAY_CONNECTION_CLOSE) {
		socket->code = message->status_code;
		if (bytes.size > 2)
			buffer_print(&socket->reason, "%.*s", (int)bytes.size - 2, bytes.data + 2);
	} else if (message->opcode == WSLAY_TEXT_FRAME || message->opcode == WSLAY_BINARY_FRAME) {
		socket->message(socket->context, bytes, message->opcode == WSLAY_TEXT_FRAME);
	}
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
static void write_handshake(struct buffer *to, const struct client *client, const char *path,
                            const char *key)
{
	buffer_print(to,
	             "GET %s%s HTTP/1.1\r\nHost: %s\r\nUser-Agent: gpu-cli/" GPU_SCHEDULER_VERSION
	             "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
	             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n",
	             client->address.prefix, path, client->address.authority, key);
	if (client->token)
		buffer_print(to, "Authorization: Bearer %s\r\n", client->token);
	buffer_text(to, "\r\n");
}

static bool send_handshake(struct socket *socket, const struct client *client, const char *path,
                           const char *key, struct error *error)
{
	struct buffer bytes = { 0 };
	write_handshake(&bytes, client, path, key);
	bool sent = fetch_tunnel_send(socket->tunnel, bytes.data, bytes.size, HANDSHAKE_MS);
	explicit_bzero(bytes.data, bytes.size);
	buffer_free(&bytes);
	return sent || error_set(error, ERROR_UNAVAILABLE, "the service closed the connection");
}

/* Receives up to the end of the headers, which is where `left` begins. */
static bool read_head(struct socket *socket, struct buffer *head, struct error *error)
{
	char data[4096];
	for (;;) {
		long got = fetch_tunnel_receive(socket->tunnel, data, sizeof(data), HANDSHAKE_MS);
		if (got <= 0 || head->size > HEAD_BYTES)
			return error_set(error, ERROR_UNAVAILABLE,
			                 "the service does not answer as a WebSocket");
		buffer_bytes(head, data, (size_t)got);
		buffer_text(head, "");
		const char *end = strstr(head->data, "\r\n\r\n");
		if (!end)
			continue;
		size_t size = (size_t)(end - head->data) + 4;
		buffer_bytes(&socket->left, head->data + size, head->size - size);
		head->data[size] = '\0';
		return true;
	}
}

bool socket_is_accepted(const char *head, const char *key)
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

/* The value of a header, up to the end of its line; NULL: it is not there. `name` ends with ':'. */
static const char *header_of(const char *head, const char *name)
{
	for (const char *line = strstr(head, "\r\n"); line; line = strstr(line + 2, "\r\n"))
		if (strncasecmp(line + 2, name, strlen(name)) == 0)
			return line + 2 + strlen(name);
	return NULL;
}

/* The answer is another one than 101: its sentence, as far as it has come. */
static bool read_refusal(struct socket *socket, const struct client *client, const char *head,
                         struct error *error)
{
	struct fetch_answer answer = { 0 };
	const char *length = header_of(head, "content-length:");
	size_t size = length ? strtoul(length, NULL, 10) : 0;
	char data[4096];
	long got = 1;

	if (strncmp(head, "HTTP/1.1 ", 9) != 0 || size > HEAD_BYTES)
		return error_set(error, ERROR_UNAVAILABLE,
		                 "the service does not answer as a WebSocket");
	while (socket->left.size < size && got > 0) {
		got = fetch_tunnel_receive(socket->tunnel, data, sizeof(data), HANDSHAKE_MS);
		if (got > 0)
			buffer_bytes(&socket->left, data, (size_t)got);
	}
	answer.status = atoi(head + 9);
	buffer_bytes(&answer.body, socket->left.data, socket->left.size);
	if (answer.status >= 300)
		client_refusal(&answer, client, error);
	else
		error_set(error, ERROR_UNAVAILABLE, "the service does not answer as a WebSocket");
	fetch_answer_free(&answer);
	return false;
}

static bool read_handshake(struct socket *socket, const struct client *client, const char *key,
                           struct error *error)
{
	struct buffer head = { 0 };
	bool good = read_head(socket, &head, error);
	if (good && head.data && !socket_is_accepted(head.data, key))
		good = read_refusal(socket, client, head.data, error);
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

struct socket *socket_open(const struct client *client, const char *path, socket_message message,
                           void *context, struct error *error)
{
	static const struct wslay_event_callbacks callbacks = {
		.recv_callback = on_receive,
		.send_callback = on_send,
		.genmask_callback = on_mask,
		.on_msg_recv_callback = on_message,
	};
	struct socket *socket = NEW(struct socket);
	unsigned char random[16];
	char key[32];

	socket->message = message;
	socket->context = context;
	socket->tunnel = open_tunnel(client, error);
	RAND_bytes(random, sizeof(random));
	EVP_EncodeBlock((unsigned char *)key, random, sizeof(random));
	if (socket->tunnel && send_handshake(socket, client, path, key, error) &&
	    read_handshake(socket, client, key, error) &&
	    wslay_event_context_client_init(&socket->wslay, &callbacks, socket) == 0) {
		wslay_event_config_set_max_recv_msg_length(socket->wslay, MESSAGE_BYTES);
		return socket;
	}
	socket_close(socket);
	return NULL;
}

void socket_close(struct socket *socket)
{
	if (!socket)
		return;
	if (socket->wslay)
		wslay_event_context_free(socket->wslay);
	fetch_tunnel_close(socket->tunnel);
	buffer_free(&socket->left);
	buffer_free(&socket->reason);
	free(socket);
}

bool socket_send(struct socket *socket, struct text message)
{
	struct wslay_event_msg sent = { .opcode = WSLAY_BINARY_FRAME,
		                        .msg = (const uint8_t *)message.data,
		                        .msg_length = message.size };

	if (socket->over || wslay_event_queue_msg(socket->wslay, &sent) != 0 ||
	    wslay_event_send(socket->wslay) != 0)
		socket->over = true;
	return !socket->over;
}

bool socket_advance(struct socket *socket)
{
	if (socket->over)
		return false;
	/* What breaks the protocol ends reading. */
	if (wslay_event_recv(socket->wslay) != 0 || wslay_event_get_close_received(socket->wslay) ||
	    !wslay_event_get_read_enabled(socket->wslay))
		socket->over = true;
	while (!socket->over && wslay_event_want_write(socket->wslay))
		if (wslay_event_send(socket->wslay) != 0)
			socket->over = true;
	return !socket->over;
}

int socket_descriptor(const struct socket *socket)
{
	return fetch_tunnel_descriptor(socket->tunnel);
}

int socket_code(const struct socket *socket, const char **reason)
{
	*reason = socket->reason.data ? socket->reason.data : "";
	return socket->code;
}
