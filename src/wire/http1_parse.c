/* http1_parse.c - requests out of the bytes of HTTP/1.1 */
#include <string.h>

#include "wire/http1_state.h"

/* Chunk extensions and trailers have no use here; what is more than this is mischief. */
enum { OVERHEAD_BYTES_MAX = 4 << 10 };

static struct http1 *self(llhttp_t *parser)
{
	return parser->data;
}

bool http1_is_blocked(const struct http1 *http1)
{
	const struct connection *connection = http1->connection;
	const struct limits *limits = &connection->loop->limits;
	return http1->owed >= limits->pipeline || connection_is_full(connection) ||
	       connection->held.bytes >= limits->held_bytes_per_connection;
}

void http1_fail(struct http1 *http1, int status, const char *code, const char *text)
{
	struct connection *connection = http1->connection;
	struct exchange_state *state = http1->current;
	connection->loop->counters.protocol_errors++;
	http1->is_done = true;
	if (!state)
		state = exchange_take(connection);
	http1->current = NULL;
	state->keeps_alive = false;
	if (!state->is_linked)
		http1_link(http1, state);
	if (state->is_owned) {
		/* In the middle of a body that is being streamed: there is nobody to tell. */
		connection_close(connection);
	} else {
		state->exchange.is_grpc = false;
		exchange_reject(state, status, code, "%s", text);
	}
	exchange_drop_reading(state);
	connection_touch(connection);
}

/* Refuses the request from within a parser callback, and stops the parser. */
static int http1_parse_fail(struct http1 *http1, int status, const char *code, const char *text)
{
	http1_fail(http1, status, code, text);
	return HPE_USER;
}

static int check_head(struct http1 *http1)
{
	const struct limits *limits = &http1->connection->loop->limits;
	const struct head *head = &http1->current->head;
	if (head->bytes.size > limits->head_bytes)
		return http1_parse_fail(http1, 431, "headers_too_large",
		                        "the headers of the request are too large");
	/* Beside the headers there are a method and a target. */
	if (head->count > limits->headers + 2)
		return http1_parse_fail(http1, 431, "headers_too_large",
		                        "the request has too many headers");
	return 0;
}

static int on_message_begin(llhttp_t *parser)
{
	struct http1 *http1 = self(parser);
	if (http1->is_done)
		return HPE_USER;
	http1->current = exchange_take(http1->connection);
	http1->overhead = 0;
	return 0;
}

static int on_url(llhttp_t *parser, const char *at, size_t size)
{
	struct http1 *http1 = self(parser);
	struct head *head = &http1->current->head;
	if (!head->in_item) {
		head_name(head, ":path", 5);
		head_name_end(head);
	}
	head_value(head, at, size);
	if (head->bytes.size > http1->connection->loop->limits.target_bytes + 6)
		return http1_parse_fail(http1, 414, "target_too_long",
		                        "path and query of the request are too long");
	return 0;
}

static int on_url_complete(llhttp_t *parser)
{
	head_value_end(&self(parser)->current->head);
	return 0;
}

/* Counts bytes that are read past; they are not kept. */
static int pass_over(struct http1 *http1, size_t size)
{
	http1->overhead += size;
	if (http1->overhead > OVERHEAD_BYTES_MAX)
		return http1_parse_fail(
		    http1, 400, "invalid",
		    "the chunks of the request have too much beside their data");
	return 0;
}

static int on_chunk_extension(llhttp_t *parser, const char *at, size_t size)
{
	(void)at;
	return pass_over(self(parser), size + 1);
}

static int on_header_field(llhttp_t *parser, const char *at, size_t size)
{
	struct http1 *http1 = self(parser);
	if (http1->current->is_linked)
		return pass_over(http1, size + 1);
	http1->gap = at + size;
	http1->gap_has_newline = false;
	head_name(&http1->current->head, at, size);
	return check_head(http1);
}

static int on_header_field_complete(llhttp_t *parser)
{
	struct exchange_state *state = self(parser)->current;
	if (!state->is_linked)
		head_name_end(&state->head);
	return 0;
}

