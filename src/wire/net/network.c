/* network.c - addresses of peers, and networks of them */
#include "wire/net/network.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "base/hash.h"

enum { V4_PREFIX_BITS = 96, IP_BITS = 128 };

static void set_v4(struct ip *ip, const void *bytes)
{
	static const unsigned char prefix[V4_PREFIX_BITS / 8] = { [10] = 0xff, [11] = 0xff };

	memcpy(ip->bytes, prefix, sizeof(prefix));
	memcpy(ip->bytes + sizeof(prefix), bytes, 4);
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

bool ip_read_text(struct text text, struct ip *ip)
{
	char copy[IP_TEXT_MAX];
	if (text.size == 0 || text.size >= sizeof(copy) || memchr(text.data, '\0', text.size))
		return false;
	memcpy(copy, text.data, text.size);
	copy[text.size] = '\0';
	return ip_read(copy, ip);
}

void ip_write(const struct ip *ip, char text[IP_TEXT_MAX])
{
	if (ip_is_v4(ip))
		inet_ntop(AF_INET, ip->bytes + V4_PREFIX_BITS / 8, text, IP_TEXT_MAX);
	else
		inet_ntop(AF_INET6, ip->bytes, text, IP_TEXT_MAX);
}

uint64_t ip_customer(const struct ip *ip)
{
	return hash_bytes(ip->bytes, ip_is_v4(ip) ? 16 : 8) | 1;
}

bool network_read(const char *text, struct ip_network *network, struct error *error)
{
	*network = (struct ip_network){ 0 };
	if (strchr(text, '/') ? ip_network_read(text, network) : ip_read(text, &network->start)) {
		if (!strchr(text, '/'))
			network->bits = IP_BITS;
		return true;
	}
	return error_set(error, ERROR_INVALID,
	                 "'%.60s' is not an address or a network such as 10.0.0.0/8", text);
}
