/* request_answer.c - how a request is answered, in HTTP and in gRPC */
#include <stdarg.h>
#include <stdio.h>

#include "api/request/request.h"
#include "base/hash.h"

static const char hex[] = "0123456789abcdef";

/* The exchange, which is no longer the request's to hear of. */
static struct exchange *let_go(struct request *request)
{
	struct exchange *exchange = request->exchange;
	INVARIANT(exchange && request->phase != REQUEST_OVER);
	exchange->context = NULL;
	exchange->events = NULL;
	return exchange;
}

/* Fills in the headers and sends it; takes over a reference to what it shares. */
static void respond(struct request *request, struct response response)
{
	response.headers = request->headers + request->common_count;
	response.header_count = request->header_count - request->common_count;
	request_count(request, response.status);
	exchange_respond(let_go(request), &response);
	request_drop(request);
}

static void request_answer_send(struct request *request, int status, const char *content_type,
                                struct text body)
{
	respond(request,
	        (struct response){ .status = status, .content_type = content_type, .body = body });
}

void request_begin(struct request *request, int status, const char *content_type)
{
	request->status = status;
	exchange_begin(
	    request->exchange,
	    &(struct response){ .status = status,
	                        .content_type = content_type,
	                        .headers = request->headers + request->common_count,
	                        .header_count = request->header_count - request->common_count });
}

void request_complete(struct request *request)
{
	request_count(request, request->status);
	exchange_end(let_go(request));
	request_drop(request);
}

void request_abort(struct request *request)
{
	enum { GONE = 499 }; /* no answer was begun: the client went */
	request_count(request, request->status > 0 ? request->status : GONE);
	exchange_abort(let_go(request));
	request_drop(request);
}

void request_reply(struct request *request, struct text message)
{
	request_count(request, 200);
	grpc_reply(let_go(request), message);
	request_drop(request);
}

/* `http_status` is what it counts as. */
static void request_answer_finish(struct request *request, enum grpc_status status,
                                  const char *text, int http_status)
{
	request_count(request, http_status);
	grpc_finish(let_go(request), status, text);
	request_drop(request);
}

void request_finish(struct request *request, enum grpc_status status, const char *text)
{
	request_answer_finish(request, status, text, grpc_http_status(status));
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

void request_make_tag(struct text body, char tag[REQUEST_TAG_MAX])
{
	uint64_t number = hash_bytes(body.data, body.size);
	memcpy(tag, "W/\"", 3);
	for (int i = 0; i < 16; i++, number >>= 4)
		tag[3 + i] = hex[number & 15];
	tag[19] = '"';
	tag[20] = '\0';
}

/* Sends a tag with the answer; true: the client has what it is of already. */
static bool has_tagged(struct request *request, const char *tag)
{
	request_header(request, "etag", text_of(tag));
	request_header(request, "cache-control", TEXT("private, no-cache"));
	struct text known = headers_get(&request->exchange->headers, "if-none-match");
	return known.data && is_known_tag(known, text_of(tag + 2));
}

void request_answer(struct request *request, int status, const char *content_type)
{
	bool is_read =
	    request->exchange->method == METHOD_GET || request->exchange->method == METHOD_HEAD;
	char tag[REQUEST_TAG_MAX];
	if (is_read && status == 200)
		request_make_tag((struct text){ request->body.data, request->body.size }, tag);
	if (is_read && status == 200 && has_tagged(request, tag))
		request_answer_send(request, 304, NULL, (struct text){ NULL, 0 });
	else
		request_answer_send(request, status, content_type,
		                    (struct text){ request->body.data, request->body.size });
}

void request_answer_shared(struct request *request, const struct request_page *page)
{
	if (page->is_lasting) {
		request_header(request, "cache-control",
		               TEXT("public, max-age=31536000, immutable"));
	} else if (has_tagged(request, page->tag)) {
		request_answer_send(request, 304, NULL, (struct text){ NULL, 0 });
		return;
	}
	respond(request, (struct response){ .status = 200,
	                                    .content_type = page->content_type,
	                                    .shared = shared_hold(page->body),
	                                    .never_compress = true });
}

void request_answer_json(struct request *request, int status)
{
	request_answer(request, status, "application/json");
}

void request_answer_secret(struct request *request, int status)
{
	respond(request, (struct response){ .status = status,
	                                    .content_type = "application/json",
	                                    .body = { request->body.data, request->body.size },
	                                    .never_compress = true });
}

struct json_writer *request_object(struct request *request)
{
	buffer_clear(&request->body);
	request->json = json_writer_to(&request->body);
	json_open_object(&request->json, NULL);
	return &request->json;
}

void request_answer_message(struct request *request, int status, const char *text)
{
	struct json_writer *json = request_object(request);
	json_put_string(json, "message", text);
	json_close(json);
	request_answer_json(request, status);
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

static void request_answer_refuse(struct request *request, int status, const char *code,
                                  const char *sentence)
{
	struct json_writer *json = request_object(request);
	json_put_string(json, "error", sentence);
	json_put_string(json, "code", code);
	json_close(json);
	if (status == 503)
		request_header(request, "retry-after", TEXT("1"));
	request_answer_send(request, status, "application/json",
	                    (struct text){ request->body.data, request->body.size });
}

void request_fail(struct request *request, const struct error *error)
{
	/* The error may be the engine request's own, which ends with the request. */
	char sentence[ERROR_TEXT_MAX];
	int status = status_of(error->code);
	snprintf(sentence, sizeof(sentence), "%s", error->text);
	if (request->exchange->is_grpc)
		request_answer_finish(request, grpc_status_of_error(error->code), sentence, status);
	else
		request_answer_refuse(request, status, error_code_name(error->code), sentence);
}

void request_reject(struct request *request, enum error_code code, const char *format, ...)
{
	struct error error = { .code = code };
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(error.text, sizeof(error.text), format, arguments);
	va_end(arguments);
	request_fail(request, &error);
}

void request_refuse(struct request *request, int status, const char *code, const char *format, ...)
{
	char sentence[2 * ERROR_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	if (request->exchange->is_grpc)
		request_answer_finish(request, grpc_status_of(status), sentence, status);
	else
		request_answer_refuse(request, status, code, sentence);
}

void request_unknown(struct request *request, const char *what, struct text name)
{
	request_refuse(request, 404, "not_found", "%s %.*s is not known", what,
	               (int)(name.size < 128 ? name.size : 128), name.data);
}
