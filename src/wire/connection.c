/* connection.c - one client's connection: bytes in, bytes out, and how long that may take */
#include "wire/connection.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/number.h"
#include "wire/greeting.h"
#include "wire/tls_session.h"

enum {
	VECTORS_MAX = 64,
	/* What one write may take write_ms for: a client that reads less than this in that
	 * time does not really read. */
	WAITING_WRITE_BYTES = 64 << 10,
	LINGER_BYTES = 4 << 20,
	/* Held without asking, by answer and by connection. */
	SMALL_ANSWER_BYTES = 4 << 10,
	SMALL_HOLDING_BYTES = 64 << 10,
	KEEPALIVE_S = 60,
	REFUSALS_MAX = 256, /* that are told why at once */
};

static struct output *outgoing(struct connection *connection)
{
	return connection->tls ? &connection->sealed : &connection->output;
}

size_t connection_waiting(const struct connection *connection)
{
	return connection->output.bytes + connection->sealed.bytes;
}

bool connection_is_full(const struct connection *connection)
{
	return connection_waiting(connection) >= connection->loop->limits.output_bytes;
}

bool connection_may_hold(const struct connection *connection, size_t size)
{
	const struct loop *loop = connection->loop;
	size_t held = connection->held.bytes;
	if (size <= SMALL_ANSWER_BYTES)
		return true;
	/* One answer may be as large as it likes if it is the only one. */
	if (held > SMALL_HOLDING_BYTES && held + size > loop->limits.held_bytes_per_connection)
		return false;
	return loop->held.bytes + size <= loop->limits.held_bytes ||
	       held + size <= SMALL_HOLDING_BYTES;
}

bool connections_shed(struct loop *loop)
{
	struct connection *worst = NULL;
	size_t closing = 0;
	for (struct connection *at = loop->connections; at; at = at->next) {
		if (at->is_closing)
			closing += at->held.bytes;
		else if (at->held.bytes > (worst ? worst->held.bytes : 0))
			worst = at;
	}
	/* What is being closed is as good as free. */
	if (!worst || loop->held.bytes - closing <= loop->limits.held_bytes)
		return false;
	loop->counters.connections_shed++;
	connection_close(worst);
	return true;
}

void connection_touch(struct connection *connection)
{
	if (connection->is_dirty || connection->is_over)
		return;
	connection->is_dirty = true;
	connection->next_dirty = connection->loop->dirty;
	connection->loop->dirty = connection;
}

void connection_gather(struct connection *connection)
{
	struct loop *loop = connection->loop;
	if (connection->is_dirty || connection->is_gathering || connection->is_over)
		return;
	connection->is_gathering = true;
	connection->next_gathering = loop->gathering;
	loop->gathering = connection;
	int64_t due_ms = max64(loop->gathered_ms + loop->limits.gather_ms, loop_now_ms(loop));
	if (loop->gather_timer.due_ms == 0)
		timers_set(&loop->timers, &loop->gather_timer, max64(due_ms, 1));
}

void connections_gathered(struct loop *loop)
{
	loop->gathered_ms = loop_now_ms(loop);
	while (loop->gathering) {
		struct connection *connection = loop->gathering;
		loop->gathering = connection->next_gathering;
		connection->is_gathering = false;
		connection_touch(connection);
	}
}

void connection_close(struct connection *connection)
{
	connection->is_closing = true;
	connection_touch(connection);
}

void connection_finish(struct connection *connection)
{
	connection->is_finishing = true;
	connection_touch(connection);
}

void connection_stop(struct connection *connection)
{
	if (!connection->is_closing && !connection->is_lingering)
		connection->protocol->stop(connection);
}

void connection_speak(struct connection *connection, const struct connection_protocol *protocol,
                      void *speech)
{
	connection->protocol = protocol;
	connection->speech = speech;
	connection_touch(connection);
}

/* After the last answer the client gets the time to read it: closing a socket that
 * bytes are still arriving on would take the answer back from it. */
