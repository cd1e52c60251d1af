/* limits.h - what a client may ask of the service before it is told no */
#ifndef WIRE_NET_LIMITS_H
#define WIRE_NET_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* All numbers are positive, and hold for each loop by itself. What goes over one
 * is refused with the status that is named; the rest of the service is not touched. */
struct limits {
	/* Of one request. */
	size_t head_bytes;    /* request line and headers together: 431 */
	size_t headers;       /* how many of them: 431 */
	size_t target_bytes;  /* path and query: 414 */
	size_t body_bytes;    /* 413; `exchange->body_limit` changes it for one request */
	size_t message_bytes; /* of one WebSocket (1009) or gRPC (RESOURCE_EXHAUSTED) message */

	/* Of one connection. */
	size_t pipeline;     /* HTTP/1.1 requests that wait for their answers: not read on */
	size_t streams;      /* HTTP/2 streams at once: REFUSED_STREAM */
	size_t output_bytes; /* waiting to be sent: nothing more is read, streams are not writable
	                      */
	/* Frames that ask for nothing (PING, SETTINGS, PRIORITY, empty DATA) in a second: closed.
	 */
	size_t control_frames_per_second;
	size_t resets_per_second; /* streams that the client itself takes back: closed */
	/* Memory of answers that the client has not read: a larger answer, a message or another
	 * request is refused (503), and no stream is writable. */
	size_t held_bytes_per_connection;

	/* Of all of them. */
	size_t connections;             /* more get 503 and are closed */
	size_t connections_per_address; /* from one address: likewise */
	size_t connections_reserved;    /* of them, for each kind of peer: see admission.h */
	size_t exchanges;               /* requests in flight at once: 503 */
	size_t buffered_bytes;          /* requests that are arriving or being dealt with: 503 */
	/* Memory of answers that clients have not read: refused like the above, and the
	 * connection that holds most is closed. */
	size_t held_bytes;

	/* How long a client may take. */
	int64_t handshake_ms; /* from connecting to the end of the TLS handshake: closed */
	int64_t head_ms;      /* from the first byte of a request to its last header: 408 */
	int64_t body_ms;      /* from there to the last byte of its body: 408 */
	int64_t stall_ms;     /* without a byte, within a body: 408 */
	int64_t idle_ms;      /* without a request: closed */
	int64_t stranger_ms;  /* without signing in, where others need the place: closed */
	int64_t write_ms;     /* without taking a byte of what is to be sent: closed; of one HTTP/2
	                       * stream, because of its window: the stream is reset */
	int64_t ping_ms;      /* silence on WebSockets and open streams after which the other
	                       * side is asked for a sign of life, and again before it is closed */
	int64_t linger_ms;    /* to read an answer that was sent before the connection is closed */

	/* Not limits of the client, but of how eager we are. */
	size_t compress_bytes; /* answers of at least this are compressed when asked for */
	int64_t gather_ms;     /* WebSocket messages within so long are sent together; the first
	                        * after a silence is sent at once */
};

/* Defaults for a service in a data center. */
struct limits limits_default(void);
/* True if they make sense together; otherwise says which does not. */
bool limits_check(const struct limits *limits, struct error *error);

#endif
