/* connection.c - one client's connection: bytes in, bytes out, and how long that may take */
#include "wire/connection.h"

#include <stdlib.h>
#include <unistd.h>

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
	if (connection->awaits_proxy) {
		bytes = connection_take_proxy(connection, bytes);
		if (bytes.size == 0 || connection->is_closing || connection->is_finishing)
			return;
	}
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

static void closed(uv_handle_t *handle)
{
	struct connection *connection = handle->data;
	struct loop *loop = connection->loop;
	if (connection->previous)
		connection->previous->next = connection->next;
	else
		loop->connections = connection->next;
	if (connection->next)
		connection->next->previous = connection->previous;
	connection_give_place(connection);
	stop_gathering(connection);
	output_free(&connection->output);
	output_free(&connection->sealed);
	INVARIANT(connection->held.bytes == 0);
	buffer_free(&connection->proxy_header);
	tls_session_free(connection->tls);
	loop->counters.connections--;
	free(connection);
	loop_check_end(loop);
}

static void connection_tear_down(struct connection *connection)
{
	connection->is_over = true;
	connection_trust(connection);
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
			connection_tear_down(connection);
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

static void connection_begin(struct connection *connection, struct tls *tls)
{
	uv_tcp_nodelay(&connection->tcp, 1);
	uv_tcp_keepalive(&connection->tcp, 1, KEEPALIVE_S);
	if (tls)
		connection->tls = tls_session_new(tls, connection);
	connection_meet(connection);
	connection_touch(connection);
}

void connection_open(struct loop *loop, int socket, const struct reception *reception)
{
	struct connection *connection = connection_new(loop, reception->handler);
	connection->proxies = reception->proxies;
	connection->for_agents = reception->for_agents;
	connection->kind = reception->for_agents ? PEER_AGENT : PEER_OTHER;
	if (uv_tcp_open(&connection->tcp, socket) == 0) {
		connection_begin(connection, reception->tls);
	} else {
		close(socket);
		connection_close(connection);
	}
}
