/* address.c - the addresses of slots: which host a node may send requests to */
#include "node/address.h"

#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "base/endpoint.h"
#include "base/ip.h"

enum { HOST_MAX = 253 };

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

	if (strchr(rule, '/')
	        ? ip_network_read(rule, &network)
	        : endpoint_host_is_name(text_of(strncmp(rule, "*.", 2) == 0 ? rule + 2 : rule)) ||
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
	int64_t port;
};

/* With a port, and without a path or a query. */
static bool parse(const char *address, struct parsed *parsed)
{
	struct endpoint endpoint;
	struct ip ip;

	if (!endpoint_read(text_of(address), &endpoint) || !endpoint.has_port ||
	    !(endpoint.target.size == 0 || text_is(endpoint.target, "/")))
		return false;
	parsed->scheme = endpoint.is_secure ? "https" : "http";
	parsed->port = endpoint.port;
	memcpy(parsed->host, endpoint.host.data, endpoint.host.size);
	parsed->host[endpoint.host.size] = '\0';
	return endpoint.is_bracketed ? strchr(parsed->host, ':') && ip_read(parsed->host, &ip)
	                             : endpoint_host_is_name(endpoint.host);
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
	buffer_print(&text, "%s://%s%s%s:%" PRId64, parsed.scheme, brackets ? "[" : "", host,
	             brackets ? "]" : "", parsed.port);
	const char *settled = arena_string(arena, text.data);
	buffer_free(&text);
	return settled;
}
