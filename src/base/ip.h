/* ip.h - IP addresses and networks, as people write them */
#ifndef BASE_IP_H
#define BASE_IP_H

#include <stdbool.h>

/* An IPv4 address is kept as the IPv6 address that it is mapped to, so that both forms of one
 * address are equal. */
struct ip {
	unsigned char bytes[16];
};

/* 192.0.2.1 or 2001:db8::1. False: it is neither. */
bool ip_read(const char *text, struct ip *ip);
bool ip_is_v4(const struct ip *ip);
bool ip_equal(const struct ip *a, const struct ip *b);
bool ip_is_loopback(const struct ip *ip);

/* The addresses whose first `bits` bits are those of `start`. */
struct ip_network {
	struct ip start;
	int bits;
};
/* 10.1.0.0/16 or 2001:db8::/32. False: it is neither. */
bool ip_network_read(const char *text, struct ip_network *network);
bool ip_network_has(const struct ip_network *network, const struct ip *ip);

#endif
