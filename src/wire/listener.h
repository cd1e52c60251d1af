/* listener.h - a port that clients connect to */
#ifndef WIRE_LISTENER_H
#define WIRE_LISTENER_H

#include "base/error.h"
#include "wire/exchange.h"
#include "wire/net/proxy.h"
#include "wire/tls.h"

struct listener;

struct listener_options {
	const char *path;    /* of a UNIX socket that only its owner may open; NULL: by address */
	const char *address; /* IPv4 or IPv6, numeric */
	uint16_t port;       /* 0: any that is free */
	struct tls *tls;     /* NULL: clear text. HTTP/2 is then known by its first bytes */
	const struct handler *handler;
	const struct proxies *proxies; /* that are trusted; must outlive the loop. NULL: none */
	bool for_agents;               /* some connections are kept free for it: see admission.h */
	bool shared_port; /* other loops listen there too: the system deals out connections */
};

/* Opens it; a path that is there is replaced, and removed at the end. Handler and tls must outlive
 * the loop's run. Listeners are closed and freed by the loop when it has stopped. NULL with the
 * reason, such as an address in use. */
struct listener *listener_open(struct loop *loop, const struct listener_options *options,
                               struct error *error);
uint16_t listener_port(const struct listener *listener);

#endif
