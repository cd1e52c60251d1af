/* slot_request.h - requests to a model's server as they arrive: who may ask what */
#ifndef AGENT_PROXY_SLOT_REQUEST_H
#define AGENT_PROXY_SLOT_REQUEST_H

#include "agent/host/lease_keys.h"
#include "base/buffer.h"

enum { SLOT_REQUEST_HEAD_MAX = 64 << 10 };

enum slot_request_event {
	SLOT_REQUEST_MORE,    /* all bytes are taken; more are needed */
	SLOT_REQUEST_PASS,    /* a part that goes to the server */
	SLOT_REQUEST_END,     /* the request is complete: the next one may follow */
	SLOT_REQUEST_REFUSED, /* `status` and `why` say it; nothing more is read */
};

/* Which paths a key opens. */
enum slot_paths {
	SLOT_PATHS_INFERENCE, /* of the servers that are known */
	SLOT_PATHS_ALL,       /* a command of the model's owner: its paths are its own */
};

/* One connection. Set `keys`, `paths` and, where leases have keys of their own, `leases`; the rest
 * begins with zeros. What decides where a request ends must be beyond doubt: two lengths, other
 * codings than chunks, bare line ends and folded lines are refused. The header with the key, and
 * offers of other protocols, are left out of what is passed on; every other byte is the client's.
 */
struct slot_request {
	const struct slot_keys *keys;
	const struct lease_keys *leases; /* NULL: none */
	enum slot_paths paths;
	bool needs_tls, is_sealed; /* requests that came in the clear are refused, but the agent's
	                            */
	enum slot_request_stage {
		SLOT_REQUEST_IN_HEAD,
		SLOT_REQUEST_IN_LENGTH, /* `left` bytes to come */
		SLOT_REQUEST_IN_SIZE,   /* of a chunk: its digits */
		SLOT_REQUEST_IN_NOTE,   /* what follows them on the line */
		SLOT_REQUEST_IN_CHUNK,
		SLOT_REQUEST_BEHIND_CHUNK,
		SLOT_REQUEST_IN_TRAILER,
		SLOT_REQUEST_COMPLETE,
		SLOT_REQUEST_OVER, /* refused */
	} stage;
	struct buffer head; /* as it came, and then as it goes to the server */
	int64_t left;
	int digits;   /* of a chunk's size, or bytes of a line */
	int overhead; /* bytes of this body beside its data */
	bool has_line_end;
	int status;
	const char *why;
};

/* Takes bytes off `bytes` up to the next event. `part` is valid until the next call and as long as
 * the bytes are. */
enum slot_request_event slot_request_next(struct slot_request *request, struct text *bytes,
                                          struct text *part);
void slot_request_free(struct slot_request *request);

#endif
