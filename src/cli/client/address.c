/* address.c - where a service is: its URL taken apart */
#include "cli/client/address.h"

#include <stdio.h>
#include <string.h>

#include "base/endpoint.h"

/* Copies with a NUL to an array that has room for it. */
static void text_copy(struct text text, char *out)
{
	memcpy(out, text.data, text.size);
	out[text.size] = '\0';
}

static bool address_refuse(const char *url, struct error *error)
{
	return error_set(error, ERROR_INVALID,
	                 "'%.120s' is not where a service can be: write http://HOST:PORT or "
	                 "https://HOST",
	                 url);
}

bool address_read(const char *url, struct address *address, struct error *error)
{
	struct endpoint endpoint;

	if (!endpoint_read(text_of(url), &endpoint) || memchr(url, '?', strlen(url)))
		return address_refuse(url, error);
	struct text prefix = endpoint.target;
	while (prefix.size > 0 && prefix.data[prefix.size - 1] == '/')
		prefix.size--;
	if (prefix.size >= sizeof(address->prefix))
		return address_refuse(url, error);
	*address = (struct address){ .secure = endpoint.is_secure };
	text_copy(endpoint.host, address->host);
	text_copy(endpoint.authority, address->authority);
	text_copy(prefix, address->prefix);
	snprintf(address->port, sizeof(address->port), "%d", (int)endpoint.port);
	return true;
}
