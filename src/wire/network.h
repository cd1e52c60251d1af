/* network.h - addresses of peers, and networks of them */
#ifndef WIRE_NETWORK_H
#define WIRE_NETWORK_H

#include <stdint.h>

#include "base/error.h"
#include "wire/text.h"

struct sockaddr;

enum { IP_TEXT_MAX = 48 };

/* An IPv4 address is kept as the IPv6 address ::ffff:a.b.c.d, so each has one form. */
struct ip {
	unsigned char bytes[16];
};
struct network {
	struct ip ip;
	int bits; /* of the 128 */
};

bool ip_is_v4(const struct ip *ip);
bool ip_is_loopback(const struct ip *ip);
/* False if it is neither an IPv4 nor an IPv6 address. */
bool ip_of_socket(const struct sockaddr *address, struct ip *ip, uint16_t *port);
bool ip_read(struct text text, struct ip *ip);
void ip_write(const struct ip *ip, char text[IP_TEXT_MAX]);
/* The same for all addresses that one customer has: of IPv6, the first 64 bits. Never 0. */
uint64_t ip_customer(const struct ip *ip);

/* 10.0.0.0/8, 2001:db8::/32, or one address. */
bool network_read(const char *text, struct network *network, struct error *error);
bool network_has(const struct network *network, const struct ip *ip);

#endif
