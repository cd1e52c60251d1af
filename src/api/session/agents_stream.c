/* agents_stream.c - Connect: a node's messages as they come and go */
#include <stdlib.h>

#include "api/session/agents_local.h"
#include "api/text/protobuf.h"
#include "base/memory.h"

/* A node that does not read is one that is away. */
enum { WAITING_BYTES_MAX = 4 << 20, WAITING_BYTES_OF_SESSIONS = 1 << 20 };

void agents_stream_end(struct agents_stream *stream, enum grpc_status status, const char *text)
{
	struct agents_node *node = stream->node;
	struct request *request = stream->request;

	request->state = NULL;
	streams_remove(&stream->stream);
	buffer_free(&stream->waiting);
	free(stream);
	if (node && node->stream == stream)
		node->stream = NULL;
	request_finish(request, status, text);
	if (node && !node->stream)
		agents_end_all(node, "the node has no connection now: try again later");
}

static void agents_stream_keep(struct agents_stream *stream, struct text bytes)
{
	uint32_t size = (uint32_t)bytes.size;

	buffer_bytes(&stream->waiting, &size, sizeof(size));
	buffer_bytes(&stream->waiting, bytes.data, bytes.size);
}

void agents_stream_send(struct agents_stream *stream, const Agent__Envelope *envelope)
{
	struct arena *arena = &stream->agents->packing;
	struct text bytes = protobuf_write(envelope, arena);

	/* Too much for a node that still reads: orders are sent again, and renewals are repeated.
	 */
	if (stream->waiting.size + bytes.size > WAITING_BYTES_MAX)
		bytes.size = 0;
	else if (stream->waiting.size > 0 || !grpc_send(stream->request->exchange, bytes))
		agents_stream_keep(stream, bytes);
	arena_reset(arena);
}

/* Orders must not wait behind what people type. */
bool agents_stream_try(struct agents_stream *stream, const Agent__Envelope *envelope)
{
	if (stream->waiting.size > WAITING_BYTES_OF_SESSIONS)
		return false;
	agents_stream_send(stream, envelope);
	return true;
}

static struct agents_stream *stream_of(const struct exchange *exchange)
{
	return ((const struct request *)exchange->context)->state;
}

static void agents_stream_on_writable(struct exchange *exchange)
{
	struct agents_stream *stream = stream_of(exchange);
	struct buffer *waiting = &stream->waiting;
	size_t at = 0;

	while (at < waiting->size) {
		uint32_t size;
		memcpy(&size, waiting->data + at, sizeof(size));
		if (!grpc_send(exchange, (struct text){ waiting->data + at + sizeof(size), size }))
			break;
		at += sizeof(size) + size;
	}
	if (at > 0)
		memmove(waiting->data, waiting->data + at, waiting->size - at);
	waiting->size -= at;
}

/* Its number is of the ended connection, unless a newer one has begun. */
static void agents_stream_drop(struct agents_stream *stream, enum grpc_status status,
                               const char *text)
{
	struct agents_node *node = stream->node;

	if (node && node->stream == stream)
		agents_disconnected(node);
	agents_stream_end(stream, status, text);
}

static void agents_stream_on_gone(struct exchange *exchange)
{
	agents_stream_drop(stream_of(exchange), GRPC_CANCELLED, NULL);
}

/* A node whose token no longer holds gets no further order. */
static void end_sign_in(struct stream *stream, const char *reason)
{
	agents_stream_drop((struct agents_stream *)(void *)((char *)stream -
	                                                    offsetof(struct agents_stream, stream)),
	                   GRPC_UNAUTHENTICATED, reason);
}

static void agents_stream_on_end(struct exchange *exchange)
{
	agents_stream_drop(stream_of(exchange), GRPC_OK, NULL);
}

static void agents_stream_take_message(struct agents_stream *stream, ProtobufCBinaryData bytes)
{
	struct agents *agents = stream->agents;
	struct arena arena = { 0 };
	struct error error = { 0 };
	struct message *message = message_decode(&arena, bytes.data, bytes.len, &error);

	if (!message) {
		agents_stream_drop(stream, GRPC_INVALID_ARGUMENT, error.text);
	} else if (message->kind == MESSAGE_HELLO) {
		if (!agents_may_speak(&stream->request->identity, message->hello.name, &error))
			agents_stream_drop(stream, grpc_status_of_error(error.code), error.text);
		else if (stream->node && strcmp(stream->node->name, message->hello.name) != 0)
			agents_stream_drop(stream, GRPC_INVALID_ARGUMENT,
			                   "a connection is of one node");
		else
			agents_message(agents_node(agents, message->hello.name), message, stream);
	} else if (!stream->node) {
		agents_stream_drop(stream, GRPC_FAILED_PRECONDITION, "hello comes first");
	} else {
		agents_message(stream->node, message, stream);
	}
	arena_free(&arena);
}

static void agents_stream_on_body(struct exchange *exchange, struct text part)
{
	struct agents_stream *stream = stream_of(exchange);
	struct arena arena = { 0 };
	Agent__Envelope *envelope = protobuf_read(&agent__envelope__descriptor, part, &arena);

	if (!envelope)
		agents_stream_drop(stream, GRPC_INVALID_ARGUMENT, "this is not an agent.Envelope");
	else if (envelope->output_chunk && stream->node)
		agents_output_chunk(stream->node, envelope->output_chunk);
	else if (envelope->slot_key && stream->node && stream->node->stream == stream)
		agents_take_key(stream->node, envelope->slot_key);
	else if (envelope->lease_key_taken && stream->node && stream->node->stream == stream)
		agents_lease_taken(stream->node, envelope->lease_key_taken);
	else if (envelope->input_taken && stream->node)
		agents_input_taken(stream->node, envelope->input_taken);
	else if (envelope->session_data && stream->node)
		agents_channel_data(stream->node, envelope->session_data);
	else if (envelope->session_close && stream->node)
		agents_channel_closed(stream->node, envelope->session_close);
	else if (envelope->message.len > 0)
		agents_stream_take_message(stream, envelope->message);
	arena_free(&arena);
}

static const struct exchange_events events = { .body = agents_stream_on_body,
	                                       .body_end = agents_stream_on_end,
	                                       .writable = agents_stream_on_writable,
	                                       .gone = agents_stream_on_gone };

void agents_connect(struct agents *agents, struct request *request)
{
	struct agents_stream *stream = NEW(struct agents_stream);

	stream->agents = agents;
	stream->request = request;
	request->state = stream;
	request->exchange->events = &events;
	streams_add(agents->settings.streams, &stream->stream, &request->identity, end_sign_in);
	grpc_stream(request->exchange);
}
