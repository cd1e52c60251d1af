/* client_http2.c - calls as streams of HTTP/2, on nghttp2 */
#include <stdlib.h>
#include <string.h>

#include "apiserver/client_local.h"
#include "base/memory.h"
#include "base/text.h"

/* What a server may send before we read it: lists and watches are large. */
#define WINDOW_BYTES (8 << 20)
#define BODY_BYTES_MAX ((size_t)64 << 20)

static nghttp2_nv client_header(const char *name, const char *value)
{
	return (nghttp2_nv){ (uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value),
		             NGHTTP2_NV_FLAG_NONE };
}

static ssize_t client_give(nghttp2_session *session, int32_t stream, uint8_t *data, size_t size,
                           uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct client_call *call = source->ptr;
	size_t left = strlen(call->request.body) - call->sent;

	(void)session, (void)stream, (void)user;
	if (size >= left) {
		size = left;
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	}
	memcpy(data, call->request.body + call->sent, size);
	call->sent += size;
	return (ssize_t)size;
}

static int client_took_header(nghttp2_session *session, const nghttp2_frame *frame,
                              const uint8_t *name, size_t name_size, const uint8_t *value,
                              size_t value_size, uint8_t flags, void *user)
{
	struct client_call *call =
	    nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	struct text key = { (const char *)name, name_size };
	char text[16] = "";

	(void)flags, (void)user;
	if (!call || value_size >= sizeof(text))
		return 0;
	memcpy(text, value, value_size);
	if (text_is(key, ":status"))
		call->status = atoi(text);
	else if (text_is(key, "retry-after"))
		call->retry_after_s = atoll(text);
	return 0;
}

static int client_took_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct client_connection *connection = user;
	struct client_call *call;

	if (frame->hd.type == NGHTTP2_GOAWAY)
		connection->leaving = true;
	if (frame->hd.type != NGHTTP2_HEADERS ||
	    !(call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id)))
		return 0;
	call->heard_ms = connection->heard_ms;
	if (call->status >= 200 && !call->given_up && call->request.head)
		call->request.head(call->request.context, call->status);
	return 0;
}

static int client_took_data(nghttp2_session *session, uint8_t flags, int32_t stream,
                            const uint8_t *data, size_t size, void *user)
{
	struct client_call *call = nghttp2_session_get_stream_user_data(session, stream);
	const struct client_connection *connection = user;

	(void)flags;
	if (!call || call->given_up)
		return 0;
	call->heard_ms = connection->heard_ms;
	if (call->request.data && call->status == 200) {
		if (!call->request.data(call->request.context, (const char *)data, size))
			nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream,
			                          NGHTTP2_CANCEL);
	} else if (call->body.size + size <= BODY_BYTES_MAX) {
		buffer_bytes(&call->body, data, size);
	} else {
		nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
		call->status = 0;
	}
	return 0;
}

static int client_stream_closed(nghttp2_session *session, int32_t stream, uint32_t code, void *user)
{
	struct client_call *call = nghttp2_session_get_stream_user_data(session, stream);
	struct client_connection *connection = user;

	if (!call)
		return 0;
	nghttp2_session_set_stream_user_data(session, stream, NULL);
	connection->calls--;
	call->connection = NULL;
	call->stream = 0;
	if (code == NGHTTP2_REFUSED_STREAM && !call->given_up) {
		call->sent = 0;
		call->status = 0;
		return 0;
	}
	/* A body that was cut off is no answer. */
	if (code != NGHTTP2_NO_ERROR && !call->request.data)
		call->status = 0;
	client_end_call(call, code == NGHTTP2_NO_ERROR ? "the answer ended"
	                                               : nghttp2_http2_strerror(code));
	return 0;
}

