/* origin.c - by which names the service may be called, and by whose pages */
#include "api/auth/origin.h"

/* Host without its port; the port's data is NULL if there is none. */
static struct text host_of(struct text authority, struct text *port)
{
	size_t size = authority.size, at = size;

	while (at > 0 && authority.data[at - 1] >= '0' && authority.data[at - 1] <= '9')
		at--;
	*port = (struct text){ 0 };
	if (at == 0 || authority.data[at - 1] != ':')
		return authority;
	struct text host = { authority.data, at - 1 };
	/* Of [::1], the colons are part of the host. */
	if (memchr(host.data, '[', host.size) && !memchr(host.data, ']', host.size))
		return authority;
	*port = (struct text){ authority.data + at, size - at };
	return host;
}

static bool equal_any_case(struct text a, struct text b)
{
	return a.size == b.size && (a.size == 0 || strncasecmp(a.data, b.data, a.size) == 0);
}

/* 127.x.y.z, and no name that only begins like it. */
static bool is_loopback_ipv4(struct text host)
{
	struct text part;
	int parts = 0;

	if (!text_starts(host, "127.") || host.data[host.size - 1] == '.')
		return false;
	while (text_next(&host, '.', &part)) {
		if (part.size == 0 || part.size > 3)
			return false;
		for (size_t i = 0; i < part.size; i++)
			if (part.data[i] < '0' || part.data[i] > '9')
				return false;
		parts++;
	}
	return parts == 4;
}

bool origin_is_loopback(struct text authority)
{
	struct text port;
	struct text host = host_of(authority, &port);

	return text_is_any_case(host, "localhost") || text_is(host, "[::1]") ||
	       is_loopback_ipv4(host);
}

bool origin_host_is_listed(struct text authority, const char *const *hosts)
{
	struct text port;
	struct text host = host_of(authority, &port);

	for (; hosts && *hosts; hosts++)
		if (equal_any_case(text_of(*hosts), host) ||
		    equal_any_case(text_of(*hosts), authority))
			return true;
	return false;
}

/* Takes 'https://' off; false if there is no scheme that a page can come by. */
static bool take_scheme(struct text *origin, struct text *default_port)
{
	if (text_starts(*origin, "https://")) {
		*origin = text_from(*origin, strlen("https://"));
		*default_port = TEXT("443");
		return true;
	}
	if (text_starts(*origin, "http://")) {
		*origin = text_from(*origin, strlen("http://"));
		*default_port = TEXT("80");
		return true;
	}
	return false;
}

bool origin_is_same(struct text origin, struct text authority)
{
	struct text default_port, port, authority_port;

	if (!take_scheme(&origin, &default_port))
		return false;
	struct text host = host_of(origin, &port);
	struct text authority_host = host_of(authority, &authority_port);
	if (!port.data)
		port = default_port;
	/* A port that is left out is that of the scheme, and a browser has left it out of
	 * both or of none. */
	if (!authority_port.data)
		authority_port = default_port;
	return host.size > 0 && equal_any_case(host, authority_host) &&
	       text_equal(port, authority_port);
}

bool origin_is_foreign(struct text fetch_site)
{
	return text_is_any_case(fetch_site, "cross-site") ||
	       text_is_any_case(fetch_site, "same-site");
}

bool origin_is_listed(struct text origin, const char *const *origins)
{
	for (; origins && *origins; origins++)
		if (strcmp(*origins, "*") == 0 || equal_any_case(text_of(*origins), origin))
			return true;
	return false;
}
