/* address.c - the addresses of slots: which host a node may send requests to */
#include "node/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HOST_MAX = 253, IP_BYTES = 16, PORT_LAST = 65535 };

/* An IPv4 address is kept as the IPv6 address that it is mapped to, so that both forms of
 * one address are equal. */
struct ip {
	unsigned char at[IP_BYTES];
};

static bool read_ip(const char *text, struct ip *ip)
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };

	memcpy(ip->at, mapped, sizeof(mapped));
	return inet_pton(AF_INET, text, ip->at + sizeof(mapped)) == 1 ||
	       inet_pton(AF_INET6, text, ip->at) == 1;
}

static bool has_prefix(const struct ip *ip, const struct ip *network, int bits)
{
	int whole = bits / 8, rest = bits % 8;

	if (memcmp(ip->at, network->at, (size_t)whole) != 0)
		return false;
	return rest == 0 || (ip->at[whole] ^ network->at[whole]) >> (8 - rest) == 0;
}

static bool is_loopback(const char *text)
{
	struct ip ip, network;

	if (!read_ip(text, &ip))
		return false;
	read_ip("127.0.0.0", &network);
	if (has_prefix(&ip, &network, 96 + 8))
		return true;
	read_ip("::1", &network);
	return has_prefix(&ip, &network, 128);
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

	if (read_ip(a, &x))
		return read_ip(b, &y) && memcmp(&x, &y, sizeof(x)) == 0;
	return strcasecmp(a, b) == 0;
}

/* A network such as 10.1.0.0/16; `bits` counts from the start of the mapped form. */
static bool read_network(const char *rule, struct ip *network, int *bits)
{
	char address[INET6_ADDRSTRLEN];
	const char *slash = strchr(rule, '/');
	char *end = NULL;

	if (!slash || (size_t)(slash - rule) >= sizeof(address) || !slash[1])
		return false;
	memcpy(address, rule, (size_t)(slash - rule));
	address[slash - rule] = '\0';
	long given = strtol(slash + 1, &end, 10);
	long most = strchr(address, ':') ? 128 : 32;
	if (*end || given < 0 || given > most || !read_ip(address, network))
		return false;
	*bits = (int)given + (most == 32 ? 96 : 0);
	return true;
}

bool address_check_rule(const char *rule, struct error *error)
{
	struct ip network;
	int bits;

	if (strchr(rule, '/') ? read_network(rule, &network, &bits)
	                      : read_ip(rule, &network) ||
	                            is_host_name(strncmp(rule, "*.", 2) == 0 ? rule + 2 : rule))
		return true;
	return error_set(error, ERROR_INVALID,
	                 "'%.100s' is not a host name, *.DOMAIN, an IP address or a network such "
	                 "as 10.1.0.0/16",
	                 rule);
}

static bool is_allowed_by(const char *rule, const char *host)
{
	struct ip ip, network;
	int bits;

	if (read_network(rule, &network, &bits))
		return read_ip(host, &ip) && has_prefix(&ip, &network, bits);
	if (strncmp(rule, "*.", 2) == 0) {
		size_t domain = strlen(rule + 1), size = strlen(host);
		return size > domain && strcasecmp(host + size - domain, rule + 1) == 0;
	}
	return same_host(rule, host);
}

bool address_is_own(const struct address_source *source, const char *host)
{
	const struct address_rules *rules = source->rules;

	if (!rules || same_host(host, source->node) ||
	    (*source->peer && same_host(host, source->peer)))
		return true;
	if (is_loopback(source->peer) && (is_loopback(host) || strcasecmp(host, "localhost") == 0 ||
	                                  (rules->local && strcasecmp(host, rules->local) == 0)))
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
	return bracketed ? strchr(parsed->host, ':') && read_ip(parsed->host, &ip)
	                 : is_host_name(parsed->host);
}

const char *address_settle(const struct address_source *source, const char *announced,
                           struct arena *arena, bool *replaced, struct error *error)
{
	struct parsed parsed;
	char text[HOST_MAX + 32];

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
		if (!read_ip(source->peer, &ip)) {
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
	snprintf(text, sizeof(text), "%s://%s%s%s:%ld", parsed.scheme, brackets ? "[" : "", host,
	         brackets ? "]" : "", parsed.port);
	return arena_string(arena, text);
}
