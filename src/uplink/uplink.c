/* uplink.c - the way to a scheduler: addresses, sockets, trying again */
#include "uplink/uplink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/number.h"
#include "uplink/uplink_local.h"

#define CONNECT_MS 10000

static void uplink_begin(struct uplink *link);

static void free_all(struct uplink *link)
{
	for (size_t i = 0; i < link->address_count; i++)
		free(link->addresses[i]);
	free(link->addresses);
	if (link->tls)
		SSL_CTX_free(link->tls);
	free(link);
}

static void free_connection_when_closed(struct uplink_connection *connection)
{
	if (connection->resolving || connection->opened || connection->link)
		return;
	free(connection);
}

static void socket_closed(uv_handle_t *handle)
{
	struct uplink_connection *connection = handle->data;

	connection->opened = false;
	free_connection_when_closed(connection);
}

/* The connection belongs to libuv alone from now on. */
static void let_go(struct uplink *link)
{
	struct uplink_connection *connection = link->connection;

	if (!connection)
		return;
	link->connection = NULL;
	connection->link = NULL;
	uplink_http2_end(connection);
	if (connection->ssl)
		SSL_free(connection->ssl);
	connection->ssl = NULL;
	buffer_free(&connection->waiting);
	grpc_frame_reader_free(&connection->frames);
	if (connection->resolving)
		uv_cancel((uv_req_t *)&connection->resolve);
	if (connection->opened && !connection->closing) {
		connection->closing = true;
		uv_close((uv_handle_t *)&connection->socket, socket_closed);
	}
	free_connection_when_closed(connection);
}

static void try_again(uv_timer_t *timer)
{
	struct uplink *link = timer->data;

	if (link->stage == UPLINK_WAITING)
		uplink_begin(link);
	else
		uplink_disconnect(link, "no answer to the connection");
}

/* Between half of the time and all of it, twice as long each time. */
static void wait_to_try(struct uplink *link)
{
	int64_t wait_ms = max64(link->wait_ms, link->settings.retry_least_ms);
	int64_t half_ms = wait_ms / 2;

	link->wait_ms = min64(wait_ms * 2, link->settings.retry_most_ms);
	link->stage = UPLINK_WAITING;
	wait_ms = half_ms + (int64_t)random_below(&link->seed, (uint64_t)(wait_ms - half_ms) + 1);
	uv_timer_start(&link->retry, try_again, (uint64_t)wait_ms, 0);
}

void uplink_disconnect(struct uplink *link, const char *reason)
{
	bool was_open = link->stage == UPLINK_OPEN;

	if (link->stage == UPLINK_WAITING)
		return;
	log_at(LOG_WARNING, "the connection to the scheduler ended", LOG_TEXT("host", link->host),
	       LOG_TEXT("port", link->port), LOG_TEXT("reason", reason));
	let_go(link);
	wait_to_try(link);
	if (was_open)
		link->settings.disconnected(link->settings.context, reason);
}

struct sending {
	uv_write_t request;
	struct uplink_connection *connection;
	char data[];
};

static void written(uv_write_t *request, int status)
{
	struct sending *sending = request->data;
	struct uplink *link = sending->connection->link;

	free(sending);
	if (status < 0 && link)
		uplink_disconnect(link, uv_strerror(status));
}

void uplink_write(struct uplink *link, const void *data, size_t size)
{
	struct uplink_connection *connection = link->connection;
	uv_stream_t *stream = (uv_stream_t *)&connection->socket;
	uv_buf_t bytes = uv_buf_init((char *)data, (unsigned)size);
	int done =
	    uv_stream_get_write_queue_size(stream) == 0 ? uv_try_write(stream, &bytes, 1) : 0;

	if (done == (int)size)
		return;
	if (done < 0)
		done = 0;
	size -= (size_t)done;
	struct sending *sending = memory_alloc(sizeof(*sending) + size);
	memcpy(sending->data, (const char *)data + done, size);
	sending->connection = connection;
	sending->request.data = sending;
	bytes = uv_buf_init(sending->data, (unsigned)size);
	if (uv_write(&sending->request, stream, &bytes, 1, written) < 0)
		free(sending);
}

static void uplink_allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	static char data[65536];

	(void)handle, (void)suggested;
	*buffer = uv_buf_init(data, sizeof(data));
}

static void received(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
	struct uplink_connection *connection = stream->data;
	struct uplink *link = connection->link;
	struct error error = { 0 };

	if (!link || size == 0)
		return;
	if (size < 0) {
		uplink_disconnect(link, size == UV_EOF ? "closed by the scheduler"
		                                       : uv_strerror((int)size));
		return;
	}
	bool good = link->tls ? uplink_tls_receive(link, buffer->base, (size_t)size, &error)
	                      : uplink_http2_receive(link, buffer->base, (size_t)size, &error);
	/* Who was told may have given it up. */
	if (!good && connection->link == link)
		uplink_disconnect(link, error.text);
}

bool uplink_ready(struct uplink *link, struct error *error)
{
	if (!uplink_http2_begin(link))
		return error_set(error, ERROR_UNAVAILABLE, "HTTP/2 does not begin");
	uv_timer_stop(&link->retry);
	link->stage = UPLINK_OPEN;
	uplink_touch(link);
	link->settings.connected(link->settings.context);
	return true;
}

