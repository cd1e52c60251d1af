/* upstream.c - connections to the servers of models: kept, streaming, with back-pressure */
#include "gateway/upstream.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "gateway/upstream_tls.h"

enum {
	INPUT_BYTES = 64 << 10,
	IDLE_MS = 4000, /* some servers close theirs after 5 s */
	CONNECT_MS = 5000,
	RESOLVED_FOR_MS = 30000,
	HOST_BYTES = 256,
	CERTIFICATE_DIGITS = 64,
	SEAL_BYTES = 256 << 10, /* of a request, sealed at a time */
	/* Each costs about 10 us until its part is with the client; gathering some spares a client
	 * with many streams on one connection a write for each. */
	READS_BEFORE_FLUSH = 16,
};

/* A server. It stays for as long as the gateway runs: there are only that many ports. */
struct upstream_host {
	struct upstream *upstream;
	char host[HOST_BYTES], port[8];
	struct sockaddr_storage address;
	uint64_t resolved_ms; /* 0: not yet */
	bool is_numeric;
	char certificate[CERTIFICATE_DIGITS + 1]; /* that it must show; "": no TLS */
	struct upstream_connection *idle;         /* the latest first */
};

/* A connection: of a request, or idle, or being closed. */
struct upstream_connection {
	uv_tcp_t tcp;
	uv_connect_t connect;
	uv_write_t write;
	uv_getaddrinfo_t resolve;
	struct upstream_host *host;
	struct upstream_request *request; /* NULL: idle or closing */
	struct upstream_connection *next; /* idle */
	struct answer_reader reader;
	struct upstream_tls *tls; /* NULL: none */
	struct buffer sealed;     /* being written */
	int piece;                /* of the request, up to which is sealed */
	size_t piece_at;
	uint64_t since_ms; /* idle; or when it began to connect */
	bool is_open;      /* libuv has the socket */
	bool is_resolving, is_reused, is_reading, is_paused, is_closing, is_connected;
};

struct upstream {
	uv_loop_t *loop;
	uv_timer_t sweep;
	struct text_map hosts;
	struct upstream_host **all;
	size_t host_count, host_capacity, connections;
	struct upstream_connection **connecting; /* those that are not connected yet */
	size_t connecting_count, connecting_capacity;
	char *input, *clear;
	SSL_CTX *tls; /* NULL: not used yet */
	void (*flush)(void *context);
	void *context;
	int reads; /* since the last flush */
	bool is_stopping, has_sweep;
};

static void connection_free(struct upstream_connection *connection)
{
	if (connection->is_open || connection->is_resolving)
		return;
	connection->host->upstream->connections--;
	answer_free(&connection->reader);
	if (connection->tls)
		upstream_tls_end(connection->tls);
	buffer_free(&connection->sealed);
	free(connection);
}

static void on_closed(uv_handle_t *handle)
{
	struct upstream_connection *connection = handle->data;

	connection->is_open = false;
	connection_free(connection);
}

static void no_longer_connecting(struct upstream_connection *connection)
{
	struct upstream *upstream = connection->host->upstream;

	for (size_t i = 0; i < upstream->connecting_count; i++)
		if (upstream->connecting[i] == connection) {
			upstream->connecting[i] =
			    upstream->connecting[--upstream->connecting_count];
			return;
		}
}

static void close_connection(struct upstream_connection *connection)
{
	if (connection->is_closing)
		return;
	connection->is_closing = true;
	if (connection->request)
		connection->request->connection = NULL;
	connection->request = NULL;
	if (!connection->is_connected)
		no_longer_connecting(connection);
	if (connection->is_resolving)
		uv_cancel((uv_req_t *)&connection->resolve);
	if (connection->is_open)
		uv_close((uv_handle_t *)&connection->tcp, on_closed);
	connection_free(connection);
}

static void unlink_idle(struct upstream_connection *connection)
{
	struct upstream_connection **link = &connection->host->idle;

	while (*link != connection)
		link = &(*link)->next;
	*link = connection->next;
}

static void sweep_host(struct upstream_host *host, uint64_t now_ms, bool all)
{
	struct upstream_connection **link = &host->idle, *connection;

	while ((connection = *link) != NULL) {
		if (!all && connection->since_ms + IDLE_MS > now_ms) {
			link = &connection->next;
			continue;
		}
		*link = connection->next;
		close_connection(connection);
	}
}

