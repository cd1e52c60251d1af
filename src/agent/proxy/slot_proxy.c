/* slot_proxy.c - what stands before a model's server: passes bytes to who has the key */
#include "agent/proxy/slot_proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/proxy/outbound.h"
#include "base/clock.h"
#include "base/memory.h"

enum {
	EVENTS = 256,
	PIECE_BYTES = 64 << 10,
	STRANGERS_MAX = 512, /* connections that have shown no key */
	STRANGER_MS = 15000, /* to show it */
	FAREWELL_MS = 5000,  /* to read an answer of ours */
	SWEEP_MS = 1000,
	BACKLOG = 1024,
	TLS_HANDSHAKE = 22, /* what the first byte of a client that speaks TLS says */
};

enum pair_stage {
	PAIR_STRANGER, /* no key yet, no server */
	PAIR_PASSES,
	PAIR_FAREWELL, /* the answer is ours, or the server has ended; then it is closed */
};

/* One side of a connection. `out` is what it has not taken yet, from `at` on. */
struct side {
	struct pair *pair;
	int fd; /* -1: none */
	uint32_t watched;
	struct buffer out;
	size_t at;
	bool is_connecting;
};

/* A connection of a client, and its own to the server. */
struct pair {
	struct side client, server;
	struct slot_request request;
	struct slot_tls_link *tls; /* of the client; NULL: it speaks in the clear */
	enum pair_stage stage;
	bool is_closed, tried_six, has_spoken;
	bool is_answered;           /* the server has sent something */
	int64_t since_ms;           /* in stages with a time limit */
	struct pair *next, *before; /* in `strangers` or `farewells` */
	struct pair *next_closed;   /* in `closed` */
};

struct pairs {
	struct pair *first, *last;
	size_t count;
};

struct slot_proxy {
	struct slot_proxy_settings settings;
	int poll;
	struct side listener;
	struct pairs strangers, farewells; /* the oldest first */
	struct pair *closed;               /* until the events of this round are done */
	char *piece, *clear;
	bool is_paused; /* no descriptor is left for another connection */
};

static void pairs_add(struct pairs *pairs, struct pair *pair)
{
	pair->next = NULL;
	pair->before = pairs->last;
	if (pairs->last)
		pairs->last->next = pair;
	else
		pairs->first = pair;
	pairs->last = pair;
	pairs->count++;
}

static void pairs_remove(struct pairs *pairs, struct pair *pair)
{
	if (pair->before)
		pair->before->next = pair->next;
	else
		pairs->first = pair->next;
	if (pair->next)
		pair->next->before = pair->before;
	else
		pairs->last = pair->before;
	pairs->count--;
}

static void move_pair(struct slot_proxy *proxy, struct pair *pair, enum pair_stage stage)
{
	if (pair->stage == PAIR_STRANGER)
		pairs_remove(&proxy->strangers, pair);
	else if (pair->stage == PAIR_FAREWELL)
		pairs_remove(&proxy->farewells, pair);
	pair->stage = stage;
	pair->since_ms = clock_steady_ms();
	if (stage == PAIR_FAREWELL)
		pairs_add(&proxy->farewells, pair);
}

static void close_side(struct side *side)
{
	if (side->fd >= 0)
		close(side->fd);
	side->fd = -1;
	side->watched = 0;
	buffer_free(&side->out);
	side->at = 0;
}

static void close_pair(struct slot_proxy *proxy, struct pair *pair)
{
	if (pair->is_closed)
		return;
	pair->is_closed = true;
	move_pair(proxy, pair, PAIR_PASSES); /* out of the lists */
	close_side(&pair->client);
	close_side(&pair->server);
	slot_request_free(&pair->request);
	if (pair->tls)
		slot_tls_end(pair->tls);
	pair->tls = NULL;
	pair->next_closed = proxy->closed;
	proxy->closed = pair;
}

static bool watch_side(struct slot_proxy *proxy, struct side *side, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = side };
	int what = side->watched == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

	if (side->watched == events)
		return true;
	side->watched = events;
	return epoll_ctl(proxy->poll, what, side->fd, &event) == 0;
}

static bool is_blocked(const struct side *side)
{
	return side->out.size > side->at || side->is_connecting;
}

/* A side is read only while the other takes what it says. */
static void watch_pair(struct slot_proxy *proxy, struct pair *pair)
{
	struct side *client = &pair->client, *server = &pair->server;
	bool good = true;

	if (pair->is_closed)
		return;
	good = watch_side(proxy, client,
	                  EPOLLRDHUP | (is_blocked(server) ? 0u : EPOLLIN) |
	                      (is_blocked(client) ? EPOLLOUT : 0u));
	if (good && server->fd >= 0)
		good = watch_side(proxy, server,
		                  EPOLLHUP | (is_blocked(client) ? 0u : EPOLLIN) |
		                      (is_blocked(server) ? EPOLLOUT : 0u));
	if (!good)
		close_pair(proxy, pair);
}

