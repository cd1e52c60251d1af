/* h2_client.c - an HTTP/2 client for tests, at the other end of a pair */
#include "h2_client.h"

#include <nghttp2/nghttp2.h>
#include <stdlib.h>

#include "base/memory.h"

enum { ROUNDS_MAX = 64 };

/* A body on its way out; freed with the client. */
struct body {
	struct body *next;
	size_t size, sent;
	bool is_end;
	char data[];
};

struct h2_stream *h2_client_stream(struct h2_client *client, int32_t id)
{
	size_t index = (size_t)(id - 1) / 2;
	INVARIANT(id > 0 && index < H2_STREAMS_MAX);
	return &client->streams[index];
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *context)
{
	(void)session;
	(void)flags;
	struct h2_stream *stream = h2_client_stream(context, frame->hd.stream_id);
	struct text key = { (const char *)name, name_size };
	int number = value_size > 0 ? atoi((const char *)value) : 0;
	if (text_is(key, ":status"))
		stream->status = number;
	else if (text_is(key, "grpc-status"))
		stream->grpc_status = number;
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t size, void *context)
{
	(void)session;
	(void)flags;
	buffer_bytes(&h2_client_stream(context, id)->body, data, size);
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	(void)session;
	struct h2_client *client = context;
	if (frame->hd.type == NGHTTP2_GOAWAY)
		client->has_goaway = true;
	if (frame->hd.type == NGHTTP2_RST_STREAM)
		h2_client_stream(client, frame->hd.stream_id)->reset = frame->rst_stream.error_code;
	return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *context)
{
	(void)session;
	(void)code;
	h2_client_stream(context, id)->is_closed = true;
	return 0;
}

struct h2_client *h2_client_new(struct pair *pair, const struct handler *handler, uint32_t window)
{
	struct h2_client *client = NEW(struct h2_client);
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *options;
	client->pair = pair;
	for (size_t i = 0; i < H2_STREAMS_MAX; i++)
		client->streams[i].status = client->streams[i].grpc_status = -1;
	for (size_t i = 0; i < H2_STREAMS_MAX; i++)
		client->streams[i].reset = -1;
	INVARIANT(nghttp2_session_callbacks_new(&callbacks) == 0);
	INVARIANT(nghttp2_option_new(&options) == 0);
	/* Windows are opened by the tests alone. */
	nghttp2_option_set_no_auto_window_update(options, 1);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	INVARIANT(nghttp2_session_client_new2(&client->session, callbacks, client, options) == 0);
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_option_del(options);
	nghttp2_settings_entry settings = { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window };
	nghttp2_submit_settings(client->session, NGHTTP2_FLAG_NONE, &settings, 1);
	pair_connect(pair, handler);
	h2_client_run(client);
	return client;
}

void h2_client_free(struct h2_client *client)
{
	nghttp2_session_del(client->session);
	while (client->bodies) {
		struct body *body = client->bodies;
		client->bodies = body->next;
		free(body);
	}
	for (size_t i = 0; i < H2_STREAMS_MAX; i++)
		buffer_free(&client->streams[i].body);
	free(client);
}

/* Bytes both ways, once; false if there were none. */
static bool exchange_bytes(struct h2_client *client)
{
	struct pair *pair = client->pair;
	const uint8_t *data;
	ssize_t size;
	bool is_busy = false;
	while ((size = nghttp2_session_mem_send(client->session, &data)) > 0) {
		pair_send(pair, (struct text){ (const char *)data, (size_t)size });
		is_busy = true;
	}
	pair_run(pair);
	if (pair->answers.size > client->parsed) {
		nghttp2_session_mem_recv(client->session,
		                         (const uint8_t *)pair->answers.data + client->parsed,
		                         pair->answers.size - client->parsed);
		client->parsed = pair->answers.size;
		is_busy = true;
	}
	return is_busy;
}

void h2_client_run(struct h2_client *client)
{
	for (int i = 0; i < ROUNDS_MAX && exchange_bytes(client); i++)
		;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *to, size_t room,
                         uint32_t *flags, nghttp2_data_source *source, void *context)
{
	(void)session;
	(void)id;
	(void)context;
	struct body *body = source->ptr;
	size_t size = body->size - body->sent < room ? body->size - body->sent : room;
	memcpy(to, body->data + body->sent, size);
	body->sent += size;
	if (body->sent == body->size) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		if (!body->is_end)
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
	}
	return (ssize_t)size;
}

static nghttp2_data_provider provider(struct h2_client *client, struct text bytes, bool is_end)
{
	struct body *body = memory_alloc(sizeof(*body) + bytes.size);
	body->next = client->bodies;
	client->bodies = body;
	body->size = bytes.size;
	body->sent = 0;
	body->is_end = is_end;
	if (bytes.size > 0)
		memcpy(body->data, bytes.data, bytes.size);
	return (nghttp2_data_provider){ .source.ptr = body, .read_callback = read_body };
}

static nghttp2_nv field(const char *name, const char *value)
{
	return (nghttp2_nv){ .name = (uint8_t *)name,
		             .namelen = strlen(name),
		             .value = (uint8_t *)value,
		             .valuelen = strlen(value) };
}

int32_t h2_client_request(struct h2_client *client, const struct h2_request *request)
{
	const char *method = request->method ? request->method : request->is_grpc ? "POST" : "GET";
	nghttp2_nv fields[8] = { field(":method", method), field(":path", request->path),
		                 field(":scheme", "http"), field(":authority", "localhost") };
	size_t count = 4;
	if (request->is_grpc) {
		fields[count++] = field("content-type", "application/grpc");
		fields[count++] = field("te", "trailers");
	}
	if (request->grpc_timeout)
		fields[count++] = field("grpc-timeout", request->grpc_timeout);
	bool has_body = request->body.size > 0 || request->is_open;
	int32_t id;
	if (request->body.size == 0 && request->is_open) {
		id = nghttp2_submit_headers(client->session, NGHTTP2_FLAG_NONE, -1, NULL, fields,
		                            count, NULL);
	} else {
		nghttp2_data_provider data;
		if (has_body)
			data = provider(client, request->body, !request->is_open);
		id = nghttp2_submit_request(client->session, NULL, fields, count,
		                            has_body ? &data : NULL, NULL);
	}
	h2_client_run(client);
	return id;
}

void h2_client_send(struct h2_client *client, int32_t id, struct text part, bool is_end)
{
	nghttp2_data_provider data = provider(client, part, is_end);
	nghttp2_submit_data(client->session, is_end ? NGHTTP2_FLAG_END_STREAM : 0, id, &data);
	h2_client_run(client);
}

void h2_client_reset(struct h2_client *client, int32_t id)
{
	nghttp2_submit_rst_stream(client->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
	h2_client_run(client);
}

void h2_client_ping(struct h2_client *client)
{
	nghttp2_submit_ping(client->session, NGHTTP2_FLAG_NONE, NULL);
	h2_client_run(client);
}

void h2_client_open_window(struct h2_client *client, int32_t id, int32_t bytes)
{
	nghttp2_submit_window_update(client->session, NGHTTP2_FLAG_NONE, id, bytes);
	nghttp2_submit_window_update(client->session, NGHTTP2_FLAG_NONE, 0, bytes);
	h2_client_run(client);
}
