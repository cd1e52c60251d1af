/* call.c - one request on its way through the service, and how it is answered */
#include "api/service/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/engine/audit.h"
#include "api/service/route.h"
#include "api/service/service_state.h"
#include "api/service/traffic.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"

/* Larger ones are not kept for the next call. */
enum { BODY_KEPT_BYTES = 1 << 20 };

static const char hex[] = "0123456789abcdef";

static bool is_plain(struct text text)
{
	for (size_t i = 0; i < text.size; i++)
		if (text.data[i] <= ' ' || text.data[i] > '~')
			return false;
	return true;
}

/* The client's own id where it has a decent one, so that its log and ours name the same. */
static void name_request(struct call *call)
{
	struct service *service = call->service;
	struct text given = headers_get(&call->exchange->headers, "x-request-id");

	if (given.data && given.size > 0 && given.size < REQUEST_ID_MAX && is_plain(given)) {
		memcpy(call->request_id, given.data, given.size);
		call->request_id[given.size] = '\0';
		return;
	}
	uint64_t number = hash_combine(service->id_seed, service->id_count++);
	for (int i = 0; i < 16; i++, number >>= 4)
		call->request_id[i] = hex[number & 15];
	call->request_id[16] = '\0';
}

struct call *call_take(struct service *service, struct exchange *exchange)
{
	struct call *call = service->free_calls;
	if (call) {
		memory_unpoison(call, sizeof(*call));
		service->free_calls = call->next;
	} else {
		call = NEW(struct call);
	}
	service->calls++;
	call->service = service;
	call->exchange = exchange;
	call->route = NULL;
	call->header_count = 0;
	call->in_request = false;
	call->state = NULL;
	call->status = 0;
	call->identity = (struct identity){ .role = ROLE_AGENT };
	call->began_us = clock_steady_us();
	name_request(call);
	exchange->context = call;
	return call;
}

void call_drop(struct call *call)
{
	struct service *service = call->service;
	if (call->body.capacity > BODY_KEPT_BYTES)
		buffer_free(&call->body);
	buffer_clear(&call->body);
	ask_reset(&call->ask);
	call->exchange = NULL;
	call->next = service->free_calls;
	service->free_calls = call;
	service->calls--;
	memory_poison(call, sizeof(*call));
}

struct text call_segment(const struct call *call, size_t place)
{
	INVARIANT(place < call->exchange->segments.count);
	return call->exchange->segments.of[place];
}

int64_t call_viewer(const struct call *call)
{
	return identity_viewer(&call->identity);
}

void call_ask(struct call *call, void (*done)(struct ask *ask))
{
	call->ask.done = done;
	call->ask.context = call;
	desk_ask(call->service->desk, &call->ask);
}

/* Who did it, and to what: the path says that best. */
static void note(struct call *call)
{
	const struct exchange *exchange = call->exchange;
	audit_note(call->service->audit, &call->ask,
	           &(struct audit_entry){ .action = command_kind_name(call->ask.command.kind),
	                                  .object = exchange->path.data,
	                                  .identity = &call->identity,
	                                  .exchange = exchange,
	                                  .unix_ms = clock_unix_ms() });
}

/* What was refused did not happen, and does not stay in the audit log. */
static void settle(struct ask *ask)
{
	struct call *call = call_of(ask);
	audit_settle(call->service->audit, ask);
	if (ask->ok)
		log_at(
		    LOG_INFO, "changed", LOG_TEXT("action", command_kind_name(ask->command.kind)),
		    LOG_TEXT("path", call->exchange->path.data),
		    LOG_TEXT("who", call->identity.name), LOG_TEXT("request_id", call->request_id));
	call->done(ask);
}

void call_command(struct call *call, void (*done)(struct ask *ask))
{
	bool is_noted = call->ask.command.kind != COMMAND_SUBMIT;
	call->done = done;
	if (is_noted)
		note(call);
	call->ask.has_command = true;
	call->ask.look = NULL;
	call->ask.read = NULL;
	call_ask(call, is_noted ? settle : done);
}