static void linger_receive(struct connection *connection, struct text bytes)
{
	connection->discarded += bytes.size;
	if (connection->discarded > LINGER_BYTES)
		connection_close(connection);
}

static void linger_ignore(struct connection *connection)
{
	(void)connection;
}

static bool linger_wants_input(const struct connection *connection)
{
	(void)connection;
	return true;
}

static int64_t linger_deadline_ms(const struct connection *connection)
{
	return connection->progress_ms + connection->loop->limits.linger_ms;
}

static const struct connection_protocol linger_protocol = {
	.receive = linger_receive,
	.hangup = connection_close,
	.drained = linger_ignore,
	.wants_input = linger_wants_input,
	.deadline_ms = linger_deadline_ms,
	.expire = connection_close,
	.stop = linger_ignore,
	.lost = linger_ignore,
};

/* libuv calls it even where there is nothing to do. */
static void shut_down(uv_shutdown_t *shutdown, int status)
{
	(void)shutdown;
	(void)status;
}

static void linger(struct connection *connection)
{
	connection->protocol->lost(connection);
	connection_speak(connection, &linger_protocol, NULL);
	connection->is_lingering = true;
	connection->progress_ms = loop_now_ms(connection->loop);
	if (connection->is_hung_up ||
	    uv_shutdown(&connection->shutdown, (uv_stream_t *)&connection->tcp, shut_down) != 0)
		connection_close(connection);
}

static void schedule(struct connection *connection)
{
	struct loop *loop = connection->loop;
	int64_t due_ms = connection->protocol->deadline_ms(connection);
	if (connection_waiting(connection) > 0)
		due_ms = min64(due_ms, connection->progress_ms + loop->limits.write_ms);
	/* A timer that is set too early looks again when it fires; that costs less than
	 * moving it with each request. */
	if (due_ms < INT64_MAX &&
	    (connection->timer.due_ms == 0 || due_ms < connection->timer.due_ms))
		timers_set(&loop->timers, &connection->timer, max64(due_ms, 1));
}

static void timer_due(struct timer *timer)
{
	struct connection *connection =
	    (struct connection *)(void *)((char *)timer - offsetof(struct connection, timer));
	struct loop *loop = connection->loop;
	int64_t now_ms = loop_now_ms(loop);
	if (connection->is_closing)
		return;
	if (connection_waiting(connection) > 0 &&
	    connection->progress_ms + loop->limits.write_ms <= now_ms) {
		loop->counters.timeouts++;
		connection_close(connection);
	} else if (connection->protocol->deadline_ms(connection) <= now_ms) {
		loop->counters.timeouts += !connection->is_lingering;
		connection->protocol->expire(connection);
	}
	connection_touch(connection);
}

void connection_take(struct connection *connection, struct text bytes)
{
	connection->protocol->receive(connection, bytes);
}

static void give_input(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	(void)suggested;
	struct connection *connection = handle->data;
	*buffer = uv_buf_init(connection->loop->input, LOOP_INPUT_BYTES);
}

static void received(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
	struct connection *connection = stream->data;
	struct loop *loop = connection->loop;
	if (size == 0 || connection->is_closing)
		return;
	connection_touch(connection);
	if (size == UV_EOF) {
		connection->is_hung_up = true;
		connection->protocol->hangup(connection);
		return;
	}
	if (size < 0) {
		connection_close(connection);
		return;
	}
	connection->received_ms = loop_now_ms(loop);
	loop->counters.bytes_in += (uint64_t)size;
	struct text bytes = { buffer->base, (size_t)size };
	if (connection->tls)
		tls_session_receive(connection->tls, bytes);
	else
		connection_take(connection, bytes);
}