static void connected(uv_connect_t *request, int status)
{
	struct uplink_connection *connection = request->data;
	struct uplink *link = connection->link;
	struct error error = { 0 };
	bool good = true;

	if (!link)
		return;
	if (status < 0) {
		uplink_disconnect(link, uv_strerror(status));
		return;
	}
	uv_tcp_nodelay(&connection->socket, 1);
	uv_read_start((uv_stream_t *)&connection->socket, uplink_allocate, received);
	if (link->tls) {
		link->stage = UPLINK_SECURING;
		good = uplink_tls_begin(link, &error);
	} else {
		good = uplink_ready(link, &error);
	}
	if (!good && connection->link == link)
		uplink_disconnect(link, error.text);
}

static void resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses)
{
	struct uplink_connection *connection = request->data;
	struct uplink *link = connection->link;

	connection->resolving = false;
	if (!link) {
		uv_freeaddrinfo(addresses);
		free_connection_when_closed(connection);
		return;
	}
	if (status == 0) {
		link->stage = UPLINK_CONNECTING;
		uv_tcp_init(link->settings.loop, &connection->socket);
		connection->opened = true;
		connection->socket.data = connection->connect.data = connection;
		status = uv_tcp_connect(&connection->connect, &connection->socket,
		                        addresses->ai_addr, connected);
	}
	uv_freeaddrinfo(addresses);
	if (status < 0)
		uplink_disconnect(link, uv_strerror(status));
}

/* HOST:PORT or [HOST]:PORT. */
static bool split_address(const char *address, char *host, size_t host_size, char *port,
                          size_t port_size)
{
	const char *colon = strrchr(address, ':');
	size_t size = colon ? (size_t)(colon - address) : 0;

	if (size == 0 || strlen(colon + 1) == 0 || strlen(colon + 1) >= port_size ||
	    strspn(colon + 1, "0123456789") != strlen(colon + 1))
		return false;
	if (address[0] == '[' && address[size - 1] == ']') {
		address++;
		size -= 2;
	}
	if (size == 0 || size >= host_size)
		return false;
	memcpy(host, address, size);
	host[size] = '\0';
	memcpy(port, colon + 1, strlen(colon + 1) + 1);
	return true;
}

static void uplink_begin(struct uplink *link)
{
	struct uplink_connection *connection = NEW(struct uplink_connection);
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };

	split_address(link->addresses[link->next_address], link->host, sizeof(link->host),
	              link->port, sizeof(link->port));
	link->next_address = (link->next_address + 1) % link->address_count;
	connection->link = link;
	connection->resolve.data = connection;
	link->connection = connection;
	link->stage = UPLINK_RESOLVING;
	uv_timer_start(&link->retry, try_again, CONNECT_MS, 0);
	int status = uv_getaddrinfo(link->settings.loop, &connection->resolve, resolved, link->host,
	                            link->port, &hints);
	connection->resolving = status == 0;
	if (status < 0)
		uplink_disconnect(link, uv_strerror(status));
}

void uplink_flush(struct uplink *link)
{
	struct error error = { 0 };

	if (!link->dirty)
		return;
	link->dirty = false;
	if (link->stage == UPLINK_OPEN && !uplink_http2_flush(link, &error))
		uplink_disconnect(link, error.text);
}

void uplink_touch(struct uplink *link)
{
	link->dirty = true;
}

static bool copy_addresses(struct uplink *link, const char *const *addresses, struct error *error)
{
	size_t capacity = 0;

	for (; *addresses; addresses++) {
		if (!split_address(*addresses, link->host, sizeof(link->host), link->port,
		                   sizeof(link->port)))
			return error_set(error, ERROR_INVALID,
			                 "'%s' is not the address of a scheduler: write HOST:PORT",
			                 *addresses);
		array_reserve(link->addresses, capacity, link->address_count + 1);
		link->addresses[link->address_count++] = memory_text(*addresses);
	}
	return link->address_count > 0 ||
	       error_set(error, ERROR_INVALID, "no scheduler is named: use --scheduler HOST:PORT");
}

struct uplink *uplink_new(const struct uplink_settings *settings, struct error *error)
{
	struct uplink *link = NEW(struct uplink);

	link->settings = *settings;
	link->seed = (uint64_t)clock_boot_ms() ^ (uint64_t)getpid() << 32;
	if (!copy_addresses(link, settings->addresses, error) ||
	    (settings->tls && !uplink_tls_new(link, error))) {
		free_all(link);
		return NULL;
	}
	uv_timer_init(settings->loop, &link->retry);
	link->retry.data = link;
	uplink_begin(link);
	return link;
}

static void timer_closed(uv_handle_t *handle)
{
	free_all(handle->data);
}

void uplink_free(struct uplink *link)
{
	let_go(link);
	uv_close((uv_handle_t *)&link->retry, timer_closed);
}

bool uplink_is_connected(const struct uplink *link)
{
	return link->stage == UPLINK_OPEN;
}