/* Sends what is possible now, and keeps the rest. False: the side has broken. */
static bool put_out(struct side *side, struct text bytes)
{
	while (bytes.size > 0 && !is_blocked(side)) {
		ssize_t sent = send(side->fd, bytes.data, bytes.size, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno != EAGAIN)
			return false;
		if (sent < 0)
			break;
		bytes = text_from(bytes, (size_t)sent);
	}
	buffer_bytes(&side->out, bytes.data, bytes.size);
	return true;
}

static bool drain_side(struct side *side)
{
	while (side->out.size > side->at) {
		ssize_t sent = send(side->fd, side->out.data + side->at, side->out.size - side->at,
		                    MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return errno == EAGAIN;
		side->at += (size_t)sent;
	}
	buffer_free(&side->out);
	side->at = 0;
	return true;
}

/* Sends what TLS has to say. */
static bool put_sealed(struct pair *pair)
{
	struct buffer sealed = { 0 };

	slot_tls_take(pair->tls, &sealed);
	bool good = put_out(&pair->client, (struct text){ sealed.data, sealed.size });
	buffer_free(&sealed);
	return good;
}

static bool put_to_client(struct pair *pair, struct text bytes)
{
	if (!pair->tls)
		return put_out(&pair->client, bytes);
	return slot_tls_write(pair->tls, bytes) && put_sealed(pair);
}

/* Whoever reads until the end must know that this was all. */
static bool put_goodbye(struct pair *pair)
{
	if (!pair->tls)
		return true;
	slot_tls_goodbye(pair->tls);
	return put_sealed(pair);
}

/* An answer of ours, after which the connection is closed. Whoever sends requests before their
 * answers have come is not told: the answer would be taken for another's. */
static void refuse_pair(struct slot_proxy *proxy, struct pair *pair, int status, const char *why)
{
	struct buffer answer = { 0 }, body = { 0 };

	if (pair->stage == PAIR_PASSES && !pair->is_answered && pair->server.fd >= 0 &&
	    status != 502) {
		close_pair(proxy, pair);
		return;
	}
	buffer_print(&body,
	             "{\"error\":{\"message\":\"%s\",\"type\":\"%s\",\"param\":null,"
	             "\"code\":\"%s\"}}",
	             why, status >= 500 ? "server_error" : "invalid_request_error",
	             status == 401   ? "invalid_api_key"
	             : status == 502 ? "upstream_failed"
	                             : "refused");
	buffer_print(&answer,
	             "HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n"
	             "%sconnection: close\r\n\r\n%s",
	             status, status == 401 ? "Unauthorized" : "Refused", body.size,
	             status == 401 ? "www-authenticate: Bearer\r\n" : "", body.data);
	close_side(&pair->server);
	pair->server.is_connecting = false;
	move_pair(proxy, pair, PAIR_FAREWELL);
	if (!put_to_client(pair, (struct text){ answer.data, answer.size }) || !put_goodbye(pair))
		close_pair(proxy, pair);
	else if (!is_blocked(&pair->client))
		shutdown(pair->client.fd, SHUT_WR);
	buffer_free(&answer);
	buffer_free(&body);
}

static bool begin_connect(struct slot_proxy *proxy, struct pair *pair)
{
	uint16_t port = htons((uint16_t)proxy->settings.server_port);
	struct sockaddr_in four = { .sin_family = AF_INET,
		                    .sin_port = port,
		                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
		                    .sin6_port = port,
		                    .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	bool by_six = pair->tried_six;
	int one = 1;

	struct side *server = &pair->server;
	server->fd =
	    socket(by_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (server->fd < 0)
		return false;
	setsockopt(server->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	int failed = by_six ? connect(server->fd, (const struct sockaddr *)&six, sizeof(six))
	                    : connect(server->fd, (const struct sockaddr *)&four, sizeof(four));
	server->is_connecting = failed != 0 && errno == EINPROGRESS;
	if (failed == 0 || server->is_connecting)
		return true;
	close(server->fd);
	server->fd = -1;
	return false;
}

/* Some servers listen at ::1 alone. What was kept for the server stays. */
static bool connect_server(struct slot_proxy *proxy, struct pair *pair)
{
	if (begin_connect(proxy, pair))
		return true;
	if (pair->tried_six)
		return false;
	pair->tried_six = true;
	return begin_connect(proxy, pair);
}

static void pass_to_server(struct slot_proxy *proxy, struct pair *pair, struct text part)
{
	if (pair->stage == PAIR_STRANGER)
		move_pair(proxy, pair, PAIR_PASSES);
	if (pair->server.fd < 0 && !connect_server(proxy, pair)) {
		refuse_pair(proxy, pair, 502, "the model's server does not answer");
		return;
	}
	pair->is_answered = false;
	if (!put_out(&pair->server, part))
		close_pair(proxy, pair);
}

static void take_from_client(struct slot_proxy *proxy, struct pair *pair, struct text bytes)
{
	struct slot_request *request = &pair->request;
	struct text part;

	while (!pair->is_closed && pair->stage != PAIR_FAREWELL) {
		enum slot_request_event event = slot_request_next(request, &bytes, &part);
		if (event == SLOT_REQUEST_MORE)
			return;
		if (event == SLOT_REQUEST_PASS)
			pass_to_server(proxy, pair, part);
		else if (event == SLOT_REQUEST_REFUSED)
			refuse_pair(proxy, pair, request->status, request->why);
	}
}

static void take_sealed(struct slot_proxy *proxy, struct pair *pair, struct text bytes)
{
	int got = 0;

	if (!slot_tls_receive(pair->tls, bytes)) {
		close_pair(proxy, pair);
		return;
	}
	while (!pair->is_closed && pair->stage != PAIR_FAREWELL &&
	       (got = slot_tls_read(pair->tls, proxy->clear, PIECE_BYTES)) > 0)
		take_from_client(proxy, pair, (struct text){ proxy->clear, (size_t)got });
	if (pair->is_closed || pair->stage == PAIR_FAREWELL)
		return;
	if (!put_sealed(pair) || got < 0)
		close_pair(proxy, pair);
}

/* The first byte tells TLS from HTTP. */
static void take_any(struct slot_proxy *proxy, struct pair *pair, struct text bytes)
{
	if (!pair->has_spoken && proxy->settings.tls && bytes.data[0] == TLS_HANDSHAKE) {
		pair->tls = slot_tls_begin(proxy->settings.tls);
		pair->request.is_sealed = true;
	}
	pair->has_spoken = true;
	if (pair->tls)
		take_sealed(proxy, pair, bytes);
	else
		take_from_client(proxy, pair, bytes);
}

/* A client that has ended is gone: nobody waits for the answer. */
static void client_event(struct slot_proxy *proxy, struct pair *pair, uint32_t events)
{
	struct side *client = &pair->client;

	if (events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP) && pair->stage != PAIR_STRANGER) {
		close_pair(proxy, pair);
		return;
	}
	if (events & EPOLLOUT && !drain_side(client)) {
		close_pair(proxy, pair);
		return;
	}
	if (events & EPOLLOUT && pair->stage == PAIR_FAREWELL && !is_blocked(client))
		shutdown(client->fd, SHUT_WR);
	if (!(events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP)))
		return;
	ssize_t got = recv(client->fd, proxy->piece, PIECE_BYTES, 0);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0)
		close_pair(proxy, pair);
	else if (pair->stage != PAIR_FAREWELL)
		take_any(proxy, pair, (struct text){ proxy->piece, (size_t)got });
}

static void finish_connect(struct slot_proxy *proxy, struct pair *pair)
{
	struct side *server = &pair->server;
	int failed = 0;
	socklen_t size = sizeof(failed);

	getsockopt(server->fd, SOL_SOCKET, SO_ERROR, &failed, &size);
	server->is_connecting = false;
	if (failed == 0)
		return;
	close(server->fd);
	server->fd = -1;
	server->watched = 0;
	if (pair->tried_six || !(pair->tried_six = true, begin_connect(proxy, pair)))
		refuse_pair(proxy, pair, 502, "the model's server does not answer");
}

/* What the server said last is still to be taken. */
static void server_ended(struct slot_proxy *proxy, struct pair *pair)
{
	close_side(&pair->server);
	if (!put_goodbye(pair) || !is_blocked(&pair->client)) {
		close_pair(proxy, pair);
		return;
	}
	move_pair(proxy, pair, PAIR_FAREWELL);
}

static void server_event(struct slot_proxy *proxy, struct pair *pair, uint32_t events)
{
	struct side *server = &pair->server;

	if (server->is_connecting && events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) {
		finish_connect(proxy, pair);
		if (pair->is_closed || server->fd < 0 || server->is_connecting)
			return;
		events |= EPOLLOUT;
		events &= ~(uint32_t)(EPOLLERR | EPOLLHUP);
	}
	if (events & EPOLLOUT && !drain_side(server)) {
		close_pair(proxy, pair);
		return;
	}
	if (!(events & (EPOLLIN | EPOLLERR | EPOLLHUP)) || is_blocked(&pair->client))
		return;
	ssize_t got = recv(server->fd, proxy->piece, PIECE_BYTES, 0);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		server_ended(proxy, pair);
		return;
	}
	pair->is_answered = true;
	if (!put_to_client(pair, (struct text){ proxy->piece, (size_t)got }))
		close_pair(proxy, pair);
}