void call_look(struct call *call, bool (*look)(struct ask *, struct sched *, struct error *),
               void (*done)(struct ask *ask))
{
	call->ask.has_command = false;
	call->ask.look = look;
	call->ask.read = NULL;
	call_ask(call, done);
}

void call_read(struct call *call, bool (*read)(struct ask *, struct store *, struct error *),
               void (*done)(struct ask *ask))
{
	call->ask.has_command = false;
	call->ask.look = NULL;
	call->ask.read = read;
	call_ask(call, done);
}

void call_header(struct call *call, const char *name, struct text value)
{
	if (call->header_count < CALL_HEADERS_MAX)
		call->headers[call->header_count++] = (struct header){ text_of(name), value };
}

/* What every answer has. */
static void common_headers(struct call *call)
{
	const struct headers *headers = &call->exchange->headers;
	call_header(call, "x-request-id", text_of(call->request_id));
	struct text trace = headers_get(headers, "traceparent");
	if (trace.data && trace.size < 128 && is_plain(trace))
		call_header(call, "traceparent", trace);
	if (!headers_get(headers, "origin").data)
		return;
	const char *origin = gate_allowed_origin(call->service->gate, call->exchange);
	if (!origin)
		return;
	call_header(call, "access-control-allow-origin", text_of(origin));
	call_header(call, "access-control-expose-headers", TEXT("x-request-id, etag, retry-after"));
	call_header(call, "vary", TEXT("origin"));
}

static const char *trace_of(const struct call *call)
{
	struct text trace = headers_get(&call->exchange->headers, "traceparent");
	return trace.data && is_plain(trace) ? trace.data : "";
}

static void count(struct call *call, int status)
{
	size_t place = call->route ? (size_t)(call->route - routes) : SIZE_MAX;
	call->status = status;
	int64_t took_us = clock_steady_us() - call->began_us;
	traffic_add(call->service->traffic, place, status, took_us);
	log_at(LOG_DEBUG, "request", LOG_TEXT("request_id", call->request_id),
	       LOG_TEXT("method", call->exchange->method_name.data),
	       LOG_TEXT("path", call->exchange->path.data), LOG_NUMBER("status", status),
	       LOG_NUMBER("took_us", took_us), LOG_TEXT("who", call->identity.name),
	       LOG_TEXT("trace", trace_of(call)));
}

/* Fills in the headers and sends it; takes over a reference to what it shares. */
static void respond(struct call *call, struct response response)
{
	common_headers(call);
	response.headers = call->headers;
	response.header_count = call->header_count;
	count(call, response.status);
	call->exchange->events = NULL;
	exchange_respond(call->exchange, &response);
	call_drop(call);
}

static void send(struct call *call, int status, const char *content_type, struct text body)
{
	respond(call,
	        (struct response){ .status = status, .content_type = content_type, .body = body });
}

void call_begin(struct call *call, int status, const char *content_type)
{
	common_headers(call);
	call->status = status;
	exchange_begin(call->exchange, &(struct response){ .status = status,
	                                                   .content_type = content_type,
	                                                   .headers = call->headers,
	                                                   .header_count = call->header_count });
}

void call_end(struct call *call)
{
	count(call, call->status);
	call->exchange->events = NULL;
	exchange_end(call->exchange);
	call_drop(call);
}

void call_abort(struct call *call)
{
	count(call, call->status);
	call->exchange->events = NULL;
	exchange_abort(call->exchange);
	call_drop(call);
}

void call_release(struct call *call)
{
	count(call, 200);
	call->exchange->events = NULL;
	call->exchange->context = NULL;
	call_drop(call);
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
	char sentence[ERROR_TEXT_MAX];
	snprintf(sentence, sizeof(sentence), "%s", error->text);
	refuse(call, status_of(error->code), error_code_name(error->code), sentence);
}

void call_refuse(struct call *call, int status, const char *code, const char *format, ...)
{
	char sentence[2 * ERROR_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	refuse(call, status, code, sentence);
}

void call_unknown(struct call *call, const char *what, struct text name)
{
	call_refuse(call, 404, "not_found", "%s %.*s is not known", what,
	            (int)(name.size < 128 ? name.size : 128), name.data);
}
