/* network.c - addresses of peers, and networks of them */
#include "wire/network.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "base/hash.h"

enum { V4_PREFIX_BITS = 96, IP_BITS = 128 };

static const unsigned char v4_prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

static void set_v4(struct ip *ip, const void *bytes)
{
	memcpy(ip->bytes, v4_prefix, sizeof(v4_prefix));
	memcpy(ip->bytes + sizeof(v4_prefix), bytes, 4);
}

bool ip_is_v4(const struct ip *ip)
{
	return memcmp(ip->bytes, v4_prefix, sizeof(v4_prefix)) == 0;
}

bool ip_is_loopback(const struct ip *ip)
{
	static const unsigned char v6_loopback[16] = { [15] = 1 };
	return ip_is_v4(ip) ? ip->bytes[12] == IN_LOOPBACKNET
	                    : memcmp(ip->bytes, v6_loopback, sizeof(v6_loopback)) == 0;
}

bool ip_of_socket(const struct sockaddr *address, struct ip *ip, uint16_t *port)
{
	if (address->sa_family == AF_INET) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
		set_v4(ip, &v4->sin_addr);
		*port = ntohs(v4->sin_port);
		return true;
	}
	if (address->sa_family == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
		memcpy(ip->bytes, &v6->sin6_addr, sizeof(ip->bytes));
		*port = ntohs(v6->sin6_port);
		return true;
	}
	return false;
}

bool ip_read(struct text text, struct ip *ip)
{
	char copy[IP_TEXT_MAX];
	unsigned char v4[4];
	if (text.size == 0 || text.size >= sizeof(copy) || memchr(text.data, '\0', text.size))
		return false;
	memcpy(copy, text.data, text.size);
	copy[text.size] = '\0';
	if (inet_pton(AF_INET, copy, v4) == 1) {
		set_v4(ip, v4);
		return true;
	}
	return inet_pton(AF_INET6, copy, ip->bytes) == 1;
}

void ip_write(const struct ip *ip, char text[IP_TEXT_MAX])
{
	if (ip_is_v4(ip))
		inet_ntop(AF_INET, ip->bytes + sizeof(v4_prefix), text, IP_TEXT_MAX);
	else
		inet_ntop(AF_INET6, ip->bytes, text, IP_TEXT_MAX);
}

uint64_t ip_customer(const struct ip *ip)
{
	return hash_bytes(ip->bytes, ip_is_v4(ip) ? 16 : 8) | 1;
}

bool network_read(const char *text, struct network *network, struct error *error)
{
	const char *slash = strchr(text, '/');
	struct text address = text_of(text);
	char *end = NULL;
	*network = (struct network){ 0 };
	if (slash)
		address.size = (size_t)(slash - text);
	if (!ip_read(address, &network->ip))
		return error_set(error, ERROR_INVALID,
		                 "'%.60s' is not an address or a network such as 10.0.0.0/8", text);
	int offset =
	    ip_is_v4(&network->ip) && !memchr(text, ':', address.size) ? V4_PREFIX_BITS : 0;
	long bits = slash && slash[1] >= '0' && slash[1] <= '9' ? strtol(slash + 1, &end, 10)
	                                                        : IP_BITS - offset;
	if ((slash && (!end || *end != '\0')) || bits < 0 || bits > IP_BITS - offset)
		return error_set(error, ERROR_INVALID, "the network '%.60s' has no proper length",
		                 text);
	network->bits = (int)bits + offset;
	return true;
}

bool network_has(const struct network *network, const struct ip *ip)
{
	size_t whole = (size_t)network->bits / 8;
	int rest = network->bits % 8;
	if (memcmp(network->ip.bytes, ip->bytes, whole) != 0)
		return false;
	return rest == 0 || (network->ip.bytes[whole] ^ ip->bytes[whole]) >> (8 - rest) == 0;
}
