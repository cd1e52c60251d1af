/* client.c - requests to a Kubernetes API server: connections, and calls that wait for one */
#include "apiserver/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/client_local.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/number.h"

#define CONNECT_MS 10000
#define CALL_MS 30000
#define TICK_MS 500
#define WAIT_LEAST_MS 200
#define WAIT_MOST_MS 10000
#define QUIET_MS 15000 /* then it is asked whether it is still there */
#define DEAD_MS 30000

int64_t client_now_ms(const struct client *client)
{
	return (int64_t)uv_now(client->settings.loop);
}

static void client_free_texts(struct client *client)
{
	free(client->host);
	free(client->port);
	free(client->prefix);
	free(client->server_name);
	free(client->user_agent);
	if (client->context)
		SSL_CTX_free(client->context);
	free(client);
}

static void free_when_closed(struct client_connection *connection)
{
	if (connection->resolving || connection->opened || connection->client || connection->busy)
		return;
	if (connection->session)
		nghttp2_session_del(connection->session);
	if (connection->ssl)
		SSL_free(connection->ssl);
	free(connection);
}

static void connection_closed(uv_handle_t *handle)
{
	struct client_connection *connection = handle->data;

	connection->opened = false;
	free_when_closed(connection);
}

/* The connection belongs to libuv alone from now on. */
static void client_let_go(struct client_connection *connection)
{
	struct client *client = connection->client;
	struct client_connection **at = &client->connections;

	while (*at != connection) { /* NOLINT(*NullDereference) */
		INVARIANT(*at);
		at = &(*at)->next;
	}
	*at = connection->next; /* NOLINT(*NullDereference) */
	connection->client = NULL;
	if (connection->resolving)
		uv_cancel((uv_req_t *)&connection->resolve);
	if (connection->opened && !connection->closing) {
		connection->closing = true;
		uv_close((uv_handle_t *)&connection->socket, connection_closed);
	}
	free_when_closed(connection);
}

void client_end_call(struct client_call *call, const char *reason)
{
	struct client *client = call->client;

	if (call->connection)
		client_http2_reset(call);
	if (call->previous)
		call->previous->next = call->next;
	else
		client->calls = call->next;
	if (call->next)
		call->next->previous = call->previous;
	client->call_count--;
	buffer_text(&call->body, "");
	if (!call->given_up)
		call->request.done(call->request.context, call->status, call->retry_after_s,
		                   &call->body, reason);
	free((char *)call->request.method);
	free((char *)call->request.path);
	free((char *)call->request.content_type);
	free((char *)call->request.body);
	buffer_free(&call->body);
	free(call);
}

/* Ends what went over the connection. A callback may end others, so each is looked for again. */
static void end_calls_of(struct client *client, const struct client_connection *connection,
                         const char *reason)
{
	for (struct client_call *call = client->calls; call;) {
		if (call->connection != connection) { /* NOLINT(*Malloc) */
			call = call->next;
			continue;
		}
		if (!call->request.data)
			call->status = 0;
		call->connection = NULL;
		client_end_call(call, reason);
		call = client->calls;
	}
}

void client_lose(struct client_connection *connection, const char *reason)
{
	struct client *client = connection->client;
	bool was_open = connection->stage == CLIENT_OPEN;
	char text[ERROR_TEXT_MAX];

	if (!client)
		return;
	snprintf(text, sizeof(text), "%s", reason);
	if (!connection->leaving || !was_open) {
		log_at(LOG_WARNING, "the connection to the API server ended",
		       LOG_TEXT("host", client->host), LOG_TEXT("port", client->port),
		       LOG_TEXT("reason", text));
		int64_t wait_ms = max64(client->wait_ms, WAIT_LEAST_MS);
		client->not_before_ms = client_now_ms(client) + wait_ms;
		client->wait_ms = min64(wait_ms * 2, WAIT_MOST_MS);
	}
	snprintf(client->reason, sizeof(client->reason), "%s", text);
	connection->busy++;
	client_let_go(connection);
	end_calls_of(client, connection, text);
	connection->busy--;
	free_when_closed(connection);
}

