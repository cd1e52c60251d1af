/* http_answer.c - an answer of HTTP/1.1, read as it comes */
#include "cli/client/http_answer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <llhttp.h>

#include "base/memory.h"

struct http_parser {
	llhttp_t parser; /* first: one pointer is the other */
	llhttp_settings_t settings;
	struct http_answer *answer;
	struct buffer name, value;
	size_t header_bytes;
	bool too_large;
};

static struct http_parser *self(llhttp_t *parser)
{
	return (struct http_parser *)parser;
}

static int collect(struct http_parser *parser, struct buffer *to, const char *at, size_t size)
{
	parser->header_bytes += size;
	if (parser->header_bytes > HTTP_HEADERS_MAX_BYTES)
		return -1;
	buffer_bytes(to, at, size);
	return 0;
}

static int on_name(llhttp_t *parser, const char *at, size_t size)
{
	return collect(self(parser), &self(parser)->name, at, size);
}

static int on_value(llhttp_t *parser, const char *at, size_t size)
{
	return collect(self(parser), &self(parser)->value, at, size);
}

static bool is_named(const struct buffer *name, const char *wanted)
{
	return name->size == strlen(wanted) && strncasecmp(name->data, wanted, name->size) == 0;
}

static int on_header(llhttp_t *llhttp)
{
	struct http_parser *parser = self(llhttp);
	struct http_answer *answer = parser->answer;
	buffer_text(&parser->value, "");
	if (is_named(&parser->name, "retry-after"))
		answer->retry_after_s = strtol(parser->value.data, NULL, 10);
	if (is_named(&parser->name, "sec-websocket-accept")) {
		buffer_clear(&answer->accept);
		buffer_text(&answer->accept, parser->value.data);
	}
	buffer_clear(&parser->name);
	buffer_clear(&parser->value);
	return 0;
}

/* What comes before the answer itself (100) is passed over. */
static int on_headers(llhttp_t *llhttp)
{
	struct http_parser *parser = self(llhttp);
	struct http_answer *answer = parser->answer;
	answer->status = (int)llhttp->status_code;
	answer->has_headers = true;
	answer->upgraded = answer->status == 101;
	return 0;
}

static int on_body(llhttp_t *llhttp, const char *at, size_t size)
{
	struct http_parser *parser = self(llhttp);
	struct http_answer *answer = parser->answer;
	if (answer->part) {
		answer->part(answer->context, at, size);
		return 0;
	}
	if (answer->most_bytes > 0 && answer->body.size + size > answer->most_bytes) {
		parser->too_large = true;
		return -1;
	}
	buffer_bytes(&answer->body, at, size);
	return 0;
}

static int on_complete(llhttp_t *llhttp)
{
	struct http_answer *answer = self(llhttp)->answer;
	if (answer->status >= 100 && answer->status < 200 && !answer->upgraded) {
		answer->has_headers = false;
		return 0;
	}
	answer->complete = true;
	answer->keeps_alive = llhttp_should_keep_alive(llhttp) == 1;
	return HPE_PAUSED;
}

void http_answer_begin(struct http_answer *answer)
{
	struct http_parser *parser = NEW(struct http_parser);
	llhttp_settings_init(&parser->settings);
	parser->settings.on_header_field = on_name;
	parser->settings.on_header_value = on_value;
	parser->settings.on_header_value_complete = on_header;
	parser->settings.on_headers_complete = on_headers;
	parser->settings.on_body = on_body;
	parser->settings.on_message_complete = on_complete;
	llhttp_init(&parser->parser, HTTP_RESPONSE, &parser->settings);
	parser->answer = answer;
	answer->parser = parser;
}

void http_answer_free(struct http_answer *answer)
{
	if (answer->parser) {
		buffer_free(&answer->parser->name);
		buffer_free(&answer->parser->value);
		free(answer->parser);
	}
	buffer_free(&answer->accept);
	buffer_free(&answer->body);
	buffer_free(&answer->left);
	*answer = (struct http_answer){ 0 };
}

static bool refuse(const struct http_answer *answer, struct error *error)
{
	if (answer->parser->too_large)
		return error_set(error, ERROR_UNAVAILABLE,
		                 "the answer has more than %zu MiB: ask for less at a time",
		                 answer->most_bytes >> 20);
	return error_set(error, ERROR_UNAVAILABLE,
	                 "what answers there does not speak HTTP/1.1: is it the port of the "
	                 "service's REST interface?");
}

bool http_answer_take(struct http_answer *answer, const char *data, size_t size,
                      struct error *error)
{
	if (answer->complete)
		return true;
	llhttp_t *parser = &answer->parser->parser;
	llhttp_errno_t result = llhttp_execute(parser, data, size);
	if (answer->complete || result == HPE_PAUSED_UPGRADE) {
		const char *at = llhttp_get_error_pos(parser);
		answer->complete = true;
		if (answer->upgraded && at && at >= data && at < data + size)
			buffer_bytes(&answer->left, at, (size_t)(data + size - at));
		return true;
	}
	return result == HPE_OK || refuse(answer, error);
}

bool http_answer_end(struct http_answer *answer, struct error *error)
{
	if (answer->complete)
		return true;
	if (llhttp_finish(&answer->parser->parser) == HPE_OK && answer->has_headers)
		answer->complete = true;
	answer->keeps_alive = false;
	return answer->complete || error_set(error, ERROR_UNAVAILABLE,
	                                     "the service closed the connection in the middle of "
	                                     "its answer");
}