bool client_http2_begin(struct client_connection *connection)
{
	nghttp2_session_callbacks *callbacks = NULL;
	nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES },
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
	};

	if (nghttp2_session_callbacks_new(&callbacks) != 0)
		return false;
	nghttp2_session_callbacks_set_on_header_callback(callbacks, client_took_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, client_took_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, client_took_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, client_stream_closed);
	int made = nghttp2_session_client_new(&connection->session, callbacks, connection);
	nghttp2_session_callbacks_del(callbacks);
	if (made != 0)
		return false;
	nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, settings, 2);
	nghttp2_session_set_local_window_size(connection->session, NGHTTP2_FLAG_NONE, 0,
	                                      WINDOW_BYTES);
	return true;
}

bool client_http2_submit(struct client_connection *connection, struct client_call *call)
{
	const struct client *client = connection->client;
	nghttp2_data_provider provider = { .source.ptr = call, .read_callback = client_give };
	struct buffer authority = { 0 }, path = { 0 }, token = { 0 };
	uint32_t most = nghttp2_session_get_remote_settings(
	    connection->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);

	if (connection->leaving || connection->calls >= most)
		return false;
	buffer_print(&authority, strchr(client->host, ':') ? "[%s]:%s" : "%s:%s", client->host,
	             client->port);
	buffer_print(&path, "%s%s", client->prefix, call->request.path);
	buffer_text(&token, "");
	if (client->settings.authorize)
		client->settings.authorize(client->settings.context, &token);
	const char *type = call->request.content_type;
	nghttp2_nv headers[] = {
		client_header(":method", call->request.method),
		client_header(":scheme", client->tls ? "https" : "http"),
		client_header(":authority", authority.data),
		client_header(":path", path.data),
		client_header("accept", "application/json"),
		client_header("user-agent", client->user_agent),
		{ 0 },
		{ 0 },
	};
	size_t count = 6;
	if (call->request.body)
		headers[count++] = client_header("content-type", type ? type : "application/json");
	if (token.size > 0) {
		headers[count] = client_header("authorization", token.data);
		headers[count++].flags = NGHTTP2_NV_FLAG_NO_INDEX;
	}
	int32_t stream = nghttp2_submit_request(connection->session, NULL, headers, count,
	                                        call->request.body ? &provider : NULL, call);
	if (token.data)
		explicit_bzero(token.data, token.size);
	buffer_free(&token);
	buffer_free(&path);
	buffer_free(&authority);
	if (stream < 0)
		return false;
	call->connection = connection;
	call->stream = stream;
	connection->calls++;
	return true;
}

void client_http2_reset(struct client_call *call)
{
	struct client_connection *connection = call->connection;

	nghttp2_session_set_stream_user_data(connection->session, call->stream, NULL);
	nghttp2_submit_rst_stream(connection->session, NGHTTP2_FLAG_NONE, call->stream,
	                          NGHTTP2_CANCEL);
	connection->calls--;
	call->connection = NULL;
}

void client_http2_ping(struct client_connection *connection)
{
	nghttp2_submit_ping(connection->session, NGHTTP2_FLAG_NONE, NULL);
}

bool client_http2_receive(struct client_connection *connection, const void *data, size_t size,
                          struct error *error)
{
	ssize_t taken = nghttp2_session_mem_recv(connection->session, data, size);

	if (taken < 0)
		return error_set(error, ERROR_UNAVAILABLE,
		                 "what the API server sent is not HTTP/2: %s",
		                 nghttp2_strerror((int)taken));
	if (connection->client)
		connection->client->dirty = true;
	return true;
}

bool client_http2_flush(struct client_connection *connection, struct error *error)
{
	const uint8_t *data = NULL;
	ssize_t size;

	while (connection->client &&
	       (size = nghttp2_session_mem_send(connection->session, &data)) > 0) {
		if (!connection->client->tls)
			client_write(connection, data, (size_t)size);
		else if (!client_tls_send(connection, data, (size_t)size, error))
			return false;
	}
	if (!connection->client)
		return true;
	if (!nghttp2_session_want_read(connection->session) &&
	    !nghttp2_session_want_write(connection->session))
		return error_set(error, ERROR_UNAVAILABLE, "the API server said goodbye");
	return true;
}
