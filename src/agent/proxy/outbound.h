/* outbound.h - the way out for a model's server in a network namespace of its own */
#ifndef AGENT_PROXY_OUTBOUND_H
#define AGENT_PROXY_OUTBOUND_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"

enum { OUTBOUND_PORT = 3128, OUTBOUND_HEAD_MAX = 16 << 10, OUTBOUND_HOST_MAX = 255 };

/* What a request to a proxy asks for. */
struct outbound_target {
	char host[OUTBOUND_HOST_MAX + 1];
	char port[6];
	bool is_tunnel;        /* CONNECT; else `request` goes to the server first */
	struct buffer request; /* the head as an origin server reads it */
};

/* Reads a head, up to its empty line. False with a reason. */
bool outbound_read(struct text head, struct outbound_target *target, struct error *error);

/* Serves requests to a proxy that come to the listener, each in a thread that has the caller's
 * network namespace; the listener may be of another. Addresses of loopback are refused: they are
 * of other programs of the node. */
bool outbound_start(int listener, struct error *error);

#endif