static void accept_clients(struct slot_proxy *proxy)
{
	for (int i = 0; i < EVENTS; i++) {
		int one = 1,
		    fd = accept4(proxy->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			proxy->is_paused = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
			break;
		}
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		struct pair *pair = NEW(struct pair);
		pair->client = (struct side){ .pair = pair, .fd = fd };
		pair->server = (struct side){ .pair = pair, .fd = -1 };
		pair->request.keys = &proxy->settings.keys;
		pair->request.needs_tls = proxy->settings.tls_only;
		pair->request.leases = proxy->settings.leases;
		pair->request.paths = proxy->settings.paths;
		pair->since_ms = clock_steady_ms();
		pairs_add(&proxy->strangers, pair);
		watch_pair(proxy, pair);
		/* Whoever has waited longest without a key makes room. */
		if (proxy->strangers.count > STRANGERS_MAX)
			close_pair(proxy, proxy->strangers.first);
	}
	if (proxy->is_paused)
		watch_side(proxy, &proxy->listener, EPOLLHUP);
}

static void close_late(struct slot_proxy *proxy, struct pairs *pairs, int64_t most_ms)
{
	while (pairs->first && pairs->first->since_ms + most_ms <= clock_steady_ms())
		close_pair(proxy, pairs->first);
}

static void sweep_pairs(struct slot_proxy *proxy)
{
	close_late(proxy, &proxy->strangers, STRANGER_MS);
	close_late(proxy, &proxy->farewells, FAREWELL_MS);
	if (proxy->is_paused)
		watch_side(proxy, &proxy->listener, EPOLLIN);
	proxy->is_paused = false;
}