struct client_sending {
	uv_write_t request;
	struct client_connection *connection;
	char data[];
};

static void client_written(uv_write_t *request, int status)
{
	struct client_sending *sending = request->data;
	struct client_connection *connection = sending->connection;

	free(sending);
	if (status < 0 && connection->client)
		client_lose(connection, uv_strerror(status));
}

void client_write(struct client_connection *connection, const void *data, size_t size)
{
	uv_stream_t *stream = (uv_stream_t *)&connection->socket;
	uv_buf_t bytes = uv_buf_init((char *)data, (unsigned)size);

	if (!connection->opened || connection->closing)
		return;
	int done =
	    uv_stream_get_write_queue_size(stream) == 0 ? uv_try_write(stream, &bytes, 1) : 0;
	if (done == (int)size)
		return;
	if (done < 0)
		done = 0;
	size -= (size_t)done;
	struct client_sending *sending = memory_alloc(sizeof(*sending) + size);
	memcpy(sending->data, (const char *)data + done, size);
	sending->connection = connection;
	sending->request.data = sending;
	bytes = uv_buf_init(sending->data, (unsigned)size);
	if (uv_write(&sending->request, stream, &bytes, 1, client_written) < 0)
		free(sending);
}

static void client_allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	static char data[65536];

	(void)handle, (void)suggested;
	*buffer = uv_buf_init(data, sizeof(data));
}

static void client_received(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
	struct client_connection *connection = stream->data;
	struct client *client = connection->client;
	struct error error = { 0 };

	if (!client || size == 0)
		return;
	if (size < 0) {
		client_lose(connection,
		            size == UV_EOF ? "closed by the API server" : uv_strerror((int)size));
		return;
	}
	connection->heard_ms = client_now_ms(client);
	connection->pinged_ms = 0;
	connection->busy++;
	bool good = client->tls
	                ? client_tls_receive(connection, buffer->base, (size_t)size, &error)
	                : client_http2_receive(connection, buffer->base, (size_t)size, &error);
	connection->busy--;
	if (!connection->client)
		free_when_closed(connection);
	else if (!good)
		client_lose(connection, error.text);
}

bool client_ready(struct client_connection *connection, struct error *error)
{
	if (!client_http2_begin(connection))
		return error_set(error, ERROR_UNAVAILABLE, "HTTP/2 does not begin");
	connection->stage = CLIENT_OPEN;
	connection->heard_ms = client_now_ms(connection->client);
	connection->client->wait_ms = 0;
	connection->client->dirty = true;
	return true;
}

static void client_connected(uv_connect_t *request, int status)
{
	struct client_connection *connection = request->data;
	struct client *client = connection->client;
	struct error error = { 0 };

	if (!client)
		return;
	if (status < 0) {
		client_lose(connection, uv_strerror(status));
		return;
	}
	uv_tcp_nodelay(&connection->socket, 1);
	uv_read_start((uv_stream_t *)&connection->socket, client_allocate, client_received);
	connection->busy++;
	connection->stage = CLIENT_SECURING;
	bool good =
	    client->tls ? client_tls_begin(connection, &error) : client_ready(connection, &error);
	connection->busy--;
	if (!good)
		client_lose(connection, error.text);
}

static void client_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses)
{
	struct client_connection *connection = request->data;
	struct client *client = connection->client;

	connection->resolving = false;
	if (!client) {
		uv_freeaddrinfo(addresses);
		free_when_closed(connection);
		return;
	}
	if (status == 0) {
		connection->stage = CLIENT_CONNECTING;
		uv_tcp_init(client->settings.loop, &connection->socket);
		connection->opened = true;
		connection->socket.data = connection->connect.data = connection;
		status = uv_tcp_connect(&connection->connect, &connection->socket,
		                        addresses->ai_addr, client_connected);
	}
	uv_freeaddrinfo(addresses);
	if (status < 0)
		client_lose(connection, uv_strerror(status));
}

