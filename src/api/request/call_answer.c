/* call_answer.c - how a request is answered, in HTTP and in gRPC */
#include <stdarg.h>
#include <stdio.h>

#include "api/request/call.h"
#include "base/hash.h"

static const char hex[] = "0123456789abcdef";

/* The exchange, which is no longer the call's to hear of. */
static struct exchange *let_go(struct call *call)
{
	struct exchange *exchange = call->exchange;
	INVARIANT(exchange && call->phase != CALL_OVER);
	exchange->context = NULL;
	exchange->events = NULL;
	return exchange;
}

/* Fills in the headers and sends it; takes over a reference to what it shares. */
static void respond(struct call *call, struct response response)
{
	response.headers = call->headers + call->common_count;
	response.header_count = call->header_count - call->common_count;
	call_count(call, response.status);
	exchange_respond(let_go(call), &response);
	call_drop(call);
}

static void send(struct call *call, int status, const char *content_type, struct text body)
{
	respond(call,
	        (struct response){ .status = status, .content_type = content_type, .body = body });
}

void call_begin(struct call *call, int status, const char *content_type)
{
	call->status = status;
	exchange_begin(
	    call->exchange,
	    &(struct response){ .status = status,
	                        .content_type = content_type,
	                        .headers = call->headers + call->common_count,
	                        .header_count = call->header_count - call->common_count });
}

void call_end(struct call *call)
{
	call_count(call, call->status);
	exchange_end(let_go(call));
	call_drop(call);
}

void call_abort(struct call *call)
{
	enum { GONE = 499 }; /* no answer was begun: the client went */
	call_count(call, call->status > 0 ? call->status : GONE);
	exchange_abort(let_go(call));
	call_drop(call);
}

void call_reply(struct call *call, struct text message)
{
	call_count(call, 200);
	grpc_reply(let_go(call), message);
	call_drop(call);
}

/* `http_status` is what it counts as. */
static void finish(struct call *call, enum grpc_status status, const char *text, int http_status)
{
	call_count(call, http_status);
	grpc_finish(let_go(call), status, text);
	call_drop(call);
}

void call_finish(struct call *call, enum grpc_status status, const char *text)
{
	finish(call, status, text, grpc_http_status(status));
}

static bool is_known_tag(struct text list, struct text tag)
{
	struct text item;
	while (text_next(&list, ',', &item)) {
		if (text_starts(item, "W/"))
			item = text_from(item, 2);
		if (text_equal(item, tag) || text_is(item, "*"))
			return true;
	}
	return false;
}

void call_make_tag(struct text body, char tag[CALL_TAG_MAX])
{
	uint64_t number = hash_bytes(body.data, body.size);
	memcpy(tag, "W/\"", 3);
	for (int i = 0; i < 16; i++, number >>= 4)
		tag[3 + i] = hex[number & 15];
	tag[19] = '"';
	tag[20] = '\0';
}

/* Sends a tag with the answer; true: the client has what it is of already. */
static bool has_tagged(struct call *call, const char *tag)
{
	call_header(call, "etag", text_of(tag));
	call_header(call, "cache-control", TEXT("private, no-cache"));
	struct text known = headers_get(&call->exchange->headers, "if-none-match");
	return known.data && is_known_tag(known, text_of(tag + 2));
}

void call_answer(struct call *call, int status, const char *content_type)
{
	bool is_read =
	    call->exchange->method == METHOD_GET || call->exchange->method == METHOD_HEAD;
	char tag[CALL_TAG_MAX];
	if (is_read && status == 200)
		call_make_tag((struct text){ call->body.data, call->body.size }, tag);
	if (is_read && status == 200 && has_tagged(call, tag))
		send(call, 304, NULL, (struct text){ NULL, 0 });
	else
		send(call, status, content_type, (struct text){ call->body.data, call->body.size });
}