static void update_reading(struct connection *connection)
{
	bool wanted = !connection->is_hung_up && !connection_is_full(connection) &&
	              connection->protocol->wants_input(connection);
	if (wanted == connection->is_reading)
		return;
	connection->is_reading = wanted;
	if (!wanted)
		uv_read_stop((uv_stream_t *)&connection->tcp);
	else if (uv_read_start((uv_stream_t *)&connection->tcp, give_input, received) != 0)
		connection_close(connection);
}

static void sent(struct connection *connection, size_t size)
{
	output_consume(outgoing(connection), size);
	connection->loop->counters.bytes_out += size;
	connection->progress_ms = loop_now_ms(connection->loop);
}

static void written(uv_write_t *write, int status)
{
	struct connection *connection = write->data;
	connection->is_writing = false;
	if (connection->is_over)
		return;
	if (status == 0)
		sent(connection, connection->write_size);
	else
		connection_close(connection);
	connection_touch(connection);
}

/* Has libuv write when the socket takes bytes again. */
static void write_when_possible(struct connection *connection)
{
	uv_buf_t vectors[VECTORS_MAX];
	unsigned count =
	    output_vectors(outgoing(connection), vectors, VECTORS_MAX, WAITING_WRITE_BYTES);
	connection->write_size = 0;
	for (unsigned i = 0; i < count; i++)
		connection->write_size += vectors[i].len;
	connection->progress_ms = loop_now_ms(connection->loop);
	connection->write.data = connection;
	connection->is_writing = true;
	if (uv_write(&connection->write, (uv_stream_t *)&connection->tcp, vectors, count,
	             written) != 0) {
		connection->is_writing = false;
		connection_close(connection);
	}
}

/* Sends as much as the socket takes. */
static void transmit(struct connection *connection)
{
	while (!connection->is_writing && !connection->is_closing) {
		if (connection->tls)
			tls_session_seal(connection->tls);
		uv_buf_t vectors[VECTORS_MAX];
		unsigned count =
		    output_vectors(outgoing(connection), vectors, VECTORS_MAX, SIZE_MAX);
		if (count == 0)
			return;
		size_t size = 0;
		for (unsigned i = 0; i < count; i++)
			size += vectors[i].len;
		int taken = uv_try_write((uv_stream_t *)&connection->tcp, vectors, count);
		if (taken > 0)
			sent(connection, (size_t)taken);
		if (taken == UV_EAGAIN || (taken >= 0 && (size_t)taken < size))
			write_when_possible(connection);
		else if (taken < 0)
			connection_close(connection);
	}
}

void connection_push(struct connection *connection)
{
	if (!connection->is_over)
		transmit(connection);
}

static void forget_address(struct connection *connection)
{
	struct address *address = connection->address;
	connection->address = NULL;
	if (!address || --address->connections > 0)
		return;
	map_remove(&connection->loop->addresses, address->key);
	free(address);
}

static void stop_gathering(struct connection *connection)
{
	struct connection **link = &connection->loop->gathering;
	while (connection->is_gathering) {
		if (*link == connection) {
			*link = connection->next_gathering;
			connection->is_gathering = false;
			break;
		}
		link = &(*link)->next_gathering;
	}
}

static void forget_stranger(struct connection *connection)
{
	struct strangers *strangers = &connection->loop->strangers[connection->kind];
	if (!connection->is_stranger)
		return;
	connection->is_stranger = false;
	if (connection->previous_stranger)
		connection->previous_stranger->next_stranger = connection->next_stranger;
	else
		strangers->first = connection->next_stranger;
	if (connection->next_stranger)
		connection->next_stranger->previous_stranger = connection->previous_stranger;
	else
		strangers->last = connection->previous_stranger;
}

void connection_trust(struct connection *connection)
{
	forget_stranger(connection);
}

static void add_stranger(struct connection *connection)
{
	struct strangers *strangers = &connection->loop->strangers[connection->kind];
	connection->is_stranger = true;
	connection->previous_stranger = strangers->last;
	if (strangers->last)
		strangers->last->next_stranger = connection;
	else
		strangers->first = connection;
	strangers->last = connection;
}