static void client_connect(struct client *client)
{
	struct client_connection *connection = NEW(struct client_connection);
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };

	connection->client = client;
	connection->next = client->connections;
	connection->began_ms = client_now_ms(client);
	connection->resolve.data = connection;
	client->connections = connection;
	int status = uv_getaddrinfo(client->settings.loop, &connection->resolve, client_resolved,
	                            client->host, client->port, &hints);
	connection->resolving = status == 0;
	if (status < 0)
		client_lose(connection, uv_strerror(status));
}

/* The connection that takes new calls; NULL: there is none. */
static struct client_connection *taking(const struct client *client)
{
	for (struct client_connection *at = client->connections; at; at = at->next)
		if (!at->leaving)
			return at;
	return NULL;
}

static void give_out_calls(struct client *client)
{
	struct client_connection *connection = taking(client);
	bool waiting = false;

	for (struct client_call *call = client->calls; call; call = call->next) {
		if (call->connection)
			continue;
		if (!connection || connection->stage != CLIENT_OPEN)
			waiting = true;
		else if (!client_http2_submit(connection, call))
			break;
	}
	if (waiting && !connection && client_now_ms(client) >= client->not_before_ms)
		client_connect(client);
}

static void flush_all(struct client *client)
{
	struct error error = { 0 };

	for (struct client_connection *at = client->connections, *next; at; at = next) {
		next = at->next; /* NOLINT(*Malloc) */
		if (at->stage == CLIENT_OPEN && !client_http2_flush(at, &error)) {
			client_lose(at, error.text);
			client->dirty = true;
			return;
		}
	}
}

void client_flush(struct client *client)
{
	while (client->dirty) {
		client->dirty = false;
		give_out_calls(client);
		flush_all(client);
	}
}

static void client_before_wait(uv_prepare_t *handle)
{
	client_flush(handle->data);
}

static void check_connections(struct client *client, int64_t now_ms)
{
	for (struct client_connection *at = client->connections, *next; at; at = next) {
		next = at->next;
		if (at->stage != CLIENT_OPEN) {
			if (now_ms - at->began_ms > CONNECT_MS) {
				client_lose(at, "no answer to the connection");
				return;
			}
		} else if (at->leaving && at->calls == 0) {
			client_lose(at, "said goodbye");
			return;
		} else if (now_ms - at->heard_ms > DEAD_MS) {
			client_lose(at, "it does not answer any more");
			return;
		} else if (now_ms - at->heard_ms > QUIET_MS && at->pinged_ms == 0) {
			at->pinged_ms = now_ms;
			client_http2_ping(at);
			client->dirty = true;
		}
	}
}

static void client_tick(uv_timer_t *timer)
{
	struct client *client = timer->data;
	int64_t now_ms = client_now_ms(client);

	check_connections(client, now_ms);
	for (struct client_call *call = client->calls; call;) {
		int64_t most = call->request.timeout_ms; /* NOLINT(*Malloc) */
		most = most ? most : CALL_MS;
		if (now_ms - call->heard_ms <= most) {
			call = call->next;
			continue;
		}
		const char *reason = call->connection || !client->reason[0]
		                         ? "the API server did not answer in time"
		                         : client->reason;
		call->status = 0;
		client_end_call(call, reason);
		call = client->calls;
	}
	client->dirty = true;
}