void call_answer_shared(struct call *call, const struct call_page *page)
{
	if (page->is_lasting) {
		call_header(call, "cache-control", TEXT("public, max-age=31536000, immutable"));
	} else if (has_tagged(call, page->tag)) {
		send(call, 304, NULL, (struct text){ NULL, 0 });
		return;
	}
	respond(call, (struct response){ .status = 200,
	                                 .content_type = page->content_type,
	                                 .shared = shared_hold(page->body),
	                                 .never_compress = true });
}

void call_answer_json(struct call *call, int status)
{
	call_answer(call, status, "application/json");
}

void call_answer_secret(struct call *call, int status)
{
	respond(call, (struct response){ .status = status,
	                                 .content_type = "application/json",
	                                 .body = { call->body.data, call->body.size },
	                                 .never_compress = true });
}

struct json_writer *call_object(struct call *call)
{
	buffer_clear(&call->body);
	call->json = json_writer_to(&call->body);
	json_open_object(&call->json, NULL);
	return &call->json;
}

void call_answer_message(struct call *call, int status, const char *text)
{
	struct json_writer *json = call_object(call);
	json_put_string(json, "message", text);
	json_close(json);
	call_answer_json(call, status);
}

int status_of(enum error_code code)
{
	switch (code) {
	case ERROR_NONE:
		return 200;
	case ERROR_INVALID:
		return 400;
	case ERROR_FORBIDDEN:
		return 403;
	case ERROR_NOT_FOUND:
		return 404;
	case ERROR_CONFLICT:
	case ERROR_NO_ROOM:
		return 409;
	case ERROR_IMPOSSIBLE:
		return 422;
	case ERROR_FULL:
	case ERROR_UNAVAILABLE:
		return 503;
	default:
		return 500;
	}
}

enum grpc_status grpc_status_of_error(enum error_code code)
{
	switch (code) {
	case ERROR_NONE:
		return GRPC_OK;
	case ERROR_INVALID:
		return GRPC_INVALID_ARGUMENT;
	case ERROR_FORBIDDEN:
		return GRPC_PERMISSION_DENIED;
	case ERROR_NOT_FOUND:
		return GRPC_NOT_FOUND;
	case ERROR_CONFLICT:
	case ERROR_IMPOSSIBLE:
		return GRPC_FAILED_PRECONDITION;
	case ERROR_FULL:
	case ERROR_NO_ROOM:
		return GRPC_RESOURCE_EXHAUSTED;
	case ERROR_UNAVAILABLE:
		return GRPC_UNAVAILABLE;
	case ERROR_CORRUPT:
	default:
		return GRPC_INTERNAL;
	}
}

static void refuse(struct call *call, int status, const char *code, const char *sentence)
{
	struct json_writer *json = call_object(call);
	json_put_string(json, "error", sentence);
	json_put_string(json, "code", code);
	json_close(json);
	if (status == 503)
		call_header(call, "retry-after", TEXT("1"));
	send(call, status, "application/json", (struct text){ call->body.data, call->body.size });
}

void call_fail(struct call *call, const struct error *error)
{
	/* The error may be the ask's own, which ends with the call. */
	char sentence[ERROR_TEXT_MAX];
	int status = status_of(error->code);
	snprintf(sentence, sizeof(sentence), "%s", error->text);
	if (call->exchange->is_grpc)
		finish(call, grpc_status_of_error(error->code), sentence, status);
	else
		refuse(call, status, error_code_name(error->code), sentence);
}

void call_reject(struct call *call, enum error_code code, const char *format, ...)
{
	struct error error = { .code = code };
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(error.text, sizeof(error.text), format, arguments);
	va_end(arguments);
	call_fail(call, &error);
}

void call_refuse(struct call *call, int status, const char *code, const char *format, ...)
{
	char sentence[2 * ERROR_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	if (call->exchange->is_grpc)
		finish(call, grpc_status_of(status), sentence, status);
	else
		refuse(call, status, code, sentence);
}

void call_unknown(struct call *call, const char *what, struct text name)
{
	call_refuse(call, 404, "not_found", "%s %.*s is not known", what,
	            (int)(name.size < 128 ? name.size : 128), name.data);
}
