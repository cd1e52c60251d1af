/* endpoint.c - the URL of a server, taken apart: http[s]://HOST[:PORT][/PATH][?QUERY] */
#include "base/endpoint.h"

#include "base/number_text.h"

enum { HOST_MAX = 253, HTTP_PORT = 80, HTTPS_PORT = 443 };

/* Nothing that could end a line of a request, or start another part of it. */
static bool endpoint_is_plain(struct text text)
{
	for (size_t i = 0; i < text.size; i++)
		if (text.data[i] <= ' ' || text.data[i] > '~' ||
		    strchr("\"#<>\\^`{|}", text.data[i]))
			return false;
	return true;
}

static bool take_scheme(struct text *url, bool *is_secure)
{
	*is_secure = text_starts(*url, "https://");
	if (!*is_secure && !text_starts(*url, "http://"))
		return false;
	*url = text_from(*url, strlen(*is_secure ? "https://" : "http://"));
	return true;
}

/* The bytes before the first of these, or all. */
static size_t span_before(struct text text, const char *ends)
{
	size_t size = 0;

	while (size < text.size && !strchr(ends, text.data[size]))
		size++;
	return size;
}

static bool read_authority(struct endpoint *endpoint)
{
	struct text rest = endpoint->authority;

	if (memchr(rest.data, '@', rest.size))
		return false;
	endpoint->is_bracketed = text_starts(rest, "[");
	if (endpoint->is_bracketed)
		rest = text_from(rest, 1);
	endpoint->host =
	    (struct text){ rest.data, span_before(rest, endpoint->is_bracketed ? "]" : ":") };
	rest = text_from(rest, endpoint->host.size);
	if (endpoint->is_bracketed) {
		if (rest.size == 0)
			return false;
		rest = text_from(rest, 1);
	}
	if (endpoint->host.size == 0 || endpoint->host.size > HOST_MAX)
		return false;
	endpoint->has_port = rest.size > 0;
	return !endpoint->has_port ||
	       (text_starts(rest, ":") && number_read_port(text_from(rest, 1), &endpoint->port));
}

bool endpoint_read(struct text url, struct endpoint *endpoint)
{
	struct endpoint parts = { 0 };
	struct text rest = url;

	if (!endpoint_is_plain(url) || !take_scheme(&rest, &parts.is_secure))
		return false;
	parts.port = parts.is_secure ? HTTPS_PORT : HTTP_PORT;
	parts.authority = (struct text){ rest.data, span_before(rest, "/?") };
	parts.target = text_from(rest, parts.authority.size);
	if (!read_authority(&parts))
		return false;
	*endpoint = parts;
	return true;
}

bool endpoint_host_is_name(struct text host)
{
	static const char letters[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";

	for (size_t i = 0; i < host.size; i++)
		if (!host.data[i] || !strchr(letters, host.data[i]))
			return false;
	return host.size > 0 && host.size <= HOST_MAX && *host.data != '-' && *host.data != '.';
}
