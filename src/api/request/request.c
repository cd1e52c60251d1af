/* request.c - one request from its head to its end, and what it asks the engine for */
#include "api/request/request.h"

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

static bool request_is_plain(struct text text)
{
	for (size_t i = 0; i < text.size; i++)
		if (text.data[i] <= ' ' || text.data[i] > '~')
			return false;
	return true;
}

/* The client's own id where it has a decent one, so that its log and ours name the same. */
static void name_request(struct request *request)
{
	struct requests *requests = request->requests;
	struct text given = headers_get(&request->exchange->headers, "x-request-id");

	if (given.data && given.size > 0 && given.size < REQUEST_ID_MAX &&
	    request_is_plain(given)) {
		memcpy(request->request_id, given.data, given.size);
		request->request_id[given.size] = '\0';
		return;
	}
	uint64_t number = hash_combine(requests->id_seed, requests->id_count++);
	for (int i = 0; i < 16; i++, number >>= 4)
		request->request_id[i] = hex[number & 15];
	request->request_id[16] = '\0';
}

/* What every answer has, whoever gives it. */
static void common_headers(struct request *request)
{
	struct exchange *exchange = request->exchange;
	const struct headers *headers = &exchange->headers;
	request_header(request, "x-request-id", text_of(request->request_id));
	struct text trace = headers_get(headers, "traceparent");
	if (trace.data && trace.size < 128 && request_is_plain(trace))
		request_header(request, "traceparent", trace);
	const char *origin = headers_get(headers, "origin").data
	                         ? gate_allowed_origin(request->requests->gate, exchange)
	                         : NULL;
	if (origin) {
		request_header(request, "access-control-allow-origin", text_of(origin));
		request_header(request, "access-control-expose-headers",
		               TEXT("x-request-id, etag, retry-after"));
		request_header(request, "vary", TEXT("origin"));
	}
	request->common_count = request->header_count;
	exchange->common_headers = request->headers;
	exchange->common_header_count = request->common_count;
}

static struct request *request_acquire(struct requests *requests)
{
	struct request *request = engine_pool_take(&requests->pool);
	request->requests = requests;
	request->service = requests->service;
	request->exchange = NULL;
	request->route = NULL;
	request->phase = REQUEST_ARRIVING;
	request->is_asked = request->is_noted = request->is_stream = false;
	request->common_count = request->header_count = 0;
	request->message = request->state = NULL;
	request->status = 0;
	request->identity = (struct identity){ .role = ROLE_AGENT };
	return request;
}

struct request *request_take(struct requests *requests, struct exchange *exchange)
{
	struct request *request = request_acquire(requests);
	request->exchange = exchange;
	request->began_us = clock_steady_us();
	exchange->context = request;
	requests->count++;
	name_request(request);
	common_headers(request);
	return request;
}

struct request *request_take_own(struct requests *requests)
{
	struct request *request = request_acquire(requests);
	request->phase = REQUEST_OPEN;
	request->is_stream = true;
	request->request_id[0] = '\0';
	return request;
}

static void request_give_back(struct request *request)
{
	if (request->body.capacity > BODY_KEPT_BYTES)
		buffer_free(&request->body);
	buffer_clear(&request->body);
	engine_pool_give_back(&request->requests->pool, request);
}

void request_drop(struct request *request)
{
	INVARIANT(request->phase != REQUEST_OVER);
	if (!request->is_stream)
		request->requests->count--;
	request->phase = REQUEST_OVER;
	request->exchange = NULL;
	if (!request->is_asked)
		request_give_back(request);
}

void request_stream(struct request *request)
{
	INVARIANT(request->phase != REQUEST_OVER && !request->is_stream);
	request->phase = REQUEST_OPEN;
	request->is_stream = true;
	request->requests->count--;
}

static void free_body(void *request)
{
	buffer_free(&((struct request *)request)->body);
}

void requests_free(struct requests *requests)
{
	engine_pool_free(&requests->pool, free_body);
}

struct text request_segment(const struct request *request, size_t place)
{
	INVARIANT(place < request->exchange->segments.count);
	return request->exchange->segments.of[place];
}

int64_t request_viewer(const struct request *request)
{
	return identity_viewer(&request->identity);
}

/* What a command does, in a word for the log. */
static const char *action_of(const struct command *command)
{
	bool resumes = command->kind == COMMAND_NODE_DRAIN && !command->drain.draining;
	return resumes ? "node_resume" : command_kind_name(command->kind);
}

