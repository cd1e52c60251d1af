/* keeper_proxy.h - the proxy before a model's server, and the network that the server has */
#ifndef AGENT_KEEPER_KEEPER_PROXY_H
#define AGENT_KEEPER_KEEPER_PROXY_H

#include <sys/types.h>

#include "agent/keeper/spec.h"

/* True if this process may make network namespaces. It tries, in a process of its own. */
bool keeper_proxy_can_isolate(void);

/* Starts the spec's proxy, where it has one, and waits until it takes requests. `*network` is the
 * namespace for the server; -1: the node's. The files of the proxy are open from
 * KEEPER_LISTENER on, and are closed. Its number; 0: there is none, or it could not
 * be started, which `error` says. */
pid_t keeper_proxy_start(const struct spec *spec, int *network, struct error *error);

/* The numbers that a keeper has files open under. */
enum keeper_file {
	KEEPER_SPEC = 3,
	KEEPER_REPORT,
	KEEPER_STATUS,
	KEEPER_LISTENER, /* these three where the spec has a proxy */
	KEEPER_KEYS,
	KEEPER_LEASES,
};

#endif
