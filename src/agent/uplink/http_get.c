/* http_get.c - one page from a server on this machine */
#include "agent/uplink/http_get.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "fetch/fetch.h"

#define PAGE_BYTES ((size_t)4 << 20)

/* libcurl waits in a thread of its own, so that a server that is slow or silent delays nothing
 * else. The thread touches only `url`, `key`, `most_ms`, `end_ms` and, before it signals, `answer`.
 */
struct http_get {
	uv_thread_t thread;
	uv_async_t ended;
	struct buffer url, key; /* `key`: as a header; empty: none */
	int64_t most_ms;
	fetch_end_ms end_ms;
	struct fetch_answer answer;
	bool is_cancelled;
	void (*done)(void *context, int status, const char *body);
	void *context;
};

static void http_get_closed(uv_handle_t *handle)
{
	struct http_get *get = handle->data;

	buffer_free(&get->url);
	if (get->key.data)
		explicit_bzero(get->key.data, get->key.capacity);
	buffer_free(&get->key);
	fetch_answer_free(&get->answer);
	free(get);
}

void http_get_cancel(struct http_get *get)
{
	get->is_cancelled = true;
	atomic_store(&get->end_ms, 1);
}

/* In the loop's thread, after the other has nothing more to do. */
static void http_get_ended(uv_async_t *async)
{
	struct http_get *get = async->data;

	uv_thread_join(&get->thread);
	buffer_text(&get->answer.body, "");
	if (!get->is_cancelled)
		get->done(get->context, get->answer.status, get->answer.body.data);
	uv_close((uv_handle_t *)async, http_get_closed);
}

/* Whatever a name resolves to, a slot is on this machine. */
static bool is_loopback(void *context, const struct sockaddr *address)
{
	(void)context;
	if (address->sa_family == AF_INET) {
		const struct sockaddr_in *v4 = (const void *)address;
		return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	}
	const struct sockaddr_in6 *v6 = (const void *)address;
	return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static void http_get_run(void *context)
{
	struct http_get *get = context;
	struct error error = { 0 };
	const char *const headers[] = { get->key.data, NULL };
	const struct fetch_request request = { .url = get->url.data,
		                               .headers = get->key.data ? headers : NULL,
		                               .server = get->url.data,
		                               .user_agent = "gpu-agent",
		                               .connect_ms = get->most_ms,
		                               .total_ms = get->most_ms,
		                               .answer_bytes = PAGE_BYTES,
		                               .is_direct = true,
		                               .end_ms = &get->end_ms,
		                               .allows = is_loopback };
	struct fetcher *fetcher = fetcher_new();

	/* Half an answer is none: whoever asks wants to know whether the server works. */
	if (!fetcher_ask(fetcher, &request, &get->answer, &error))
		fetch_answer_free(&get->answer);
	fetcher_free(fetcher);
	uv_async_send(&get->ended);
}

struct http_get *http_get_start(uv_loop_t *loop, int64_t port, const char *path, const char *key,
                                int64_t most_ms,
                                void (*done)(void *context, int status, const char *body),
                                void *context)
{
	struct http_get *get = NEW(struct http_get);

	get->done = done;
	get->context = context;
	get->most_ms = most_ms;
	get->ended.data = get;
	/* libcurl knows localhost as 127.0.0.1 and ::1, and tries both. */
	buffer_print(&get->url, "http://localhost:%lld%s", (long long)port, path);
	if (key)
		buffer_print(&get->key, "x-slot-key: %s", key);
	uv_async_init(loop, &get->ended, http_get_ended);
	if (uv_thread_create(&get->thread, http_get_run, get) != 0)
		panic("a thread for a health check could not be started");
	return get;
}
