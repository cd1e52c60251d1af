/* uplink_http2.c - a gRPC call that stays open, on nghttp2 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "base/log.h"
#include "uplink/uplink_local.h"

#define MESSAGE_BYTES ((size_t)64 << 20)
#define WINDOW_BYTES (4 << 20)

static nghttp2_nv header(const char *name, const char *value)
{
	return (nghttp2_nv){ (uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value),
		             NGHTTP2_NV_FLAG_NONE };
}

static ssize_t give_data(nghttp2_session *session, int32_t stream, uint8_t *data, size_t size,
                         uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct uplink_connection *connection = source->ptr;
	size_t left = connection->waiting.size - connection->waiting_from;

	(void)session, (void)stream, (void)flags, (void)user;
	if (left == 0) {
		connection->deferred = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	if (size > left)
		size = left;
	memcpy(data, connection->waiting.data + connection->waiting_from, size);
	connection->waiting_from += size;
	if (connection->waiting_from == connection->waiting.size) {
		connection->waiting_from = 0;
		buffer_clear(&connection->waiting);
	}
	return (ssize_t)size;
}

static void copy_text(char *to, size_t to_size, const uint8_t *from, size_t size)
{
	if (size >= to_size)
		size = to_size - 1;
	memcpy(to, from, size);
	to[size] = '\0';
}

static int took_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                       size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                       void *user)
{
	struct uplink_connection *connection = ((struct uplink *)user)->connection;
	struct text key = { (const char *)name, name_size };
	char text[16];

	(void)session, (void)frame, (void)flags;
	if (text_is(key, ":status")) {
		copy_text(text, sizeof(text), value, value_size);
		connection->http_status = atoll(text);
	} else if (text_is(key, "grpc-status")) {
		copy_text(connection->grpc_status, sizeof(connection->grpc_status), value,
		          value_size);
	} else if (text_is(key, "grpc-message")) {
		copy_text(connection->grpc_message, sizeof(connection->grpc_message), value,
		          value_size);
	}
	return 0;
}

static void uplink_http2_take_message(struct uplink *link, struct text bytes)
{
	link->settings.received(link->settings.context, bytes);
}

static int took_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                     size_t size, void *user)
{
	struct uplink *link = user;
	struct uplink_connection *connection = link->connection;
	struct text bytes = { (const char *)data, size }, message;
	bool compressed = false;

	(void)session, (void)flags, (void)stream;
	while (connection->link) {
		switch (grpc_frame_next(&connection->frames, &bytes, MESSAGE_BYTES, &message,
		                        &compressed)) {
		case GRPC_FRAME_MORE:
			return 0;
		case GRPC_FRAME_MESSAGE:
			if (compressed)
				return NGHTTP2_ERR_CALLBACK_FAILURE;
			uplink_http2_take_message(link, message);
			break;
		default:
			return NGHTTP2_ERR_CALLBACK_FAILURE;
		}
	}
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* The beats hold an idle connection open, so one that is welcomed counts as good. When the server
 * ends its half of the stream there is nothing left to say, although our half is open. */
