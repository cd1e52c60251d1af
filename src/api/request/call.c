/* call.c - one request from its head to its end, and what it asks the engine for */
#include "api/request/call.h"

#include <stdlib.h>

#include "api/auth/gate.h"
#include "api/engine/audit.h"
#include "api/request/route.h"
#include "api/request/traffic.h"
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
	struct calls *calls = call->calls;
	struct text given = headers_get(&call->exchange->headers, "x-request-id");

	if (given.data && given.size > 0 && given.size < REQUEST_ID_MAX && is_plain(given)) {
		memcpy(call->request_id, given.data, given.size);
		call->request_id[given.size] = '\0';
		return;
	}
	uint64_t number = hash_combine(calls->id_seed, calls->id_count++);
	for (int i = 0; i < 16; i++, number >>= 4)
		call->request_id[i] = hex[number & 15];
	call->request_id[16] = '\0';
}

/* What every answer has, whoever gives it. */
static void common_headers(struct call *call)
{
	struct exchange *exchange = call->exchange;
	const struct headers *headers = &exchange->headers;
	call_header(call, "x-request-id", text_of(call->request_id));
	struct text trace = headers_get(headers, "traceparent");
	if (trace.data && trace.size < 128 && is_plain(trace))
		call_header(call, "traceparent", trace);
	const char *origin = headers_get(headers, "origin").data
	                         ? gate_allowed_origin(call->calls->gate, exchange)
	                         : NULL;
	if (origin) {
		call_header(call, "access-control-allow-origin", text_of(origin));
		call_header(call, "access-control-expose-headers",
		            TEXT("x-request-id, etag, retry-after"));
		call_header(call, "vary", TEXT("origin"));
	}
	call->common_count = call->header_count;
	exchange->common_headers = call->headers;
	exchange->common_header_count = call->common_count;
}

static struct call *take(struct calls *calls)
{
	struct call *call = calls->spare;
	if (call) {
		memory_unpoison(call, sizeof(*call));
		calls->spare = call->next;
	} else {
		call = NEW(struct call);
		call->next_of_all = calls->all;
		calls->all = call;
	}
	call->calls = calls;
	call->service = calls->service;
	call->exchange = NULL;
	call->route = NULL;
	call->phase = CALL_ARRIVING;
	call->is_asked = call->is_noted = call->is_stream = false;
	call->common_count = call->header_count = 0;
	call->message = call->state = NULL;
	call->status = 0;
	call->identity = (struct identity){ .role = ROLE_AGENT };
	return call;
}

struct call *call_take(struct calls *calls, struct exchange *exchange)
{
	struct call *call = take(calls);
	call->exchange = exchange;
	call->began_us = clock_steady_us();
	exchange->context = call;
	calls->count++;
	name_request(call);
	common_headers(call);
	return call;
}

struct call *call_take_own(struct calls *calls)
{
	struct call *call = take(calls);
	call->phase = CALL_OPEN;
	call->is_stream = true;
	call->request_id[0] = '\0';
	return call;
}

static void give_back(struct call *call)
{
	struct calls *calls = call->calls;
	if (call->body.capacity > BODY_KEPT_BYTES)
		buffer_free(&call->body);
	buffer_clear(&call->body);
	ask_reset(&call->ask);
	call->next = calls->spare;
	calls->spare = call;
	memory_poison(call, sizeof(*call));
}

void call_drop(struct call *call)
{
	INVARIANT(call->phase != CALL_OVER);
	if (!call->is_stream)
		call->calls->count--;
	call->phase = CALL_OVER;
	call->exchange = NULL;
	if (!call->is_asked)
		give_back(call);
}

void call_stream(struct call *call)
{
	INVARIANT(call->phase != CALL_OVER && !call->is_stream);
	call->phase = CALL_OPEN;
	call->is_stream = true;
	call->calls->count--;
}

void calls_free(struct calls *calls)
{
	while (calls->all) {
		struct call *call = calls->all;
		memory_unpoison(call, sizeof(*call));
		calls->all = call->next_of_all;
		ask_free(&call->ask);
		buffer_free(&call->body);
		free(call);
	}
	calls->spare = NULL;
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

/* What was refused did not happen, and does not stay in the audit log. */
static void settle_note(struct call *call)
{
	const struct ask *ask = &call->ask;
	call->is_noted = false;
	audit_settle(call->calls->audit, ask);
	if (ask->ok && ask->has_command)
		log_at(
		    LOG_INFO, "changed", LOG_TEXT("action", command_kind_name(ask->command.kind)),
		    LOG_TEXT("path", call->exchange ? call->exchange->path.data : ""),
		    LOG_TEXT("who", call->identity.name), LOG_TEXT("request_id", call->request_id));
}

/* The one place where replies arrive. */
static void replied(struct ask *ask)
{
	struct call *call = call_of(ask);
	call->is_asked = false;
	if (call->is_noted)
		settle_note(call);
	if (call->phase == CALL_OVER)
		give_back(call);
	else
		call->done(ask);
}

void call_ask(struct call *call, void (*done)(struct ask *ask))
{
	INVARIANT(!call->is_asked && call->phase == CALL_OPEN);
	call->done = done;
	call->is_asked = true;
	call->ask.done = replied;
	call->ask.context = call;
	desk_ask(call->calls->desk, &call->ask);
}

/* Who did it, and to what. */
static void note(struct call *call, const char *action, const char *object, const char *detail)
{
	call->is_noted = true;
	audit_note(call->calls->audit, &call->ask,
	           &(struct audit_entry){ .action = action,
	                                  .object = object,
	                                  .detail = detail,
	                                  .identity = &call->identity,
	                                  .exchange = call->exchange,
	                                  .unix_ms = clock_unix_ms() });
}

void call_command_on(struct call *call, const char *object, void (*done)(struct ask *ask))
{
	enum command_kind kind = call->ask.command.kind;
	if (kind != COMMAND_SUBMIT)
		note(call, command_kind_name(kind), object, NULL);
	call->ask.has_command = true;
	call->ask.look = NULL;
	call->ask.read = NULL;
	call_ask(call, done);
}

void call_command(struct call *call, void (*done)(struct ask *ask))
{
	call_command_on(call, call->exchange->path.data, done);
}

void call_keep(struct call *call, const struct kept *keep, const char *action, const char *detail,
               void (*done)(struct ask *ask))
{
	call->ask.keeps = keep;
	call->ask.keep_count = 1;
	note(call, action, keep->key, detail);
	call_ask(call, done);
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

static const char *trace_of(const struct call *call)
{
	struct text trace = headers_get(&call->exchange->headers, "traceparent");
	return trace.data && is_plain(trace) ? trace.data : "";
}

void call_count(struct call *call, int status)
{
	int64_t took_us = clock_steady_us() - call->began_us;
	/* Where wire has refused it meanwhile, that is what the client got. */
	if (call->exchange->refused_status > 0)
		status = call->exchange->refused_status;
	call->status = status;
	traffic_add(call->calls->traffic, call->route, status, took_us);
	log_at(LOG_DEBUG, "request", LOG_TEXT("request_id", call->request_id),
	       LOG_TEXT("method", call->exchange->method_name.data),
	       LOG_TEXT("path", call->exchange->path.data), LOG_NUMBER("status", status),
	       LOG_NUMBER("took_us", took_us), LOG_TEXT("who", call->identity.name),
	       LOG_TEXT("trace", trace_of(call)));
}
