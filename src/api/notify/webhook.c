/* webhook.c - a signed message, posted to a URL */
#include "api/notify/webhook.h"

#include <stdio.h>

#include "api/text/digest.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/endpoint.h"

enum { ANSWER_BYTES = 64 << 10 };

bool webhook_url_read(const char *url, struct webhook_url *parts, struct error *error)
{
	struct endpoint endpoint;

	if (!endpoint_read(text_of(url), &endpoint))
		return error_set(error, ERROR_INVALID,
		                 "a webhook is a URL such as https://example.org/path, without "
		                 "user and password");
	bool has_path = text_starts(endpoint.target, "/");
	if (endpoint.host.size >= sizeof(parts->host) ||
	    endpoint.target.size + 2 > sizeof(parts->target))
		return error_set(error, ERROR_INVALID, "the URL of the webhook is too long");
	*parts = (struct webhook_url){ .tls = endpoint.is_secure, .port = endpoint.port };
	snprintf(parts->host, sizeof(parts->host), "%.*s", (int)endpoint.host.size,
	         endpoint.host.data);
	snprintf(parts->target, sizeof(parts->target), "%s%.*s", has_path ? "" : "/",
	         (int)endpoint.target.size, endpoint.target.data);
	return true;
}

/* `time`: its header, empty unless it is signed too. */
static void write_signature(struct buffer *header, struct buffer *time,
                            const struct webhook *webhook)
{
	unsigned char digest[DIGEST_SIZE];
	char hex[DIGEST_HEX_SIZE];
	struct buffer timed = { 0 };
	struct text body = webhook->body;

	if (webhook->is_timed) {
		long long now_s = (long long)(clock_unix_ms() / 1000);
		buffer_print(time, "X-GPU-Scheduler-Time: %lld", now_s);
		buffer_print(&timed, "%lld.", now_s);
		buffer_bytes(&timed, body.data, body.size);
		body = (struct text){ timed.data, timed.size };
	}
	if (webhook->secret && webhook->secret[0]) {
		digest_hmac(text_of(webhook->secret), body, digest);
		digest_hex(digest, hex);
		buffer_print(header, "X-GPU-Scheduler-Signature: sha256=%s", hex);
	}
	buffer_free(&timed);
}

static bool is_public(void *context, const struct sockaddr *address)
{
	(void)context;
	return !fetch_is_private(address);
}

/* Posts the body with these headers; the answer's status, 0 with a reason if there is none. */
static int post(const struct webhook *webhook, const struct webhook_url *url,
                const char *const *headers, struct error *error)
{
	struct fetch_request request = {
		.method = "POST",
		.url = webhook->url,
		.server = url->host,
		.headers = headers,
		.body = webhook->body.data,
		.body_size = webhook->body.size,
		.user_agent = "gpu-scheduler",
		.ca_file = webhook->ca_path,
		.connect_ms = webhook->timeout_ms,
		.total_ms = webhook->timeout_ms,
		.answer_bytes = ANSWER_BYTES,
		/* A proxy would connect to addresses that are not allowed here. */
		.is_direct = webhook->only_public,
		.end_ms = webhook->end_ms,
		.allows = webhook->only_public ? is_public : NULL,
	};
	struct fetcher *fetcher = fetcher_new();
	struct fetch_answer answer = { 0 };

	/* The status is enough, even if the rest of the answer is too large or does not come. */
	bool is_answered = fetcher_ask(fetcher, &request, &answer, error) || answer.status > 0;
	int status = is_answered ? answer.status : 0;
	fetch_answer_free(&answer);
	fetcher_free(fetcher);
	return status;
}

bool webhook_post(const struct webhook *webhook, struct error *error)
{
	struct webhook_url url;
	struct buffer event = { 0 }, delivery = { 0 }, signature = { 0 }, time = { 0 };

	if (!webhook_url_read(webhook->url, &url, error))
		return false;
	buffer_print(&event, "X-GPU-Scheduler-Event: %s", webhook->event);
	buffer_print(&delivery, "X-GPU-Scheduler-Delivery: %lld", (long long)webhook->number);
	write_signature(&signature, &time, webhook);
	const char *headers[6] = { "Content-Type: application/json", event.data, delivery.data };
	int count = 3;
	if (time.size > 0)
		headers[count++] = time.data;
	if (signature.size > 0)
		headers[count++] = signature.data;
	int status = post(webhook, &url, headers, error);
	buffer_free(&event);
	buffer_free(&delivery);
	buffer_free(&signature);
	buffer_free(&time);
	if (status == 0)
		return false;
	error_clear(error);
	if (status >= 200 && status < 300)
		return true;
	return error_set(error, status == 410 ? ERROR_NOT_FOUND : ERROR_UNAVAILABLE,
	                 "%.100s answered with %d", url.host, status);
}