static int on_header_value(llhttp_t *parser, const char *at, size_t size)
{
	struct http1 *http1 = self(parser);
	if (http1->current->is_linked)
		return pass_over(http1, size + 1);
	/* Refuse folded headers: servers disagree on what they mean. */
	if (size > 0 &&
	    (http1->gap_has_newline || memchr(http1->gap, '\n', (size_t)(at - http1->gap))))
		return http1_parse_fail(http1, 400, "invalid", "a header must be on one line");
	http1->gap = at + size;
	head_value(&http1->current->head, at, size);
	return check_head(http1);
}

static int on_header_value_complete(llhttp_t *parser)
{
	struct exchange_state *state = self(parser)->current;
	if (!state->is_linked)
		head_value_end(&state->head);
	return 0;
}

/* What HTTP asks of a head beyond its syntax. NULL, or what is wrong. */
static const char *fault_of(const struct exchange *exchange, llhttp_t *parser, int *status)
{
	*status = 400;
	bool is_old = parser->http_minor == 0;
	size_t hosts = headers_count(&exchange->headers, "host");
	if (hosts > 1 || (hosts == 0 && !is_old))
		return "the request must have exactly one Host header";
	size_t encodings = headers_count(&exchange->headers, "transfer-encoding");
	struct text encoding = headers_get(&exchange->headers, "transfer-encoding");
	if (encodings > 0 && is_old)
		return "HTTP/1.0 has no Transfer-Encoding";
	if (encodings > 1 || (encodings == 1 && !text_is_any_case(encoding, "chunked"))) {
		*status = 501;
		return "Transfer-Encoding can only be 'chunked'";
	}
	if (parser->http_major != 1) {
		*status = 505;
		return "only HTTP/1.1, HTTP/1.0 and HTTP/2 are spoken here";
	}
	if (parser->method == HTTP_CONNECT) {
		*status = 501;
		return "this is not a proxy: CONNECT makes no sense";
	}
	struct text expect = headers_get(&exchange->headers, "expect");
	if (expect.data && !text_is_any_case(expect, "100-continue")) {
		*status = 417;
		return "of Expect only '100-continue' is known";
	}
	return NULL;
}

/* Fills in the exchange from its complete head. False: it was refused. */
static bool http1_parse_set_up(struct http1 *http1, struct exchange_state *state, llhttp_t *parser)
{
	struct exchange *exchange = &state->exchange;
	struct error error = { 0 };
	int status = 400;
	/* Room for what decoding and a copy of the path add. */
	struct head *head = &state->head;
	head_add(head, TEXT(":method"), text_of(llhttp_method_name(parser->method)));
	head_finish(head, 3 * head->bytes.size + 2 * QUERY_PARAMETERS_MAX);
	exchange->protocol = PROTOCOL_HTTP1;
	state->is_old = parser->http_minor == 0;
	state->keeps_alive = llhttp_should_keep_alive(parser);
	state->content_length = -1;
	if (parser->flags & F_CONTENT_LENGTH)
		state->content_length = parser->content_length < INT64_MAX
		                            ? (int64_t)parser->content_length
		                            : INT64_MAX;
	if (!exchange_set_up(state, &status, &error)) {
		http1_fail(http1, status, "invalid", error.text);
		return false;
	}
	const char *fault = fault_of(exchange, parser, &status);
	if (fault) {
		http1_fail(http1, status, "invalid", fault);
		return false;
	}
	if (exchange->is_websocket && http1->owed > 0)
		exchange->is_websocket = false;
	state->expects_continue = headers_get(&exchange->headers, "expect").data && !state->is_old;
	return true;
}

static int on_headers_complete(llhttp_t *parser)
{
	struct http1 *http1 = self(parser);
	struct exchange_state *state = http1->current;
	struct exchange *exchange = &state->exchange;
	if (!http1_parse_set_up(http1, state, parser))
		return -1;
	/* Offers of other protocols than WebSocket are not taken up. */
	parser->upgrade = exchange->is_websocket;
	http1_link(http1, state);
	const char *too_much = exchange_is_too_much(state);
	if (too_much) {
		http1_fail(http1, 503, "unavailable", too_much);
		return -1;
	}
	exchange_announce(state);
	if (state->has_ended || state->is_streamed)
		goto go_on;
	bool has_body = parser->flags & F_CHUNKED || parser->content_length > 0;
	if (has_body && state->content_length > (int64_t)exchange->body_limit) {
		exchange_reject(state, 413, "too_large",
		                "the body is %lld bytes and may be %zu at most",
		                (long long)state->content_length, exchange->body_limit);
	}
go_on:
	if (!state->has_ended && state->expects_continue)
		http1_continue(http1, state);
	return http1->is_done && state->has_ended ? -1 : 0;
}