/* Ends the request of a connection, which is closed. */
static void fail(struct upstream_connection *connection, enum upstream_end how, const char *why)
{
	struct upstream_request *request = connection->request;

	close_connection(connection);
	if (request)
		request->end(request, how, why);
}

static void on_sweep(uv_timer_t *timer)
{
	struct upstream *upstream = timer->data;
	uint64_t now_ms = uv_now(upstream->loop);

	for (size_t i = 0; i < upstream->host_count; i++)
		sweep_host(upstream->all[i], now_ms, upstream->is_stopping);
	for (size_t i = upstream->connecting_count; i-- > 0;)
		if (i < upstream->connecting_count &&
		    upstream->connecting[i]->since_ms + CONNECT_MS <= now_ms)
			fail(upstream->connecting[i], UPSTREAM_REFUSED,
			     "no answer to the connection");
}

struct upstream *upstream_new(uv_loop_t *loop, void (*flush)(void *context), void *context)
{
	struct upstream *upstream = NEW(struct upstream);

	upstream->loop = loop;
	upstream->flush = flush;
	upstream->context = context;
	upstream->input = memory_alloc(INPUT_BYTES);
	uv_timer_init(loop, &upstream->sweep);
	upstream->sweep.data = upstream;
	uv_timer_start(&upstream->sweep, on_sweep, 500, 500);
	upstream->has_sweep = true;
	return upstream;
}

void upstream_stop(struct upstream *upstream)
{
	upstream->is_stopping = true;
	for (size_t i = 0; i < upstream->host_count; i++)
		sweep_host(upstream->all[i], 0, true);
	if (upstream->has_sweep)
		uv_close((uv_handle_t *)&upstream->sweep, NULL);
	upstream->has_sweep = false;
}

void upstream_free(struct upstream *upstream)
{
	for (size_t i = 0; i < upstream->host_count; i++)
		free(upstream->all[i]);
	free(upstream->all);
	free(upstream->connecting);
	text_map_free(&upstream->hosts);
	free(upstream->input);
	free(upstream->clear);
	SSL_CTX_free(upstream->tls);
	free(upstream);
}

size_t upstream_connections(const struct upstream *upstream)
{
	return upstream->connections;
}

/* http://HOST:PORT and http://[HOST]:PORT; false: it is neither. */
static bool split(struct upstream_host *host, const char *address)
{
	static const char scheme[] = "http://";
	if (strncmp(address, scheme, sizeof(scheme) - 1) != 0)
		return false;
	const char *at = address + sizeof(scheme) - 1, *colon = strrchr(at, ':');
	size_t size = colon ? (size_t)(colon - at) : 0;
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;

	if (size == 0 || digits == 0 || digits >= sizeof(host->port) || colon[1 + digits] != '\0')
		return false;
	memcpy(host->port, colon + 1, digits + 1);
	if (at[0] == '[' && at[size - 1] == ']') {
		at++;
		size -= 2;
	}
	if (size == 0 || size >= sizeof(host->host))
		return false;
	memcpy(host->host, at, size);
	host->host[size] = '\0';
	int port = atoi(host->port);
	host->is_numeric =
	    uv_ip4_addr(host->host, port, (struct sockaddr_in *)&host->address) == 0 ||
	    uv_ip6_addr(host->host, port, (struct sockaddr_in6 *)&host->address) == 0;
	return true;
}

/* Of one address there is a host for each certificate that it was to show. */
static struct upstream_host *host_of(struct upstream *upstream, const char *address,
                                     const char *certificate)
{
	char name[HOST_BYTES + 2 * CERTIFICATE_DIGITS];
	bool by_tls = certificate && certificate[0];
	int size = snprintf(name, sizeof(name), "%s%s%s", address, by_tls ? "#" : "",
	                    by_tls ? certificate : "");

	if (size >= (int)sizeof(name) || (by_tls && strlen(certificate) != CERTIFICATE_DIGITS))
		return NULL;
	struct upstream_host *host = text_map_get(&upstream->hosts, name);
	if (host)
		return host;
	host = NEW(struct upstream_host);
	host->upstream = upstream;
	if (!split(host, address)) {
		free(host);
		return NULL;
	}
	if (by_tls)
		memcpy(host->certificate, certificate, CERTIFICATE_DIGITS + 1);
	text_map_put(&upstream->hosts, name, host);
	array_reserve(upstream->all, upstream->host_capacity, upstream->host_count + 1);
	upstream->all[upstream->host_count++] = host;
	return host;
}

static bool try_again(struct upstream_connection *connection);