static int took_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct uplink *link = user;
	bool ends = (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
	            (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;

	(void)session;
	if (frame->hd.type == NGHTTP2_HEADERS && link->connection->http_status == 200 &&
	    !link->connection->grpc_status[0]) {
		link->wait_ms = 0;
		log_at(LOG_INFO, "connected to a scheduler", LOG_TEXT("host", link->host),
		       LOG_TEXT("port", link->port));
	}
	if (ends && frame->hd.stream_id == link->connection->stream)
		link->connection->stream = -1;
	return 0;
}

static int stream_closed(nghttp2_session *session, int32_t stream, uint32_t code, void *user)
{
	struct uplink *link = user;

	(void)session;
	(void)code;
	if (stream == link->connection->stream)
		link->connection->stream = -1;
	return 0;
}

static nghttp2_session *new_session(struct uplink *link)
{
	nghttp2_session_callbacks *callbacks = NULL;
	nghttp2_session *session = NULL;

	if (nghttp2_session_callbacks_new(&callbacks) != 0)
		return NULL;
	nghttp2_session_callbacks_set_on_header_callback(callbacks, took_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, took_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, took_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, stream_closed);
	nghttp2_session_client_new(&session, callbacks, link);
	nghttp2_session_callbacks_del(callbacks);
	return session;
}

/* "Bearer ..." as it is in the file now, so that a token can be replaced; empty: none. */
static void read_token(const struct uplink *link, struct buffer *value)
{
	char text[8192] = "";

	if (!link->settings.token_file)
		return;
	FILE *file = fopen(link->settings.token_file, "re");
	size_t size = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	text[size] = '\0';
	text[strcspn(text, " \t\r\n")] = '\0';
	if (text[0])
		buffer_print(value, "Bearer %s", text);
	else
		log_at(LOG_ERROR, "the token cannot be read",
		       LOG_TEXT("file", link->settings.token_file));
	if (file)
		fclose(file);
	OPENSSL_cleanse(text, sizeof(text));
}

bool uplink_http2_begin(struct uplink *link)
{
	struct uplink_connection *connection = link->connection;
	nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES },
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
	};
	nghttp2_data_provider provider = { .source.ptr = connection, .read_callback = give_data };
	struct buffer authority = { 0 }, token = { 0 };

	connection->session = new_session(link);
	if (!connection->session)
		return false;
	buffer_print(&authority, strchr(link->host, ':') ? "[%s]:%s" : "%s:%s", link->host,
	             link->port);
	read_token(link, &token);
	nghttp2_nv headers[] = {
		header(":method", "POST"),
		header(":scheme", link->tls ? "https" : "http"),
		header(":authority", authority.data),
		header(":path", link->settings.path),
		header("content-type", "application/grpc"),
		header("te", "trailers"),
		header("user-agent", link->settings.user_agent),
		header("authorization", token.size > 0 ? token.data : ""),
	};
	size_t count = sizeof(headers) / sizeof(*headers) - (token.size > 0 ? 0 : 1);
	nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, settings, 2);
	nghttp2_session_set_local_window_size(connection->session, NGHTTP2_FLAG_NONE, 0,
	                                      WINDOW_BYTES);
	connection->stream =
	    nghttp2_submit_request(connection->session, NULL, headers, count, &provider, NULL);
	buffer_free(&authority);
	buffer_free(&token);
	return connection->stream > 0;
}

static bool explain_end(const struct uplink_connection *connection, struct error *error)
{
	if (connection->grpc_status[0])
		return error_set(error, ERROR_UNAVAILABLE, "the scheduler ended the call: %s (%s)",
		                 connection->grpc_message, connection->grpc_status);
	return error_set(error, ERROR_UNAVAILABLE, "the scheduler answered with HTTP status %lld",
	                 (long long)connection->http_status);
}

bool uplink_http2_receive(struct uplink *link, const void *data, size_t size, struct error *error)
{
	struct uplink_connection *connection = link->connection;
	ssize_t taken = nghttp2_session_mem_recv(connection->session, data, size);

	if (connection->link != link)
		return true; /* given up by who was told; nothing is left to say */
	if (taken < 0)
		return error_set(error, ERROR_UNAVAILABLE,
		                 "what the scheduler sent is not HTTP/2: %s",
		                 nghttp2_strerror((int)taken));
	if (connection->stream < 0)
		return explain_end(connection, error);
	uplink_touch(link);
	return true;
}

bool uplink_http2_flush(struct uplink *link, struct error *error)
{
	const uint8_t *data = NULL;
	ssize_t size;

	while ((size = nghttp2_session_mem_send(link->connection->session, &data)) > 0) {
		if (!link->tls)
			uplink_write(link, data, (size_t)size);
		else if (!uplink_tls_send(link, data, (size_t)size, error))
			return false;
	}
	if (size < 0)
		return error_set(error, ERROR_UNAVAILABLE, "HTTP/2 failed: %s",
		                 nghttp2_strerror((int)size));
	return true;
}

void uplink_http2_end(struct uplink_connection *connection)
{
	if (connection->session)
		nghttp2_session_del(connection->session);
	connection->session = NULL;
}

void uplink_send(struct uplink *link, struct text message)
{
	struct uplink_connection *connection = link->connection;
	char prefix[GRPC_FRAME_PREFIX];

	if (link->stage != UPLINK_OPEN)
		return;
	grpc_frame_prefix(prefix, message.size, false);
	buffer_bytes(&connection->waiting, prefix, sizeof(prefix));
	buffer_bytes(&connection->waiting, message.data, message.size);
	if (connection->deferred) {
		connection->deferred = false;
		nghttp2_session_resume_data(connection->session, connection->stream);
	}
	uplink_touch(link);
}

size_t uplink_waiting(const struct uplink *link)
{
	const struct uplink_connection *connection = link->connection;

	if (link->stage != UPLINK_OPEN)
		return 0;
	return connection->waiting.size - connection->waiting_from +
	       uv_stream_get_write_queue_size((const uv_stream_t *)&connection->socket);
}