/* scheme://HOST[:PORT][/PREFIX] */
static bool client_split(struct client *client, const char *server, struct error *error)
{
	const char *host = strstr(server, "://");
	bool tls = strncmp(server, "https://", 8) == 0;

	if (!host || (!tls && strncmp(server, "http://", 7) != 0))
		return error_set(error, ERROR_INVALID,
		                 "'%.100s' is not the address of an API server: write "
		                 "https://HOST:PORT",
		                 server);
	host += 3;
	size_t size = strcspn(host, "/");
	const char *prefix = host + size, *colon = NULL, *end = host + size;
	if (*host == '[') {
		const char *bracket = memchr(host, ']', size);
		if (!bracket)
			return error_set(error, ERROR_INVALID, "'%.100s' has no ']'", server);
		colon = bracket + 1 < end && bracket[1] == ':' ? bracket + 1 : NULL;
		host++;
		size = (size_t)(bracket - host);
	} else {
		colon = memchr(host, ':', size);
		size = colon ? (size_t)(colon - host) : size;
	}
	if (size == 0)
		return error_set(error, ERROR_INVALID, "'%.100s' names no host", server);
	struct buffer text = { 0 };
	buffer_print(&text, "%.*s", (int)size, host);
	client->host = text.data;
	text = (struct buffer){ 0 };
	buffer_print(&text, "%.*s", colon ? (int)(end - colon - 1) : 3,
	             colon ? colon + 1 : (tls ? "443" : "80"));
	client->port = text.data;
	client->prefix = memory_text(prefix);
	size = strlen(client->prefix);
	if (size > 0 && client->prefix[size - 1] == '/')
		client->prefix[size - 1] = '\0';
	client->tls = tls;
	return true;
}

struct client *client_new(const struct client_settings *settings, struct error *error)
{
	struct client *client = NEW(struct client);

	client->settings = *settings;
	client->settings.ca_pem = client->settings.cert_pem = client->settings.key_pem = NULL;
	if (!client_split(client, settings->server, error) ||
	    (client->tls && !(client->context = client_tls_context(settings, error)))) {
		client_free_texts(client);
		return NULL;
	}
	client->server_name = settings->server_name ? memory_text(settings->server_name) : NULL;
	client->user_agent = memory_text(settings->user_agent);
	uv_timer_init(settings->loop, &client->timer);
	uv_prepare_init(settings->loop, &client->before_wait);
	client->timer.data = client->before_wait.data = client;
	client->handles = 2;
	uv_timer_start(&client->timer, client_tick, TICK_MS, TICK_MS);
	uv_prepare_start(&client->before_wait, client_before_wait);
	return client;
}

bool client_renew(struct client *client, const struct client_settings *settings,
                  struct error *error)
{
	if (!client->tls)
		return true;
	SSL_CTX *context = client_tls_context(settings, error);
	if (!context)
		return false;
	SSL_CTX_free(client->context);
	client->context = context;
	/* What is open was made with the old ones: it ends with its calls. */
	for (struct client_connection *at = client->connections; at; at = at->next)
		at->leaving = true;
	return true;
}

static void client_handle_closed(uv_handle_t *handle)
{
	struct client *client = handle->data;

	if (--client->handles == 0)
		client_free_texts(client);
}

void client_free(struct client *client)
{
	if (!client || client->freed)
		return;
	client->freed = true;
	while (client->connections)
		client_let_go(client->connections); /* NOLINT(*Malloc) */
	while (client->calls) {
		client->calls->connection = NULL; /* NOLINT(*Malloc) */
		client->calls->status = 0;
		client_end_call(client->calls, "the client is stopping");
	}
	uv_close((uv_handle_t *)&client->timer, client_handle_closed);
	uv_close((uv_handle_t *)&client->before_wait, client_handle_closed);
}

static char *copy_or_null(const char *text)
{
	return text ? memory_text(text) : NULL;
}

struct client_call *client_start(struct client *client, const struct client_request *request)
{
	struct client_call *call = NEW(struct client_call);

	INVARIANT(!client->freed && request->done);
	call->client = client;
	call->request = *request;
	call->request.method = memory_text(request->method);
	call->request.path = memory_text(request->path);
	call->request.content_type = copy_or_null(request->content_type);
	call->request.body = copy_or_null(request->body);
	call->heard_ms = client_now_ms(client);
	/* At the end: calls go out in the order in which they were started. */
	struct client_call *last = client->calls;
	while (last && last->next)
		last = last->next;
	call->previous = last;
	if (last)
		last->next = call;
	else
		client->calls = call;
	client->call_count++;
	client->dirty = true;
	return call;
}

void client_give_up(struct client_call *call)
{
	struct client *client = call->client;

	call->given_up = true;
	client->dirty = true;
	client_end_call(call, "given up");
}

size_t client_calls(const struct client *client)
{
	return client->call_count;
}