static void seal_request(struct upstream_connection *connection);
static void write_sealed(struct upstream_connection *connection);

static void on_written(uv_write_t *write, int status)
{
	struct upstream_connection *connection = write->data;

	if (connection->tls)
		buffer_free(&connection->sealed);
	if (connection->tls && status == 0 && !connection->is_closing) {
		if (connection->is_connected)
			seal_request(connection);
		else
			write_sealed(connection);
		return;
	}

	if (status < 0 && status != UV_ECANCELED && connection->request && !try_again(connection))
		fail(connection, connection->request->has_answer ? UPSTREAM_CUT : UPSTREAM_RESET,
		     uv_strerror(status));
}

static void write_rest(struct upstream_connection *connection, uv_buf_t *buffers, unsigned count,
                       size_t done)
{
	while (count > 0 && done >= buffers->len) {
		done -= buffers->len;
		buffers++;
		count--;
	}
	if (count == 0)
		return;
	buffers->base += done;
	buffers->len -= done;
	connection->write.data = connection;
	int status = uv_write(&connection->write, (uv_stream_t *)&connection->tcp, buffers, count,
	                      on_written);
	if (status < 0)
		fail(connection, UPSTREAM_RESET, uv_strerror(status));
}

/* Sends what TLS has to say, unless some is being written: then when that is done. */
static void write_sealed(struct upstream_connection *connection)
{
	if (connection->sealed.size > 0)
		return;
	upstream_tls_take(connection->tls, &connection->sealed);
	if (connection->sealed.size == 0)
		return;
	uv_buf_t buffer = uv_buf_init(connection->sealed.data, (unsigned)connection->sealed.size);
	int done = uv_try_write((uv_stream_t *)&connection->tcp, &buffer, 1);
	if (done == (int)connection->sealed.size)
		buffer_free(&connection->sealed);
	else
		write_rest(connection, &buffer, 1, done > 0 ? (size_t)done : 0);
}

/* The next part of the request, until some waits to be written. */
static void seal_request(struct upstream_connection *connection)
{
	const struct upstream_request *request = connection->request;

	write_sealed(connection);
	while (!connection->is_closing && connection->sealed.size == 0 && request &&
	       connection->piece < request->piece_count) {
		struct text rest =
		    text_from(request->pieces[connection->piece], connection->piece_at);
		if (rest.size == 0) {
			connection->piece++;
			connection->piece_at = 0;
			continue;
		}
		rest.size = rest.size < SEAL_BYTES ? rest.size : SEAL_BYTES;
		connection->piece_at += rest.size;
		if (!upstream_tls_write(connection->tls, rest)) {
			fail(connection, UPSTREAM_RESET, "TLS cannot seal the request");
			return;
		}
		/* The head and a short body go together. */
		if (rest.size == SEAL_BYTES || connection->piece == request->piece_count - 1)
			write_sealed(connection);
	}
	if (!connection->is_closing)
		write_sealed(connection);
}

static void write_request(struct upstream_connection *connection)
{
	if (connection->tls) {
		connection->piece = 0;
		connection->piece_at = 0;
		seal_request(connection);
		return;
	}
	const struct upstream_request *request = connection->request;
	uv_buf_t buffers[UPSTREAM_PIECES_MAX] = { 0 };
	unsigned count = 0;

	for (int i = 0; i < request->piece_count; i++)
		if (request->pieces[i].size > 0)
			buffers[count++] = uv_buf_init((char *)request->pieces[i].data,
			                               (unsigned)request->pieces[i].size);
	int done = uv_try_write((uv_stream_t *)&connection->tcp, buffers, count);
	write_rest(connection, buffers, count, done > 0 ? (size_t)done : 0);
}

static void retire(struct upstream_connection *connection)
{
	struct upstream_host *host = connection->host;

	bool is_busy = connection->tls &&
	               (connection->sealed.size > 0 || !upstream_tls_is_quiet(connection->tls));

	if (!connection->reader.keeps || host->upstream->is_stopping || connection->is_paused ||
	    is_busy) {
		close_connection(connection);
		return;
	}
	answer_reset(&connection->reader);
	connection->since_ms = uv_now(host->upstream->loop);
	connection->next = host->idle;
	host->idle = connection;
}

static void complete(struct upstream_connection *connection)
{
	struct upstream_request *request = connection->request;

	connection->request = NULL;
	request->connection = NULL;
	request->reader = &connection->reader;
	request->end(request, UPSTREAM_COMPLETE, NULL);
	retire(connection);
}