/* A chunk says how large it is before it comes. */
static int on_chunk_header(llhttp_t *parser)
{
	struct http1 *http1 = self(parser);
	const struct exchange_state *state = http1->current;
	if (parser->content_length > INT64_MAX)
		return http1_parse_fail(http1, 400, "invalid",
		                        "a chunk of the request is impossibly large");
	if (!state->is_streamed && !state->has_ended && !state->has_begun &&
	    state->body_size + parser->content_length > state->exchange.body_limit)
		return http1_parse_fail(http1, 413, "too_large",
		                        "the body is larger than is allowed");
	return 0;
}

static int http1_parse_on_body(llhttp_t *parser, const char *at, size_t size)
{
	struct http1 *http1 = self(parser);
	exchange_receive(http1->current, (struct text){ at, size });
	return 0;
}

static int on_message_complete(llhttp_t *parser)
{
	struct http1 *http1 = self(parser);
	struct exchange_state *state = http1->current;
	http1->current = NULL;
	if (!state->keeps_alive)
		http1->is_done = true;
	if (state->exchange.is_websocket && !state->has_ended) {
		http1->is_upgrading = true;
		http1->upgrade = state;
		return HPE_PAUSED;
	}
	exchange_complete(state);
	if (http1->is_done || http1->connection->is_closing || http1_is_blocked(http1))
		return HPE_PAUSED;
	return 0;
}

const llhttp_settings_t http1_parser_settings = {
	.on_message_begin = on_message_begin,
	.on_url = on_url,
	.on_url_complete = on_url_complete,
	.on_header_field = on_header_field,
	.on_header_field_complete = on_header_field_complete,
	.on_header_value = on_header_value,
	.on_header_value_complete = on_header_value_complete,
	.on_chunk_extension_name = on_chunk_extension,
	.on_chunk_extension_value = on_chunk_extension,
	.on_headers_complete = on_headers_complete,
	.on_chunk_header = on_chunk_header,
	.on_body = http1_parse_on_body,
	.on_message_complete = on_message_complete,
};

/* Puts aside what the parser has not taken. */
static void put_aside(struct http1 *http1, struct text bytes)
{
	const char *at = llhttp_get_error_pos(&http1->parser);
	http1->is_paused = true;
	if (!http1->is_done || http1->is_upgrading)
		buffer_bytes(&http1->pending, at, bytes.size - (size_t)(at - bytes.data));
	llhttp_resume(&http1->parser);
	connection_touch(http1->connection);
}

/* True if the unparsed input could still become a method name. */
static bool is_a_word(const struct http1 *http1, struct text bytes)
{
	const char *at = llhttp_get_error_pos(&http1->parser), *end = bytes.data + bytes.size;
	while (at < end && ((*at >= 'A' && *at <= 'Z') || *at == '-'))
		at++;
	return at < end && *at == ' ';
}

void http1_parse(struct http1 *http1, struct text bytes)
{
	http1->gap = bytes.data;
	llhttp_errno_t error = llhttp_execute(&http1->parser, bytes.data, bytes.size);
	if (error == HPE_OK) {
		size_t left = bytes.size - (size_t)(http1->gap - bytes.data);
		http1->gap_has_newline |= left > 0 && memchr(http1->gap, '\n', left);
		return;
	}
	if (error == HPE_PAUSED)
		put_aside(http1, bytes);
	else if (!http1->is_done && error == HPE_INVALID_METHOD && is_a_word(http1, bytes))
		http1_fail(http1, 501, "unknown_method", "the request's method is not known here");
	else if (!http1->is_done)
		http1_fail(http1, 400, "invalid", "this is not a proper HTTP/1.1 request");
	struct exchange_state *upgrade = http1->upgrade;
	http1->upgrade = NULL;
	/* This may be the end of HTTP/1.1 on the connection, so the parser is out of it. */
	if (upgrade)
		exchange_complete(upgrade);
}
