/* address.h - the addresses of slots: which host a node may send requests to */
#ifndef NODE_ADDRESS_H
#define NODE_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/memory.h"

/* Requests of tenants go to the address that a node announces for a slot, so the host in it
 * must be the node's own: the address that it connected from, its name, or what the
 * administrator allows. An entry of `allowed` is a host name, `*.` and a domain, an IP
 * address, or a network such as 10.1.0.0/16. */
struct address_rules {
	const char *const *allowed;
	size_t allowed_count;
	const char *local; /* the scheduler's own host name: a node on the same machine has it */
};

/* True if it can be an entry of `allowed`; false with a reason. */
bool address_check_rule(const char *rule, struct error *error);

/* Who announces an address: a node, connected from `peer` (an IP address; empty: not known). */
struct address_source {
	const struct address_rules *rules; /* NULL: any host is believed */
	const char *node, *peer;
};
bool address_is_own(const struct address_source *source, const char *host);

/* The address to use instead of the one announced, in the arena: `http://HOST:PORT` or
 * `https://HOST:PORT`. Where the host is not the node's own, it is the peer's, and `replaced`
 * is set. NULL with a reason where the address is malformed or no host can be believed. */
const char *address_settle(const struct address_source *source, const char *announced,
                           struct arena *arena, bool *replaced, struct error *error);

#endif
