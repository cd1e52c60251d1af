/* network.h - addresses of peers, and networks of them */
#ifndef WIRE_NET_NETWORK_H
#define WIRE_NET_NETWORK_H

#include <stdint.h>

#include "base/error.h"
#include "base/ip.h"
#include "base/text.h"

struct sockaddr;

enum { IP_TEXT_MAX = 48 };

/* False if it is neither an IPv4 nor an IPv6 address. */
bool ip_of_socket(const struct sockaddr *address, struct ip *ip, uint16_t *port);
bool ip_read_text(struct text text, struct ip *ip);
void ip_write(const struct ip *ip, char text[IP_TEXT_MAX]);
/* A hash that is equal for all addresses of one customer: of IPv6, the first 64 bits. Never 0. */
uint64_t ip_customer(const struct ip *ip);

/* 10.0.0.0/8, 2001:db8::/32, or one address. */
bool network_read(const char *text, struct ip_network *network, struct error *error);

#endif
