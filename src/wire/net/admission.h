/* admission.h - how many connections there may be, and of which kind */
#ifndef WIRE_NET_ADMISSION_H
#define WIRE_NET_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>

/* Whom a connection is from. Each kind can always have some, however many of the others
 * there are. */
enum peer_kind {
	PEER_OTHER,
	PEER_AGENT, /* came to a listener that is for agents */
	PEER_LOCAL, /* of this machine */
	PEER_KINDS,
};

/* `reserved` is for each kind, and at most a quarter of `most`. */
struct admission {
	size_t most, reserved;
	size_t counts[PEER_KINDS];
};

struct admission admission_new(size_t most, size_t reserved);
/* True if one more of the kind leaves the others what is theirs. */
bool admission_has_place(const struct admission *admission, enum peer_kind kind);

#endif
