/* webhook.c - a signed message, posted to a URL */
#include "api/webhook.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/dial.h"
#include "api/digest.h"

/* Nothing that could end a line of the request, or begin another part of it. */
static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text > '~' || strchr("\"<>\\^`{|}", *text))
			return false;
	return true;
}

static bool read_host(const char *from, size_t size, struct webhook_url *parts)
{
	const char *port = NULL;

	if (size == 0 || memchr(from, '@', size))
		return false;
	if (*from == '[') {
		const char *end = memchr(from, ']', size);
		if (!end || (size_t)(end - from) > sizeof(parts->host) - 1)
			return false;
		snprintf(parts->host, sizeof(parts->host), "%.*s", (int)(end - from - 1), from + 1);
		port = (size_t)(end + 1 - from) < size ? end + 1 : NULL;
		if (port && *port != ':')
			return false;
	} else {
		port = memchr(from, ':', size);
		size_t host = port ? (size_t)(port - from) : size;
		if (host == 0 || host > sizeof(parts->host) - 1)
			return false;
		snprintf(parts->host, sizeof(parts->host), "%.*s", (int)host, from);
	}
	if (!port)
		return true;
	char *end = NULL;
	parts->port = strtoll(port + 1, &end, 10);
	return end == from + size && parts->port >= 1 && parts->port <= 65535 && port[1] != '+' &&
	       port[1] != '-';
}

bool webhook_url_read(const char *url, struct webhook_url *parts, struct error *error)
{
	*parts = (struct webhook_url){ .tls = strncmp(url, "https://", 8) == 0 };
	const char *from = url + (parts->tls ? 8 : 7);

	parts->port = parts->tls ? 443 : 80;
	if ((!parts->tls && strncmp(url, "http://", 7) != 0) || !is_plain(url) || strchr(url, '#'))
		return error_set(error, ERROR_INVALID,
		                 "a webhook is a URL such as https://example.org/path");
	size_t size = strcspn(from, "/?");
	if (!read_host(from, size, parts) || strlen(from + size) >= sizeof(parts->target) - 1)
		return error_set(error, ERROR_INVALID,
		                 "a webhook is a URL with a host, without user and password");
	snprintf(parts->target, sizeof(parts->target), "%s%s", from[size] == '/' ? "" : "/",
	         from + size);
	return true;
}

static void write_request(struct buffer *request, const struct webhook *webhook,
                          const struct webhook_url *url)
{
	bool is_ipv6 = strchr(url->host, ':') != NULL;

	buffer_print(request, "POST %s HTTP/1.1\r\nHost: %s%s%s:%lld\r\n", url->target,
	             is_ipv6 ? "[" : "", url->host, is_ipv6 ? "]" : "", (long long)url->port);
	buffer_print(request,
	             "User-Agent: gpu-scheduler\r\nContent-Type: application/json\r\n"
	             "Content-Length: %zu\r\nConnection: close\r\n"
	             "X-GPU-Scheduler-Event: %s\r\nX-GPU-Scheduler-Delivery: %lld\r\n",
	             webhook->body.size, webhook->event, (long long)webhook->number);
	if (webhook->secret && webhook->secret[0]) {
		unsigned char digest[DIGEST_SIZE];
		char hex[DIGEST_HEX_SIZE];
		digest_hmac(text_of(webhook->secret), webhook->body, digest);
		digest_hex(digest, hex);
		buffer_print(request, "X-GPU-Scheduler-Signature: sha256=%s\r\n", hex);
	}
	buffer_text(request, "\r\n");
	buffer_bytes(request, webhook->body.data, webhook->body.size);
}

bool webhook_post(const struct webhook *webhook, struct error *error)
{
	struct webhook_url url;
	struct buffer request = { 0 };
	char line[512];
	int status = 0;

	if (!webhook_url_read(webhook->url, &url, error))
		return false;
	struct dial *dial = dial_open(&(struct dial_options){ .host = url.host,
	                                                      .port = url.port,
	                                                      .tls = url.tls,
	                                                      .ca_path = webhook->ca_path,
	                                                      .only_public = webhook->only_public,
	                                                      .timeout_ms = webhook->timeout_ms,
	                                                      .end_ms = webhook->end_ms },
	                              error);
	if (!dial)
		return false;
	write_request(&request, webhook, &url);
	bool ok = dial_write(dial, (struct text){ request.data, request.size }, error) &&
	          dial_line(dial, line, sizeof(line), error);
	buffer_free(&request);
	dial_close(dial);
	if (!ok)
		return false;
	if (strncmp(line, "HTTP/1.", 7) == 0 && strlen(line) >= 12)
		status = (int)strtol(line + 9, NULL, 10);
	if (status >= 200 && status < 300)
		return true;
	return error_set(error, status == 410 ? ERROR_NOT_FOUND : ERROR_UNAVAILABLE,
	                 "%.100s answered with %d", url.host, status);
}
