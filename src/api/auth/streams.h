/* streams.h - what stays open, and ends when its sign-in no longer holds */
#ifndef API_AUTH_STREAMS_H
#define API_AUTH_STREAMS_H

#include "api/auth/gate.h"
#include "wire/loop.h"

/* All streams by the identity that opened them. An identity is checked when a stream is
 * opened; from then on the registry checks it again, twice a second and at once when a token
 * is revoked or the settings are read again. In the loop's thread alone. */
struct streams;

/* A member of what stays open. Zero-initialized, it is in no registry. */
struct stream {
	struct streams *streams; /* NULL: in none */
	struct identity identity;
	/* The sign-in no longer holds: has to end the stream, and to remove it. `reason` is for
	 * the client. */
	void (*end)(struct stream *stream, const char *reason);
	struct stream *next, **link;
};

struct streams *streams_new(struct loop *loop, struct gate *gate);
/* Those that are left are not watched any more. */
void streams_free(struct streams *streams);

/* `streams` may be NULL: then nothing is watched. */
void streams_add(struct streams *streams, struct stream *stream, const struct identity *identity,
                 void (*end)(struct stream *stream, const char *reason));
/* Once or more often, or never added. */
void streams_remove(struct stream *stream);
/* Something changed: ends those whose sign-in no longer holds. */
void streams_check(struct streams *streams);

#endif