/* Closes the connection of this kind that has been there longest without signing in. */
static bool make_place(struct loop *loop, enum peer_kind kind)
{
	struct connection *oldest = loop->strangers[kind].first;
	if (!oldest || loop_now_ms(loop) - oldest->opened_ms < loop->limits.stranger_ms)
		return false;
	forget_stranger(oldest);
	loop->counters.connections_shed++;
	connection_close(oldest);
	return true;
}

static void closed(uv_handle_t *handle)
{
	struct connection *connection = handle->data;
	struct loop *loop = connection->loop;
	loop->admission.counts[connection->kind] -= connection->is_counted;
	if (connection->previous)
		connection->previous->next = connection->next;
	else
		loop->connections = connection->next;
	if (connection->next)
		connection->next->previous = connection->previous;
	forget_address(connection);
	stop_gathering(connection);
	output_free(&connection->output);
	output_free(&connection->sealed);
	INVARIANT(connection->held.bytes == 0);
	tls_session_free(connection->tls);
	loop->counters.connections--;
	free(connection);
	loop_check_end(loop);
}

static void tear_down(struct connection *connection)
{
	connection->is_over = true;
	forget_stranger(connection);
	connection->protocol->lost(connection);
	/* Memory goes now, but for what libuv is still writing: that stays until `closed`. */
	if (!connection->is_writing)
		output_free(outgoing(connection));
	if (connection->tls)
		output_free(&connection->output);
	timers_clear(&connection->loop->timers, &connection->timer);
	uv_close((uv_handle_t *)&connection->tcp, closed);
}

void connection_flush(struct connection *connection)
{
	connection->is_dirty = false;
	INVARIANT(!connection->is_over);
	if (!connection->is_closing && connection->protocol->produce)
		connection->protocol->produce(connection);
	transmit(connection);
	if (connection->is_finishing && !connection->is_lingering && !connection->is_closing &&
	    connection_waiting(connection) == 0) {
		if (connection->tls) {
			tls_session_goodbye(connection->tls);
			transmit(connection);
		}
		if (!connection->is_closing)
			linger(connection);
	}
	if (connection->is_closing) {
		/* What closing touched need not be looked at again. */
		if (!connection->is_dirty)
			tear_down(connection);
		return;
	}
	size_t waiting = connection_waiting(connection);
	if (connection->is_blocked && waiting < connection->loop->limits.output_bytes / 2) {
		connection->is_blocked = false;
		connection->protocol->drained(connection);
	} else if (connection_is_full(connection)) {
		connection->is_blocked = true;
	}
	update_reading(connection);
	schedule(connection);
}

/* The address with this key, with one connection more; NULL if it has too many. */
static struct address *count_address(struct loop *loop, int64_t key)
{
	struct address *address = map_get(&loop->addresses, key);
	if (!address) {
		address = NEW(struct address);
		address->key = key;
		map_put(&loop->addresses, key, address);
	} else if (address->connections >= loop->limits.connections_per_address) {
		return NULL;
	}
	address->connections++;
	return address;
}