static void free_closed(struct slot_proxy *proxy)
{
	while (proxy->closed) {
		struct pair *pair = proxy->closed;
		INVARIANT(pair->is_closed && pair->next_closed != pair);
		proxy->closed = pair->next_closed;
		free(pair);
	}
}

static void handle_event(struct slot_proxy *proxy, const struct epoll_event *event)
{
	struct side *side = event->data.ptr;
	struct pair *pair = side->pair;

	if (!pair) {
		accept_clients(proxy);
		return;
	}
	/* Something of an earlier event of this round. */
	if (pair->is_closed || side->fd < 0)
		return;
	if (side == &pair->client)
		client_event(proxy, pair, event->events);
	else
		server_event(proxy, pair, event->events);
	watch_pair(proxy, pair);
}

static int listen_outbound(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port = htons(OUTBOUND_PORT),
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
	    listen(fd, BACKLOG) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* This thread, and with it every connection to the server, is in the server's namespace; the
 * threads of the way out are in the node's. */
static bool enter_network(int network, struct error *error)
{
	int node = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	int listener = -1;
	bool entered = node >= 0 && setns(network, CLONE_NEWNET) == 0 &&
	               (listener = listen_outbound()) >= 0 && setns(node, CLONE_NEWNET) == 0 &&
	               outbound_start(listener, error) && setns(network, CLONE_NEWNET) == 0;

	if (node >= 0)
		close(node);
	close(network);
	return entered || error->code != ERROR_NONE ||
	       error_set(error, ERROR_UNAVAILABLE, "cannot enter the server's network: %s",
	                 strerror(errno));
}

static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

struct slot_proxy *slot_proxy_new(const struct slot_proxy_settings *settings, struct error *error)
{
	struct slot_proxy *proxy = NEW(struct slot_proxy);

	proxy->settings = *settings;
	proxy->listener.fd = settings->listener;
	proxy->piece = memory_alloc(PIECE_BYTES);
	proxy->clear = memory_alloc(PIECE_BYTES);
	proxy->poll = epoll_create1(EPOLL_CLOEXEC);
	raise_limit();
	fcntl(settings->listener, F_SETFL, O_NONBLOCK);
	if (proxy->poll < 0 || !watch_side(proxy, &proxy->listener, EPOLLIN))
		error_set(error, ERROR_UNAVAILABLE, "cannot watch connections: %s",
		          strerror(errno));
	else if (settings->network < 0 || enter_network(settings->network, error))
		return proxy;
	free(proxy->piece);
	free(proxy->clear);
	free(proxy);
	return NULL;
}

void slot_proxy_serve(struct slot_proxy *proxy)
{
	struct epoll_event events[EVENTS];
	int64_t swept_ms = clock_steady_ms();

	for (;;) {
		int count = epoll_wait(proxy->poll, events, EVENTS, SWEEP_MS);
		for (int i = 0; i < count; i++)
			handle_event(proxy, &events[i]);
		if (clock_steady_ms() >= swept_ms + SWEEP_MS) {
			swept_ms = clock_steady_ms();
			sweep_pairs(proxy);
		}
		free_closed(proxy);
	}
}
