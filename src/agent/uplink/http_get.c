/* http_get.c - one page from a server on this machine */
#include "agent/uplink/http_get.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"

#define PAGE_BYTES ((size_t)4 << 20)

struct http_get {
	uv_tcp_t socket;
	uv_timer_t timer;
	uv_connect_t connect;
	uv_write_t write;
	int handles;
	bool over;
	struct buffer request, page;
	void (*done)(void *context, int status, const char *body);
	void *context;
};

static void closed(uv_handle_t *handle)
{
	struct http_get *get = handle->data;

	if (--get->handles > 0)
		return;
	buffer_free(&get->request);
	buffer_free(&get->page);
	free(get);
}

void http_get_cancel(struct http_get *get)
{
	if (get->over)
		return;
	get->over = true;
	uv_close((uv_handle_t *)&get->socket, closed);
	uv_close((uv_handle_t *)&get->timer, closed);
}

static void finish(struct http_get *get, bool answered)
{
	int status = 0;
	const char *body = NULL;

	if (get->over)
		return;
	buffer_text(&get->page, "");
	if (answered && sscanf(get->page.data, "HTTP/%*d.%*d %d", &status) == 1)
		body = strstr(get->page.data, "\r\n\r\n");
	get->done(get->context, body ? status : 0, body ? body + 4 : "");
	http_get_cancel(get);
}

static void timed_out(uv_timer_t *timer)
{
	finish(timer->data, false);
}

static void allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	static char data[65536];

	(void)handle, (void)suggested;
	*buffer = uv_buf_init(data, sizeof(data));
}

/* HTTP/1.0: the page ends with the connection. */
static void received(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
	struct http_get *get = stream->data;

	if (size < 0)
		finish(get, size == UV_EOF);
	else
		buffer_bytes(&get->page, buffer->base, (size_t)size);
	if (get->page.size > PAGE_BYTES)
		finish(get, true);
}

static void written(uv_write_t *request, int status)
{
	if (status < 0 && status != UV_ECANCELED)
		finish(request->data, false);
}

static void connected(uv_connect_t *request, int status)
{
	struct http_get *get = request->data;
	uv_buf_t bytes = uv_buf_init(get->request.data, (unsigned)get->request.size);

	if (status == UV_ECANCELED)
		return;
	if (status < 0 ||
	    uv_write(&get->write, (uv_stream_t *)&get->socket, &bytes, 1, written) < 0 ||
	    uv_read_start((uv_stream_t *)&get->socket, allocate, received) < 0)
		finish(get, false);
}

struct http_get *http_get_start(uv_loop_t *loop, int64_t port, const char *path, int64_t most_ms,
                                void (*done)(void *context, int status, const char *body),
                                void *context)
{
	struct http_get *get = NEW(struct http_get);
	struct sockaddr_in address;

	get->done = done;
	get->context = context;
	get->handles = 2;
	uv_tcp_init(loop, &get->socket);
	uv_timer_init(loop, &get->timer);
	get->socket.data = get->timer.data = get->connect.data = get->write.data = get;
	buffer_print(&get->request, "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", path);
	uv_ip4_addr("127.0.0.1", (int)port, &address);
	uv_timer_start(&get->timer, timed_out, (uint64_t)most_ms, 0);
	/* Where that fails at once, the timer tells it. */
	uv_tcp_connect(&get->connect, &get->socket, (const struct sockaddr *)&address, connected);
	return get;
}