/* What was refused did not happen, and does not stay in the audit log. */
static void settle_note(struct request *request)
{
	const struct engine_request *engine = &request->engine;
	request->is_noted = false;
	audit_settle(request->requests->audit, engine);
	if (engine->ok && engine->has_command)
		log_at(LOG_INFO, "changed", LOG_TEXT("action", action_of(&engine->command)),
		       LOG_TEXT("path", request->exchange ? request->exchange->path.data : ""),
		       LOG_TEXT("who", request->identity.name),
		       LOG_TEXT("request_id", request->request_id));
}

/* The one place where replies arrive. */
static void replied(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	request->is_asked = false;
	if (request->is_noted)
		settle_note(request);
	if (request->phase == REQUEST_OVER)
		request_give_back(request);
	else
		request->done(engine);
}

void request_send(struct request *request, void (*done)(struct engine_request *engine))
{
	INVARIANT(!request->is_asked && request->phase == REQUEST_OPEN);
	request->done = done;
	request->is_asked = true;
	request->engine.done = replied;
	request->engine.context = request;
	engine_port_send(request->requests->port, &request->engine);
}

/* Who did it, and to what. */
static void request_note(struct request *request, const char *action, const char *object,
                         const char *detail)
{
	request->is_noted = true;
	audit_note(request->requests->audit, &request->engine,
	           &(struct audit_entry){ .action = action,
	                                  .object = object,
	                                  .detail = detail,
	                                  .identity = &request->identity,
	                                  .exchange = request->exchange,
	                                  .unix_ms = clock_unix_ms() });
}

void request_command_on(struct request *request, const char *object,
                        void (*done)(struct engine_request *engine))
{
	const struct command *command = &request->engine.command;
	if (command->kind != COMMAND_SUBMIT)
		request_note(request, action_of(command), object, NULL);
	request->engine.has_command = true;
	request->engine.look = NULL;
	request->engine.read = NULL;
	request_send(request, done);
}

void request_command(struct request *request, void (*done)(struct engine_request *engine))
{
	request_command_on(request, request->exchange->path.data, done);
}

void request_keep_all(struct request *request, const struct kept *keeps, size_t count,
                      const char *action, const char *detail,
                      void (*done)(struct engine_request *engine))
{
	INVARIANT(count > 0);
	request->engine.keeps = keeps;
	request->engine.keep_count = count;
	request_note(request, action, keeps->key, detail);
	request_send(request, done);
}

void request_keep(struct request *request, const struct kept *keep, const char *action,
                  const char *detail, void (*done)(struct engine_request *engine))
{
	request_keep_all(request, keep, 1, action, detail, done);
}

void request_lend(struct request *request, void (*done)(struct engine_request *engine))
{
	INVARIANT(!request->is_asked && request->phase == REQUEST_OPEN);
	request->done = done;
	request->is_asked = true;
}

void request_return(struct request *request)
{
	INVARIANT(request->is_asked);
	replied(&request->engine);
}

void request_audit(struct request *request, const char *action, const char *object,
                   const char *detail, void (*done)(struct engine_request *engine))
{
	request_note(request, action, object, detail);
	request_send(request, done);
}

void request_look(struct request *request,
                  bool (*look)(struct engine_request *, struct sched *, struct error *),
                  void (*done)(struct engine_request *engine))
{
	request->engine.has_command = false;
	request->engine.look = look;
	request->engine.read = NULL;
	request_send(request, done);
}

void request_read(struct request *request,
                  bool (*read)(struct engine_request *, struct store *, struct error *),
                  void (*done)(struct engine_request *engine))
{
	request->engine.has_command = false;
	request->engine.look = NULL;
	request->engine.read = read;
	request_send(request, done);
}

void request_header(struct request *request, const char *name, struct text value)
{
	if (request->header_count < REQUEST_HEADERS_MAX)
		request->headers[request->header_count++] = (struct header){ text_of(name), value };
}

static const char *trace_of(const struct request *request)
{
	struct text trace = headers_get(&request->exchange->headers, "traceparent");
	return trace.data && request_is_plain(trace) ? trace.data : "";
}

void request_count(struct request *request, int status)
{
	int64_t took_us = clock_steady_us() - request->began_us;
	/* Where wire has refused it meanwhile, that is what the client got. */
	if (request->exchange->refused_status > 0)
		status = request->exchange->refused_status;
	request->status = status;
	traffic_add(request->requests->traffic, request->route, status, took_us);
	log_at(LOG_DEBUG, "request", LOG_TEXT("request_id", request->request_id),
	       LOG_TEXT("method", request->exchange->method_name.data),
	       LOG_TEXT("path", request->exchange->path.data), LOG_NUMBER("status", status),
	       LOG_NUMBER("took_us", took_us), LOG_TEXT("who", request->identity.name),
	       LOG_TEXT("trace", trace_of(request)));
}
