/* address.c - the addresses of slots: which host a node may send requests to */
#include "node/address.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/ip.h"

enum { HOST_MAX = 253, PORT_LAST = 65535 };

static bool is_loopback(const char *host)
{
	struct ip ip;

	return ip_read(host, &ip) && ip_is_loopback(&ip);
}

static int lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/* Names of hosts are the same in either case. */
static bool same_name(const char *a, const char *b)
{
	while (*a && lower(*a) == lower(*b)) {
		a++;
		b++;
	}
	return !*a && !*b;
}

static bool is_host_name(const char *host)
{
	size_t size = strlen(host);

	for (const char *at = host; *at; at++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._",
		            *at))
			return false;
	return size > 0 && size <= HOST_MAX && host[0] != '-' && host[0] != '.';
}

static bool same_host(const char *a, const char *b)
{
	struct ip x, y;

	if (ip_read(a, &x))
		return ip_read(b, &y) && ip_equal(&x, &y);
	return same_name(a, b);
}

bool address_check_rule(const char *rule, struct error *error)
{
	struct ip_network network;

	if (strchr(rule, '/') ? ip_network_read(rule, &network)
	                      : is_host_name(strncmp(rule, "*.", 2) == 0 ? rule + 2 : rule) ||
	                            ip_read(rule, &network.start))
		return true;
	return error_set(error, ERROR_INVALID,
	                 "'%.100s' is not a host name, *.DOMAIN, an IP address or a network such "
	                 "as 10.1.0.0/16",
	                 rule);
}

static bool is_allowed_by(const char *rule, const char *host)
{
	struct ip_network network;
	struct ip ip;

	if (ip_network_read(rule, &network))
		return ip_read(host, &ip) && ip_network_has(&network, &ip);
	if (strncmp(rule, "*.", 2) == 0) {
		size_t domain = strlen(rule + 1), size = strlen(host);
		return size > domain && same_name(host + size - domain, rule + 1);
	}
	return same_host(rule, host);
}

bool address_is_own(const struct address_source *source, const char *host)
{
	const struct address_rules *rules = source->rules;

	if (!rules || same_host(host, source->node) ||
	    (*source->peer && same_host(host, source->peer)))
		return true;
	if (is_loopback(source->peer) && (is_loopback(host) || same_name(host, "localhost") ||
	                                  (rules->local && same_name(host, rules->local))))
		return true;
	for (size_t i = 0; i < rules->allowed_count; i++)
		if (is_allowed_by(rules->allowed[i], host))
			return true;
	return false;
}

/* The parts of an address. A host in brackets is an IPv6 address. */
struct parsed {
	const char *scheme;
	char host[HOST_MAX + 1];
	long port;
};

static bool read_port(const char *text, long *port)
{
	char *end = NULL;

	if (*text < '0' || *text > '9')
		return false;
	*port = strtol(text, &end, 10);
	return *port >= 1 && *port <= PORT_LAST && end - text <= 5 &&
	       (*end == '\0' || strcmp(end, "/") == 0);
}

/* Whatever has a user, a path, a query or a fragment in it has a character here that no host
 * has, or no port after its host. */
static bool parse(const char *address, struct parsed *parsed)
{
	struct ip ip;
	bool secure = strncmp(address, "https://", 8) == 0;

	if (!secure && strncmp(address, "http://", 7) != 0)
		return false;
	parsed->scheme = secure ? "https" : "http";
	const char *host = address + (secure ? 8 : 7);
	bool bracketed = *host == '[';
	host += bracketed;
	size_t size = strcspn(host, bracketed ? "]" : ":");
	if (size == 0 || size > HOST_MAX || !host[size])
		return false;
	memcpy(parsed->host, host, size);
	parsed->host[size] = '\0';
	const char *rest = host + size + bracketed;
	if (*rest != ':' || !read_port(rest + 1, &parsed->port))
		return false;
	return bracketed ? strchr(parsed->host, ':') && ip_read(parsed->host, &ip)
	                 : is_host_name(parsed->host);
}

const char *address_settle(const struct address_source *source, const char *announced,
                           struct arena *arena, bool *replaced, struct error *error)
{
	struct parsed parsed;
	struct buffer text = { 0 };

	*replaced = false;
	if (!announced || !parse(announced, &parsed)) {
		error_set(error, ERROR_INVALID,
		          "node %.90s announces the address '%.100s' for a slot, which is not "
		          "http://HOST:PORT or https://HOST:PORT",
		          source->node, announced ? announced : "");
		return NULL;
	}
	const char *host = parsed.host;
	if (!address_is_own(source, host)) {
		struct ip ip;
		if (!ip_read(source->peer, &ip)) {
			error_set(error, ERROR_FORBIDDEN,
			          "node %.90s announces the address '%.100s' for a slot, which is "
			          "not its own",
			          source->node, announced);
			return NULL;
		}
		host = source->peer;
		*replaced = true;
	}
	bool brackets = strchr(host, ':') != NULL;
	buffer_print(&text, "%s://%s%s%s:%ld", parsed.scheme, brackets ? "[" : "", host,
	             brackets ? "]" : "", parsed.port);
	const char *settled = arena_string(arena, text.data);
	buffer_free(&text);
	return settled;
}
