/* private.c - addresses that are not on the public internet */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "fetch/fetch.h"

static bool is_private_ipv4(uint32_t address)
{
	static const struct {
		uint32_t network;
		int bits;
	} of[] = {
		{ 0x00000000, 8 },  { 0x0a000000, 8 },  { 0x64400000, 10 }, { 0x7f000000, 8 },
		{ 0xa9fe0000, 16 }, { 0xac100000, 12 }, { 0xc0000000, 24 }, { 0xc0a80000, 16 },
		{ 0xc6120000, 15 }, { 0xe0000000, 3 },
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		if ((address ^ of[i].network) >> (32 - of[i].bits) == 0)
			return true;
	return false;
}

static bool is_private_ipv6(const struct in6_addr *address)
{
	const uint8_t *at = address->s6_addr;
	uint32_t tail;

	if (IN6_IS_ADDR_V4MAPPED(address)) {
		memcpy(&tail, at + 12, 4);
		return is_private_ipv4(ntohl(tail));
	}
	/* Only 2000::/3 is routed, and of that not what carries IPv4 addresses. */
	return (at[0] & 0xe0) != 0x20 || (at[0] == 0x20 && at[1] == 0x02) ||
	       (at[0] == 0x20 && at[1] == 0x01 && at[2] == 0 && at[3] == 0);
}

bool fetch_is_private_host(const char *host)
{
	struct in_addr four;
	struct in6_addr six;
	size_t size = strlen(host);

	/* inet_aton accepts the short and octal forms that getaddrinfo accepts. */
	if (inet_aton(host, &four))
		return is_private_ipv4(ntohl(four.s_addr));
	if (inet_pton(AF_INET6, host, &six) == 1)
		return is_private_ipv6(&six);
	if (size > 0 && host[size - 1] == '.')
		size--;
	return (size == 9 && strncasecmp(host, "localhost", 9) == 0) ||
	       (size > 10 && strncasecmp(host + size - 10, ".localhost", 10) == 0);
}

bool fetch_is_private(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return is_private_ipv4(
		    ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr));
	if (address->sa_family == AF_INET6)
		return is_private_ipv6(
		    &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
	return true;
}
