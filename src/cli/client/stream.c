/* stream.c - live events of the service, over a WebSocket */
#include "cli/client/stream.h"

#include <stdlib.h>

#include "base/memory.h"
#include "cli/client/socket.h"

struct stream {
	struct socket *socket;
	json_t *events; /* that were not asked for yet */
	bool over;
};

static void on_message(void *context, struct text message, bool is_text)
{
	struct stream *stream = context;
	json_t *event = is_text ? json_loadb(message.data, message.size, 0, NULL) : NULL;

	if (event)
		json_array_append_new(stream->events, event);
}

struct stream *stream_open(const struct client *client, const char *topics, struct error *error)
{
	struct stream *stream = NEW(struct stream);
	struct buffer path = { 0 };

	stream->events = json_array();
	buffer_text(&path, "/api/v1/stream?topics=");
	client_escape(&path, topics);
	buffer_text(&path, "");
	stream->socket = socket_open(client, path.data, on_message, stream, error);
	buffer_free(&path);
	if (stream->socket)
		return stream;
	stream_close(stream);
	return NULL;
}

void stream_close(struct stream *stream)
{
	if (!stream)
		return;
	socket_close(stream->socket);
	json_decref(stream->events);
	free(stream);
}

bool stream_next(struct stream *stream, json_t **event)
{
	*event = NULL;
	if (json_array_size(stream->events) == 0 && !stream->over)
		stream->over = !socket_advance(stream->socket);
	if (json_array_size(stream->events) > 0) {
		*event = json_incref(json_array_get(stream->events, 0));
		json_array_remove(stream->events, 0);
	}
	return *event || !stream->over;
}

int stream_descriptor(const struct stream *stream)
{
	return socket_descriptor(stream->socket);
}
