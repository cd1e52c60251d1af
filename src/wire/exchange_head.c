/* exchange_head.c - what a request asks for, out of its complete head */
#include "base/hash.h"
#include "base/memory.h"
#include "wire/connection.h"

/* A head that took more is counted as buffered; less is kept for the next request anyway. */
enum { SMALL_HEAD_BYTES = 16 << 10 };

static const struct {
	const char *name;
	enum method method;
} methods[] = {
	{ "GET", METHOD_GET },         { "HEAD", METHOD_HEAD },   { "POST", METHOD_POST },
	{ "PUT", METHOD_PUT },         { "PATCH", METHOD_PATCH }, { "DELETE", METHOD_DELETE },
	{ "OPTIONS", METHOD_OPTIONS },
};

const char *method_text(enum method method)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (methods[i].method == method)
			return methods[i].name;
	return "other";
}

static enum method method_of(struct text name)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (text_is(name, methods[i].name))
			return methods[i].method;
	return METHOD_OTHER;
}

/* A request that asks, properly, to become a WebSocket. */
static bool asks_for_websocket(const struct exchange *exchange)
{
	const struct headers *headers = &exchange->headers;
	return exchange->protocol == PROTOCOL_HTTP1 && exchange->method == METHOD_GET &&
	       headers_has_token(headers, "connection", "upgrade") &&
	       headers_has_token(headers, "upgrade", "websocket") &&
	       text_is(headers_get(headers, "sec-websocket-version"), "13") &&
	       headers_get(headers, "sec-websocket-key").size == 24;
}

/* The place of a header that must not be there twice, because readers would not agree on
 * which of them counts; -1: it may. */
static int single_place(struct text name)
{
	static const struct text singles[] = {
		{ "host", 4 },
		{ "origin", 6 },
		{ "expect", 6 },
		{ "content-type", 12 },
		{ "authorization", 13 },
		{ "content-length", 14 },
		{ "sec-fetch-site", 14 },
		{ "grpc-timeout", 12 },
		{ "grpc-encoding", 13 },
		{ "idempotency-key", 15 },
	};
	/* By their sizes, most others are told apart at once. */
	enum { SIZES = 1 << 4 | 1 << 6 | 1 << 12 | 1 << 13 | 1 << 14 | 1 << 15 };
	if (name.size > 15 || !(SIZES >> name.size & 1))
		return -1;
	for (int i = 0; i < (int)(sizeof(singles) / sizeof(singles[0])); i++)
		if (text_equal(name, singles[i]))
			return i;
	return -1;
}

static bool check_singles(const struct headers *headers, struct error *error)
{
	unsigned seen = 0;
	for (size_t i = 0; i < headers->count; i++) {
		int place = single_place(headers->of[i].name);
		if (place < 0)
			continue;
		if (seen >> place & 1)
			return error_set(error, ERROR_INVALID, "the request has more than one %s",
			                 headers->of[i].name.data);
		seen |= 1U << place;
	}
	return true;
}

/* Appends to what the head has kept room for, with a NUL behind it. */
static struct text keep_text(struct head *head, struct text text)
{
	char *at = head->bytes.data + head->bytes.size;
	memcpy(at, text.data, text.size);
	at[text.size] = '\0';
	head->bytes.size += text.size + 1;
	return (struct text){ at, text.size };
}

/* Whom the request is for: an absolute target says so before Host does, and :authority too.
 * Where both are there they must agree. */
static bool settle_authority(struct exchange_state *state, const struct url *url,
                             struct error *error)
{
	struct exchange *exchange = &state->exchange;
	struct text host = headers_get(&exchange->headers, "host");
	if (url->authority.data) {
		if (url->authority.size == 0 ||
		    memchr(url->authority.data, '@', url->authority.size))
			return error_set(error, ERROR_INVALID,
			                 "the request's target has no proper host");
		exchange->authority = keep_text(&state->head, url->authority);
	}
	if (!exchange->authority.data)
		exchange->authority = host;
	else if (host.data && (host.size != exchange->authority.size ||
	                       strncasecmp(host.data, exchange->authority.data, host.size) != 0))
		return error_set(error, ERROR_INVALID,
		                 "Host is not the host that the request's target names");
	return true;
}

/* A proxy in front of the service says whom the request is from. */
static void take_client(struct exchange_state *state)
{
	const struct connection *connection = state->connection;
	struct exchange *exchange = &state->exchange;
	struct ip client =
	    proxies_client(connection->proxies, &exchange->headers, &connection->peer);
	if (memcmp(&client, &connection->peer, sizeof(client)) == 0)
		return;
	ip_write(&client, state->client);
	exchange->peer_address = text_of(state->client);
	exchange->peer_port = 0;
}

uint64_t exchange_customer(const struct exchange *exchange)
{
	struct ip ip;
	if (ip_read_text(exchange->peer_address, &ip))
		return ip_customer(&ip);
	return hash_bytes(exchange->peer_address.data, exchange->peer_address.size) | 1;
}

bool exchange_set_up(struct exchange_state *state, int *status, struct error *error)
{
	struct exchange *exchange = &state->exchange;
	struct head *head = &state->head;
	exchange->target = head_pseudo(head, ":path");
	exchange->method_name = head_pseudo(head, ":method");
	exchange->method = method_of(exchange->method_name);
	exchange->authority = head_pseudo(head, ":authority");
	exchange->headers = head_headers(head);
	exchange->received_ms = loop_now_ms(exchange->loop);
	struct url url;
	*status = 400;
	if (!url_parse(exchange->target, &url, error) ||
	    !url_segments(url.path, &head->bytes, &exchange->segments, error))
		return false;
	if (url.query.size > 0 && !state->parameters)
		state->parameters = memory_zero(QUERY_PARAMETERS_MAX, sizeof(*state->parameters));
	if (!query_parse(url.query, &head->bytes, state->parameters, &exchange->query, error) ||
	    !check_singles(&exchange->headers, error) || !settle_authority(state, &url, error))
		return false;
	exchange->path = keep_text(head, url.path);
	if (state->connection->is_proxy)
		take_client(state);
	exchange->is_websocket = asks_for_websocket(exchange);
	if (head->bytes.capacity > SMALL_HEAD_BYTES &&
	    !exchange_buffer(state, head->bytes.capacity)) {
		*status = 503;
		return error_set(error, ERROR_FULL,
		                 "there are too many large requests at once: try again later");
	}
	if (exchange->protocol == PROTOCOL_HTTP2)
		grpc_set_up(state);
	return true;
}
