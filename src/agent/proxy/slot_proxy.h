/* slot_proxy.h - what stands before a model's server: passes bytes to who has the key */
#ifndef AGENT_PROXY_SLOT_PROXY_H
#define AGENT_PROXY_SLOT_PROXY_H

#include "agent/proxy/slot_request.h"
#include "agent/proxy/slot_tls.h"

/* One for each slot, started by its keeper, so that no stream ends with the agent. The server
 * listens on loopback, where it can in a network namespace of its own; this process listens at the
 * address that others know. A request without the key is answered by 401 and reaches no server.
 * A client that hangs up ends its connection to the server at once. What a client or the server
 * does not take is not read from the other: no more than one read of each is held. */
struct slot_proxy_settings {
	int listener; /* listens already, in the namespace of the node */
	struct slot_keys keys;
	const struct lease_keys *leases; /* NULL: leases have no keys of their own */
	struct slot_tls *tls;            /* for clients that begin with it; NULL: nobody may */
	bool tls_only;                   /* others are refused */
	int network;                     /* the server's namespace; -1: the node's */
	int64_t server_port;             /* on loopback there */
	enum slot_paths paths;           /* that the key of clients opens */
};

struct slot_proxy;

/* Takes the descriptors; NULL with a reason. It needs the right to enter the namespace, and
 * nothing of it later. */
struct slot_proxy *slot_proxy_new(const struct slot_proxy_settings *settings, struct error *error);
_Noreturn void slot_proxy_serve(struct slot_proxy *proxy);

/* The program gpu-slot-proxy is started with PORT inference|all own|node any|tls, and with these
 * files open. */
enum slot_proxy_file {
	SLOT_PROXY_LISTENER = 3,
	SLOT_PROXY_KEYS, /* a file with struct slot_keys, and its certificate with the key in PEM */
	SLOT_PROXY_LEASES,  /* a file with struct lease_keys */
	SLOT_PROXY_READY,   /* gets a byte when requests may come */
	SLOT_PROXY_NETWORK, /* the server's namespace, where it has its own */
	SLOT_PROXY_FILES
};

#endif