/* What came, until the request has ended or was canceled. */
static void take(struct upstream_connection *connection, struct text bytes)
{
	struct upstream_request *request = connection->request;
	struct text part;

	request->has_answer = true;
	while (connection->request == request) {
		switch (answer_next(&connection->reader, &bytes, &part)) {
		case ANSWER_HEAD:
			request->head(request, &connection->reader);
			if (connection->request == request && !request->keeps_head)
				answer_forget_head(&connection->reader);
			break;
		case ANSWER_PART:
			request->part(request, part);
			break;
		case ANSWER_END:
			/* More than an answer: nothing that follows can be trusted. */
			connection->reader.keeps = connection->reader.keeps && bytes.size == 0;
			complete(connection);
			return;
		case ANSWER_BAD:
			fail(connection, UPSTREAM_GARBLED, connection->reader.why);
			return;
		default:
			return;
		}
	}
}

static void on_end(struct upstream_connection *connection, const char *why)
{
	const struct upstream_request *request = connection->request;

	if (answer_ended(&connection->reader) && request->has_answer)
		complete(connection);
	else
		fail(connection, request->has_answer ? UPSTREAM_CUT : UPSTREAM_RESET, why);
}

static void on_allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	struct upstream_connection *connection = handle->data;

	(void)suggested;
	*buffer = uv_buf_init(connection->host->upstream->input, INPUT_BYTES);
}

/* One that was kept may have been closed meanwhile: that is no failure of the server. */
static bool try_again(struct upstream_connection *connection)
{
	struct upstream_request *request = connection->request;
	struct upstream *upstream = connection->host->upstream;

	if (!connection->is_reused || request->has_answer)
		return false;
	sweep_host(connection->host, 0, true);
	close_connection(connection);
	upstream_send(upstream, request);
	return true;
}

/* Ends with the connection closed, or all taken. */
static void take_clear(struct upstream_connection *connection)
{
	struct upstream *upstream = connection->host->upstream;
	const struct upstream_request *request = connection->request;
	int got = 0;

	while (!connection->is_closing && connection->request == request && request &&
	       (got = upstream_tls_read(connection->tls, upstream->clear, INPUT_BYTES)) > 0)
		take(connection, (struct text){ upstream->clear, (size_t)got });
	if (connection->is_closing || connection->request != request || !request)
		return;
	if (got < 0 && try_again(connection))
		return;
	if (got == -1)
		on_end(connection, "the server closed the connection");
	else if (got < 0)
		fail(connection, request->has_answer ? UPSTREAM_CUT : UPSTREAM_RESET,
		     "what the server sent is not TLS");
	else
		write_sealed(connection);
}

static void shake_hands(struct upstream_connection *connection)
{
	const char *why = NULL;
	enum upstream_tls_state state =
	    upstream_tls_shake(connection->tls, connection->host->certificate, &why);

	write_sealed(connection);
	if (connection->is_closing || state == UPSTREAM_TLS_SHAKES)
		return;
	if (state == UPSTREAM_TLS_FAILED) {
		fail(connection, UPSTREAM_REFUSED, why);
		return;
	}
	connection->is_connected = true;
	no_longer_connecting(connection);
	write_request(connection);
}

static void take_sealed(struct upstream_connection *connection, struct text sealed)
{
	if (!upstream_tls_receive(connection->tls, sealed)) {
		fail(connection, UPSTREAM_GARBLED, "TLS cannot take what was received");
		return;
	}
	if (!connection->is_connected)
		shake_hands(connection);
	if (!connection->is_closing && connection->is_connected)
		take_clear(connection);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
	struct upstream_connection *connection = stream->data;
	struct upstream *upstream = connection->host->upstream;

	if (size == 0 || connection->is_closing)
		return;
	if (!connection->request) { /* idle: nothing is expected */
		unlink_idle(connection);
		close_connection(connection);
	} else if (size > 0 && connection->tls) {
		take_sealed(connection, (struct text){ buffer->base, (size_t)size });
	} else if (size > 0) {
		take(connection, (struct text){ buffer->base, (size_t)size });
	} else if (!connection->is_connected) {
		fail(connection, UPSTREAM_REFUSED, "the connection ended in the TLS handshake");
	} else if (!try_again(connection)) {
		on_end(connection, size == UV_EOF ? "the server closed the connection"
		                                  : uv_strerror((int)size));
	}
	if (++upstream->reads >= READS_BEFORE_FLUSH) {
		upstream->reads = 0;
		upstream->flush(upstream->context);
	}
}

