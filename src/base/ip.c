/* ip.c - IP addresses and networks, as people write them */
#include "base/ip.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/number_text.h"

enum { MAPPED_BITS = 96, IPV4_BITS = 32, IPV6_BITS = 128 };

static const unsigned char mapped[MAPPED_BITS / 8] = { [10] = 0xff, [11] = 0xff };

bool ip_read(const char *text, struct ip *ip)
{
	memcpy(ip->bytes, mapped, sizeof(mapped));
	return inet_pton(AF_INET, text, ip->bytes + sizeof(mapped)) == 1 ||
	       inet_pton(AF_INET6, text, ip->bytes) == 1;
}

bool ip_equal(const struct ip *a, const struct ip *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

bool ip_is_v4(const struct ip *ip)
{
	return memcmp(ip->bytes, mapped, sizeof(mapped)) == 0;
}

bool ip_is_loopback(const struct ip *ip)
{
	static const unsigned char v6_loopback[16] = { [15] = 1 };

	return ip_is_v4(ip) ? ip->bytes[sizeof(mapped)] == IN_LOOPBACKNET
	                    : memcmp(ip->bytes, v6_loopback, sizeof(v6_loopback)) == 0;
}

bool ip_network_read(const char *text, struct ip_network *network)
{
	char address[INET6_ADDRSTRLEN];
	const char *slash = strchr(text, '/');
	int64_t bits;

	if (!slash || (size_t)(slash - text) >= sizeof(address))
		return false;
	memcpy(address, text, (size_t)(slash - text));
	address[slash - text] = '\0';
	bool is_ipv6 = strchr(address, ':') != NULL;
	if (!number_read(text_of(slash + 1), 0, is_ipv6 ? IPV6_BITS : IPV4_BITS, &bits) ||
	    !ip_read(address, &network->start))
		return false;
	network->bits = (int)bits + (is_ipv6 ? 0 : MAPPED_BITS);
	return true;
}

bool ip_network_has(const struct ip_network *network, const struct ip *ip)
{
	int whole = network->bits / 8, rest = network->bits % 8;
	const unsigned char *start = network->start.bytes;

	if (memcmp(ip->bytes, start, (size_t)whole) != 0)
		return false;
	return rest == 0 || (ip->bytes[whole] ^ start[whole]) >> (8 - rest) == 0;
}
