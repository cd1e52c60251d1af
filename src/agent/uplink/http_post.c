/* http_post.c - one request to a scheduler, answered before it returns */
#include "agent/uplink/http_post.h"

#include <string.h>

#include "base/endpoint.h"
#include "fetch/fetch.h"

enum { CONNECT_MS = 10000, ANSWER_MS = 60000, ANSWER_BYTES = 1 << 20 };

static bool check_url(const char *url, struct error *error)
{
	struct endpoint endpoint;

	return endpoint_read(text_of(url), &endpoint) ||
	       error_set(error, ERROR_INVALID,
	                 "'%.200s' is not the URL of a scheduler: write https://HOST:PORT", url);
}

bool http_post(const struct http_post *post, int *status, struct buffer *answer,
               struct error *error)
{
	struct buffer url = { 0 }, authorization = { 0 };
	const char *headers[3] = { "Content-Type: application/json" };

	if (!check_url(post->url, error))
		return false;
	size_t size = strlen(post->url);
	while (size > 0 && post->url[size - 1] == '/')
		size--;
	buffer_print(&url, "%.*s%s", (int)size, post->url, post->path);
	if (post->token) {
		buffer_print(&authorization, "Authorization: Bearer %s", post->token);
		headers[1] = authorization.data;
	}
	struct fetch_answer got = { 0 };
	struct fetcher *fetcher = fetcher_new();
	bool good = fetcher_ask(fetcher,
	                        &(struct fetch_request){ .method = "POST",
	                                                 .url = url.data,
	                                                 .server = post->url,
	                                                 .headers = headers,
	                                                 .body = post->body.data,
	                                                 .body_size = post->body.size,
	                                                 .user_agent = "gpu-agent",
	                                                 .ca_file = post->ca_file,
	                                                 .connect_ms = CONNECT_MS,
	                                                 .total_ms = ANSWER_MS,
	                                                 .answer_bytes = ANSWER_BYTES },
	                        &got, error);
	*status = got.status;
	if (good)
		buffer_bytes(answer, got.body.data, got.body.size);
	if (authorization.data)
		explicit_bzero(authorization.data, authorization.size);
	fetch_answer_free(&got);
	fetcher_free(fetcher);
	buffer_free(&authorization);
	buffer_free(&url);
	return good;
}
