/* slot_keys.h - the keys that requests to a model's server must carry */
#ifndef AGENT_HOST_SLOT_KEYS_H
#define AGENT_HOST_SLOT_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

enum { SLOT_KEY_SIZE = 64 };

/* Hexadecimal, from the kernel's random source. Never logged, and never in an environment or on a
 * command line. */
struct slot_keys {
	char client[SLOT_KEY_SIZE + 1]; /* of gateways and leases: the paths of inference */
	char agent[SLOT_KEY_SIZE + 1];  /* of this node's agent: every path */
};

bool slot_keys_make(struct slot_keys *keys, struct error *error);
/* In constant time for texts of one length. */
bool slot_key_matches(const char key[SLOT_KEY_SIZE + 1], struct text given);

/* What an agent must know of a slot after a restart. */
struct slot_door {
	int64_t port;     /* that others reach the server at */
	bool own_network; /* the server is in a network namespace of its own */
	struct slot_keys keys;
	/* SHA-256 of the certificate that it shows to who speaks TLS there; "": nobody can. */
	char certificate[SLOT_KEY_SIZE + 1];
	bool tls_only;
};

/* Writes a file that only its owner can read; false with a reason. */
bool slot_door_write(const char *path, const struct slot_door *door, struct error *error);
/* False if it is not there or is damaged. */
bool slot_door_read(const char *path, struct slot_door *door);

#endif