static bool is_loopback(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *ip4 = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *ip6 = (const struct sockaddr_in6 *)address;
	return address->ss_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&ip6->sin6_addr)
	                                      : ntohl(ip4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* Keeps the peer's address as text, and counts it; false if there are too many from it. */
static bool note_peer(struct connection *connection)
{
	struct loop *loop = connection->loop;
	struct sockaddr_storage address = { 0 };
	int size = sizeof(address);
	if (uv_tcp_getpeername(&connection->tcp, (struct sockaddr *)&address, &size) != 0 ||
	    (address.ss_family != AF_INET && address.ss_family != AF_INET6))
		return true;
	const struct sockaddr_in *ip4 = (const struct sockaddr_in *)&address;
	const struct sockaddr_in6 *ip6 = (const struct sockaddr_in6 *)&address;
	bool is_ip6 = address.ss_family == AF_INET6;
	inet_ntop(address.ss_family,
	          is_ip6 ? (const void *)&ip6->sin6_addr : (const void *)&ip4->sin_addr,
	          connection->peer_address, sizeof(connection->peer_address));
	connection->peer_port = ntohs(is_ip6 ? ip6->sin6_port : ip4->sin_port);
	if (is_loopback(&address))
		connection->kind = PEER_LOCAL;
	/* Of IPv6, what one customer is given: the first 64 bits. */
	uint64_t hash = is_ip6 ? hash_bytes(&ip6->sin6_addr, 8) : hash_bytes(&ip4->sin_addr, 4);
	int64_t key = (int64_t)(hash >> 1 | 1);
	connection->address = count_address(loop, key);
	return connection->address != NULL;
}

static struct connection *connection_new(struct loop *loop, const struct handler *handler)
{
	struct connection *connection = NEW(struct connection);
	uv_tcp_init(&loop->uv, &connection->tcp);
	connection->tcp.data = connection;
	connection->loop = loop;
	connection->handler = handler;
	connection->protocol = &greeting_protocol;
	connection->held.all = &loop->held;
	connection->output = output_new(&loop->blocks, &connection->held);
	connection->sealed = output_new(&loop->blocks, &connection->held);
	connection->timer = TIMER(timer_due);
	connection->opened_ms = connection->received_ms = connection->progress_ms =
	    loop_now_ms(loop);
	connection->next = loop->connections;
	if (loop->connections)
		loop->connections->previous = connection;
	loop->connections = connection;
	loop->counters.connections++;
	loop->counters.connections_total++;
	return connection;
}

static void refuse(struct connection *connection)
{
	static const char head[] = "HTTP/1.1 503 Service Unavailable\r\n"
				   "content-type: application/json\r\n"
				   "connection: close\r\n"
				   "x-content-type-options: nosniff\r\n"
				   "retry-after: 1\r\n";
	static const char body[] =
	    "{\"error\":\"there are too many connections\",\"code\":\"unavailable\"}";
	connection->loop->counters.connections_refused++;
	if (connection->tls) {
		connection_close(connection);
		return;
	}
	char length[48];
	snprintf(length, sizeof(length), "content-length: %zu\r\n\r\n", sizeof(body) - 1);
	output_bytes(&connection->output, head, sizeof(head) - 1);
	output_bytes(&connection->output, length, strlen(length));
	output_bytes(&connection->output, body, sizeof(body) - 1);
	connection_finish(connection);
}

/* Takes the place that the connection needs; false if there is none. */
static bool admit(struct connection *connection)
{
	struct loop *loop = connection->loop;
	if (!note_peer(connection))
		return false;
	if (!admission_has_place(&loop->admission, connection->kind) &&
	    !make_place(loop, connection->kind))
		return false;
	loop->admission.counts[connection->kind]++;
	connection->is_counted = true;
	add_stranger(connection);
	return true;
}

static void begin(struct connection *connection, struct tls *tls)
{
	const struct loop *loop = connection->loop;
	uv_tcp_nodelay(&connection->tcp, 1);
	uv_tcp_keepalive(&connection->tcp, 1, KEEPALIVE_S);
	if (tls)
		connection->tls = tls_session_new(tls, connection);
	if (!admit(connection)) {
		refuse(connection);
		/* Telling them takes descriptors as well. */
		if (loop->counters.connections > loop->limits.connections + REFUSALS_MAX)
			connection_close(connection);
	}
	connection_touch(connection);
}

void connection_open(struct loop *loop, int socket, const struct reception *reception)
{
	struct connection *connection = connection_new(loop, reception->handler);
	if (reception->for_agents)
		connection->kind = PEER_AGENT;
	if (uv_tcp_open(&connection->tcp, socket) == 0) {
		begin(connection, reception->tls);
	} else {
		close(socket);
		connection_close(connection);
	}
}
