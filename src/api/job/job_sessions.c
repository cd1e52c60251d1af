/* job_sessions.c - interactive sessions of jobs: opened, and carried over WebSockets */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "api/auth/streams.h"
#include "api/job/job_session_request.h"
#include "api/job/jobs.h"
#include "api/service/service_state.h"
#include "base/memory.h"
#include "base/number.h"
#include "channel/frame.h"

enum {
	CODE_DONE = 1000, /* of WebSocket */
	CODE_POLICY = 1008,
	CODE_ERROR = 4000, /* and an enum error_code: that of 503 says to try again */
	WAITING_BYTES_MAX = 4 * FRAME_OUTPUT_WINDOW,
};

/* A WebSocket and its channel. `waiting` has frames that the client has not taken: a size and the
 * bytes of each. */
struct session_relay {
	struct websocket *socket;
	struct agents_channel *channel; /* NULL: closed */
	struct stream stream;
	struct buffer waiting;
	size_t at;
	int64_t input_taken; /* by the task, as far as it said */
	bool ending;
};

/* A new session whose node has not answered. */
struct session_opening {
	struct request *request;
	struct agents_channel *channel;
	char id[SESSION_ID_BYTES + 1];
};

static void relay_end(struct session_relay *relay, int code, const char *reason)
{
	if (relay->channel)
		agents_close_channel(relay->channel);
	relay->channel = NULL;
	streams_remove(&relay->stream);
	if (!relay->ending)
		websocket_close(relay->socket, code, reason);
	relay->ending = true;
}

/* Sends as much of the queued output as the client accepts. */
static void relay_flush(struct session_relay *relay)
{
	struct buffer *waiting = &relay->waiting;
	uint32_t size;
	bool taken = true;

	while (taken && relay->at < waiting->size) {
		memcpy(&size, waiting->data + relay->at, sizeof(size));
		struct shared *frame = websocket_frame(
		    (struct text){ waiting->data + relay->at + sizeof(size), size }, false);
		taken = websocket_send(relay->socket, frame);
		shared_drop(frame);
		if (taken)
			relay->at += sizeof(size) + size;
	}
	if (relay->at > 0)
		memmove(waiting->data, waiting->data + relay->at, waiting->size - relay->at);
	waiting->size -= relay->at;
	relay->at = 0;
	if (waiting->size == 0 && !relay->channel && !relay->ending)
		relay_end(relay, CODE_DONE, "");
}

static void relay_on_frame(void *context, struct text bytes)
{
	struct session_relay *relay = context;
	uint32_t size = (uint32_t)bytes.size;
	struct frame frame;

	if (bytes.size > FRAME_BYTES_MAX || !frame_read(bytes, &frame)) {
		relay_end(relay, CODE_ERROR + ERROR_UNAVAILABLE,
		          "the node sent what is not a frame");
		return;
	}
	if (frame.kind == FRAME_TAKEN)
		relay->input_taken = max64(relay->input_taken, frame.offset);
	else if (frame.kind == FRAME_BEGIN)
		relay->input_taken = max64(relay->input_taken, frame.input_offset);
	if (relay->waiting.size + bytes.size > WAITING_BYTES_MAX) {
		relay_end(relay, CODE_POLICY, "the client does not read what it has asked for");
		return;
	}
	buffer_bytes(&relay->waiting, &size, sizeof(size));
	buffer_bytes(&relay->waiting, bytes.data, bytes.size);
	relay_flush(relay);
}

static void relay_on_closed(void *context, const struct error *error)
{
	struct session_relay *relay = context;

	relay->channel = NULL;
	if (error->code == ERROR_NONE)
		relay_flush(relay);
	else
		relay_end(relay, CODE_ERROR + (int)error->code, error->text);
}

static void relay_on_message(struct websocket *socket, struct text message, bool is_text)
{
	struct session_relay *relay = websocket_context(socket);
	struct frame frame;

	if (relay->ending || !relay->channel)
		return;
	if (is_text || message.size > FRAME_BYTES_MAX || !frame_read(message, &frame) ||
	    !frame_is_of_client(frame.kind)) {
		relay_end(relay, CODE_POLICY, "this is not a frame of a client");
		return;
	}
	if (frame.kind == FRAME_INPUT &&
	    frame.offset + (int64_t)frame.data.size > relay->input_taken + 3 * FRAME_INPUT_WINDOW) {
		relay_end(relay, CODE_POLICY, "more input than the task has taken");
		return;
	}
	agents_channel_send(relay->channel, message);
}

static void relay_on_writable(struct websocket *socket)
{
	relay_flush(websocket_context(socket));
}

static void relay_on_socket_closed(struct websocket *socket, int code)
{
	struct session_relay *relay = websocket_context(socket);

	(void)code;
	relay->ending = true;
	relay_end(relay, CODE_DONE, "");
	if (relay->waiting.size > 0)
		explicit_bzero(relay->waiting.data, relay->waiting.size);
	buffer_free(&relay->waiting);
	free(relay);
}