static void begin_tls(struct upstream_connection *connection)
{
	struct upstream *upstream = connection->host->upstream;

	if (!upstream->tls) {
		upstream->tls = upstream_tls_new();
		upstream->clear = memory_alloc(INPUT_BYTES);
	}
	connection->tls = upstream_tls_begin(upstream->tls);
	shake_hands(connection);
}

static void on_connected(uv_connect_t *connect, int status)
{
	struct upstream_connection *connection = connect->data;

	if (connection->is_closing)
		return;
	if (status < 0) {
		fail(connection, UPSTREAM_REFUSED, uv_strerror(status));
		return;
	}
	uv_tcp_nodelay(&connection->tcp, 1);
	uv_read_start((uv_stream_t *)&connection->tcp, on_allocate, on_read);
	connection->is_reading = true;
	if (connection->host->certificate[0]) {
		begin_tls(connection);
		return;
	}
	connection->is_connected = true;
	no_longer_connecting(connection);
	write_request(connection);
}

static void begin(struct upstream_connection *connection)
{
	struct upstream_host *host = connection->host;

	uv_tcp_init(host->upstream->loop, &connection->tcp);
	connection->tcp.data = connection->connect.data = connection;
	connection->is_open = true;
	int status = uv_tcp_connect(&connection->connect, &connection->tcp,
	                            (const struct sockaddr *)&host->address, on_connected);
	if (status < 0)
		fail(connection, UPSTREAM_REFUSED, uv_strerror(status));
}

static void on_resolved(uv_getaddrinfo_t *resolve, int status, struct addrinfo *addresses)
{
	struct upstream_connection *connection = resolve->data;
	struct upstream_host *host = connection->host;

	connection->is_resolving = false;
	if (status == 0) {
		memcpy(&host->address, addresses->ai_addr, addresses->ai_addrlen);
		host->resolved_ms = uv_now(host->upstream->loop);
	}
	uv_freeaddrinfo(addresses);
	if (connection->is_closing)
		connection_free(connection);
	else if (status < 0)
		fail(connection, UPSTREAM_REFUSED, uv_strerror(status));
	else
		begin(connection);
}

static void resolve(struct upstream_connection *connection)
{
	struct upstream_host *host = connection->host;
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };

	connection->resolve.data = connection;
	int status = uv_getaddrinfo(host->upstream->loop, &connection->resolve, on_resolved,
	                            host->host, host->port, &hints);
	connection->is_resolving = status == 0;
	if (status < 0)
		fail(connection, UPSTREAM_REFUSED, uv_strerror(status));
}

static void connect_anew(struct upstream_host *host, struct upstream_request *request)
{
	struct upstream *upstream = host->upstream;
	struct upstream_connection *connection = NEW(struct upstream_connection);
	uint64_t now_ms = uv_now(upstream->loop);

	connection->host = host;
	connection->request = request;
	connection->since_ms = now_ms;
	request->connection = connection;
	upstream->connections++;
	array_reserve(upstream->connecting, upstream->connecting_capacity,
	              upstream->connecting_count + 1);
	upstream->connecting[upstream->connecting_count++] = connection;
	if (host->is_numeric ||
	    (host->resolved_ms > 0 && host->resolved_ms + RESOLVED_FOR_MS > now_ms))
		begin(connection);
	else
		resolve(connection);
}

void upstream_send(struct upstream *upstream, struct upstream_request *request)
{
	struct upstream_host *host = host_of(upstream, request->address, request->certificate);

	request->has_answer = false;
	if (!host) {
		request->end(request, UPSTREAM_REFUSED,
		             "its address is not http://HOST:PORT, or its certificate no SHA-256");
		return;
	}
	struct upstream_connection *connection = host->idle;
	if (!connection) {
		connect_anew(host, request);
		return;
	}
	host->idle = connection->next;
	connection->is_reused = true;
	connection->request = request;
	request->connection = connection;
	write_request(connection);
}

void upstream_cancel(struct upstream_request *request)
{
	if (request->connection)
		close_connection(request->connection);
}

void upstream_pause(struct upstream_request *request, bool paused)
{
	struct upstream_connection *connection = request->connection;

	if (!connection || connection->is_paused == paused || !connection->is_connected)
		return;
	connection->is_paused = paused;
	if (paused)
		uv_read_stop((uv_stream_t *)&connection->tcp);
	else
		uv_read_start((uv_stream_t *)&connection->tcp, on_allocate, on_read);
}
