/* dial.h - a blocking connection to a server somewhere, in the clear or by TLS */
#ifndef API_DIAL_H
#define API_DIAL_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "wire/text.h"

/* For threads that may wait: everything has to be done within `timeout_ms`. */
struct dial;

/* A moment of the steady clock after which nothing is waited for any more; 0: there is none.
 * Another thread may set it at any time. */
typedef _Atomic int64_t dial_end_ms;

struct dial_options {
	const char *host;
	int64_t port;
	bool tls;                  /* from the first byte on */
	const char *ca_path;       /* certificates to trust; NULL: the system's */
	bool only_public;          /* refuse addresses of this machine and of private networks */
	int64_t timeout_ms;        /* for all of it */
	const dial_end_ms *end_ms; /* NULL: never; the name is looked up to the end all the same */
};

/* NULL with a reason. What is checked about the address holds for the one connected to. */
struct dial *dial_open(const struct dial_options *options, struct error *error);
/* Goes on by TLS (STARTTLS). */
bool dial_secure(struct dial *dial, struct error *error);
bool dial_write(struct dial *dial, struct text bytes, struct error *error);
/* The next line, without its end, at most `most` bytes of it; false at the end. */
bool dial_line(struct dial *dial, char *line, size_t most, struct error *error);
void dial_close(struct dial *dial);

/* Whether the host is written as an address of this machine or of a private network, or is
 * "localhost". A name that stands for one is found out when it is dialed. */
bool dial_is_private_host(const char *host);

#endif