/* Who works there is not who it was let in as any more. */
static void relay_end_sign_in(struct stream *stream, const char *reason)
{
	relay_end((struct session_relay *)(void *)((char *)stream -
	                                           offsetof(struct session_relay, stream)),
	          CODE_POLICY, reason);
}

static const struct websocket_events socket_events = { .message = relay_on_message,
	                                               .writable = relay_on_writable,
	                                               .closed = relay_on_socket_closed };

/* The audit log has the entry: the client gets its WebSocket. */
static void relay_begin(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct session_request *wanted = request->state;
	struct agents_channel_options options = wanted->options;

	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	struct session_relay *relay = NEW(struct session_relay);
	request->exchange->events = NULL;
	request_count(request, 101);
	relay->socket = websocket_accept(request->exchange, &socket_events, relay,
	                                 session_request_protocol(request));
	if (!relay->socket) {
		free(relay);
		request_drop(request);
		return;
	}
	websocket_hurry(relay->socket);
	streams_add(request->service->streams, &relay->stream, &request->identity,
	            relay_end_sign_in);
	options.frame = relay_on_frame;
	options.closed = relay_on_closed;
	options.context = relay;
	relay->channel = agents_open_channel(request->service->agents, &options);
	request_drop(request);
}

static void opening_on_gone(struct exchange *exchange)
{
	struct request *request = exchange->context;
	struct session_opening *opening = request->state;

	agents_close_channel(opening->channel);
	free(opening);
	request_drop(request);
}

static void opening_on_frame(void *context, struct text bytes)
{
	struct session_opening *opening = context;
	struct request *request = opening->request;
	struct error error = { 0 };
	struct frame frame;

	if (!frame_read(bytes, &frame))
		frame = (struct frame){ .kind = FRAME_REFUSED,
			                .code = ERROR_UNAVAILABLE,
			                .data = TEXT("the node sent what is not a frame") };
	if (frame.kind != FRAME_BEGIN && frame.kind != FRAME_REFUSED)
		return;
	agents_close_channel(opening->channel);
	if (frame.kind == FRAME_REFUSED) {
		error_set(&error, session_refusal_code(frame.code), "%.*s", (int)frame.data.size,
		          frame.data.data);
		free(opening);
		request_fail(request, &error);
		return;
	}
	struct json_writer *json = request_object(request);
	json_put_string(json, "session_id", opening->id);
	json_close(json);
	free(opening);
	request_answer_json(request, 201);
}

static void opening_on_closed(void *context, const struct error *error)
{
	struct session_opening *opening = context;
	struct request *request = opening->request;
	struct error gone = *error;

	free(opening);
	if (gone.code == ERROR_NONE)
		error_set(&gone, ERROR_UNAVAILABLE, "the task has ended");
	request_fail(request, &gone);
}

static const struct exchange_events opening_events = { .gone = opening_on_gone };

static void opening_begin(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct session_request *wanted = request->state;
	struct agents_channel_options options = wanted->options;

	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	if (exchange_is_gone(request->exchange)) {
		request_drop(request);
		return;
	}
	struct session_opening *opening = NEW(struct session_opening);
	opening->request = request;
	memcpy(opening->id, wanted->id, sizeof(opening->id));
	options.frame = opening_on_frame;
	options.closed = opening_on_closed;
	options.context = opening;
	request->state = opening;
	request->exchange->events = &opening_events;
	request->exchange->hangup_is_gone = true;
	opening->channel = agents_open_channel(request->service->agents, &options);
}

/* The id is no secret, but nobody has to guess it. */
static bool make_id(char id[SESSION_ID_BYTES + 1])
{
	unsigned char random[SESSION_ID_BYTES / 2];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return false;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(id + 2 * i, 3, "%02x", random[i]);
	return true;
}

void job_sessions_open(struct request *request)
{
	struct session_request *wanted = session_request_new(request);

	if (!session_request_body(request, wanted) || !session_request_place(request, wanted))
		return;
	if (!make_id(wanted->id)) {
		request_refuse(request, 503, "unavailable", "no random numbers to be had");
		return;
	}
	wanted->options.kind = CHANNEL_COMMAND;
	wanted->options.session_id = wanted->id;
	request_audit(request, "session_open", wanted->object, wanted->detail, opening_begin);
}

void job_sessions_attach(struct request *request)
{
	struct session_request *wanted = session_request_new(request);

	if (!session_request_query(request, wanted) || !session_request_place(request, wanted))
		return;
	wanted->options.kind = CHANNEL_ATTACH;
	wanted->options.session_id = wanted->id;
	request_audit(request, "session_attach", wanted->object, wanted->detail, relay_begin);
}

void job_sessions_forward(struct request *request)
{
	struct session_request *wanted = session_request_new(request);

	if (!session_request_query(request, wanted) || !session_request_place(request, wanted))
		return;
	wanted->options.kind = CHANNEL_FORWARD;
	wanted->options.session_id = "";
	request_audit(request, "session_forward", wanted->object, wanted->detail, relay_begin);
}
