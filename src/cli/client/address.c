/* address.c - where a service is: its URL taken apart */
#include "cli/client/address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool refuse(const char *url, struct error *error)
{
	return error_set(error, ERROR_INVALID,
	                 "'%.120s' is not where a service can be: write http://HOST:PORT or "
	                 "https://HOST",
	                 url);
}

/* The host and, behind its colon, the port. */
static bool read_authority(const char *text, size_t size, struct address *address)
{
	const char *end = text + size;
	const char *host = text, *port = NULL, *host_end = end;
	if (size == 0 || memchr(text, '@', size) || size >= ADDRESS_HOST_MAX)
		return false;
	if (*text == '[') {
		host = text + 1;
		host_end = memchr(text, ']', size);
		if (!host_end)
			return false;
		if (host_end + 1 < end)
			port = host_end[1] == ':' ? host_end + 2 : end;
	} else {
		const char *colon = memchr(text, ':', size);
		if (colon) {
			host_end = colon;
			port = colon + 1;
		}
	}
	size_t digits = port ? (size_t)(end - port) : 0;
	if (host_end == host || digits > 5 || (port && digits == 0))
		return false;
	for (size_t i = 0; i < digits; i++)
		if (port[i] < '0' || port[i] > '9')
			return false;
	snprintf(address->host, sizeof(address->host), "%.*s", (int)(host_end - host), host);
	snprintf(address->port, sizeof(address->port), "%.*s",
	         port ? (int)digits : (address->secure ? 3 : 2),
	         port ? port : (address->secure ? "443" : "80"));
	snprintf(address->authority, sizeof(address->authority), "%.*s", (int)size, text);
	long number = strtol(address->port, NULL, 10);
	return number >= 1 && number <= 65535;
}

bool address_read(const char *url, struct address *address, struct error *error)
{
	*address = (struct address){ 0 };
	const char *rest = NULL;
	for (const char *at = url; *at; at++)
		if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7f || *at == '"')
			return refuse(url, error);
	if (strncmp(url, "http://", 7) == 0) {
		rest = url + 7;
	} else if (strncmp(url, "https://", 8) == 0) {
		rest = url + 8;
		address->secure = true;
	}
	if (!rest || strpbrk(rest, "?#"))
		return refuse(url, error);
	size_t size = strcspn(rest, "/");
	size_t prefix = strlen(rest + size);
	while (prefix > 0 && rest[size + prefix - 1] == '/')
		prefix--;
	if (!read_authority(rest, size, address) || prefix >= sizeof(address->prefix))
		return refuse(url, error);
	snprintf(address->prefix, sizeof(address->prefix), "%.*s", (int)prefix, rest + size);
	return true;
}
