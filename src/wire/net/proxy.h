/* proxy.h - proxies in front of the service, and whom they say they speak for */
#ifndef WIRE_NET_PROXY_H
#define WIRE_NET_PROXY_H

#include "wire/net/network.h"
#include "wire/text/headers.h"

/* Which header names the client. Only one is believed: a proxy that sets one usually lets the
 * other through as the client sent it. */
enum forwarded_header { FORWARDED_NONE, FORWARDED_FOR, FORWARDED_RFC7239 };

/* Nothing that others than these networks say about addresses is believed. */
struct proxies {
	const struct ip_network *networks;
	size_t count;
	bool send_header; /* they begin each connection with a header of the PROXY protocol */
	enum forwarded_header forwarded;
};

bool proxies_have(const struct proxies *proxies, const struct ip *ip);

/* The start of a connection in the PROXY protocol, version 1 or 2. */
enum { PROXY_HEADER_MAX = 4096 };
enum proxy_result {
	PROXY_MORE,    /* than is there belongs to it */
	PROXY_INVALID, /* this is none */
	PROXY_DONE,
};
struct proxy_header {
	size_t size;
	bool has_source; /* false: the proxy speaks for itself, or does not know */
	struct ip source;
	uint16_t port;
};
enum proxy_result proxy_read(struct text bytes, struct proxy_header *header);

/* Whom a request that came from `peer` is from: the last address of the header that is not
 * one of the proxies'. */
struct ip proxies_client(const struct proxies *proxies, const struct headers *headers,
                         const struct ip *peer);

#endif
