/* envelope.h - what goes over the connection: agent.Envelope of proto/agent.proto */
#ifndef AGENT_UPLINK_ENVELOPE_H
#define AGENT_UPLINK_ENVELOPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/text.h"

/* Somebody wants to see what a task wrote: at most `window` bytes ahead of what was taken. */
struct output_request {
	int64_t request_id, reservation_id, job_id, task;
	bool follow, errors;
	int64_t offset; /* negative: bytes before the end */
	int64_t window; /* 0: any */
};

struct output_chunk {
	int64_t request_id, offset;
	struct text data;
	bool end;
	struct text error;
};

/* A part of the standard input of a task. */
struct input_chunk {
	int64_t request_id, reservation_id;
	int64_t offset;
	struct text data;
	bool end;
};

/* What became of it. */
struct input_taken {
	int64_t request_id, offset;
	bool closed;
	struct text error;
};

/* Somebody wants to work interactively. Lists end with NULL. */
enum session_open_kind { SESSION_OPEN_COMMAND = 1, SESSION_OPEN_ATTACH, SESSION_OPEN_FORWARD };
struct session_open {
	int64_t channel, reservation_id;
	struct text session_id;
	int64_t kind; /* enum session_open_kind */
	char **command, **environment;
	bool terminal;
	int64_t columns, rows, port;
	int64_t offset; /* of output that the client has; negative: none */
	int64_t idle_ms;
};

/* How agents are to run that were not told otherwise; 0 or empty: not said. */
struct told_settings {
	int64_t heartbeat_ms, metrics_ms;
	struct text container_runtime;
	bool sign_in; /* everyone who gives the scheduler orders has signed in */
};

/* The key of a lease on a slot; valid_ms 0: it has ended. */
struct told_lease {
	int64_t reservation_id, lease_id, valid_ms;
	struct text key;
};

/* `all`: of leases numbered first_id or more, no others hold. */
struct told_leases {
	bool all;
	int64_t first_id;
	struct told_lease *at;
	size_t count;
};

enum envelope_kind {
	ENVELOPE_EMPTY,
	ENVELOPE_MESSAGE,
	ENVELOPE_OUTPUT_REQUEST,
	ENVELOPE_OUTPUT_CHUNK,
	ENVELOPE_OUTPUT_TAKEN, /* everything before `taken` was passed on */
	ENVELOPE_OUTPUT_STOP,
	ENVELOPE_SETTINGS,
	ENVELOPE_SLOT_KEY, /* requests to the slot `reservation_id` carry `key` */
	ENVELOPE_LEASE_KEYS,
	ENVELOPE_LEASE_KEY_TAKEN, /* that of the lease `request_id` holds; `error`: it does not */
	ENVELOPE_INPUT_CHUNK,
	ENVELOPE_INPUT_TAKEN,
	ENVELOPE_INPUT_STOP,
	ENVELOPE_SESSION_OPEN,
	ENVELOPE_SESSION_DATA,  /* a frame of the channel `request_id` */
	ENVELOPE_SESSION_CLOSE, /* of the channel `request_id`; `code` and `error`: why */
};

/* Exactly what belongs to its kind is set. */
struct envelope {
	enum envelope_kind kind;
	struct text message;
	struct output_request request;
	struct output_chunk chunk;
	struct told_settings settings;
	struct input_chunk input;
	struct input_taken input_taken;
	struct session_open session;
	struct text session_frame, error;
	int64_t code;
	int64_t request_id, taken; /* OUTPUT_TAKEN, OUTPUT_STOP, INPUT_STOP */
	int64_t reservation_id;    /* SLOT_KEY */
	struct text key;
	struct text certificate; /* SLOT_KEY */
	bool tls_only;           /* SLOT_KEY */
	bool has_lease_keys;     /* SLOT_KEY: leases on the slot have keys of their own */
	struct told_leases leases;
};

void envelope_encode(struct buffer *buffer, const struct envelope *envelope);
/* False if it is not an Envelope, or more than one thing is in it. Texts are in the arena, even
 * then. Unknown fields are ignored: a later version may say more. */
bool envelope_decode(struct text data, struct arena *arena, struct envelope *envelope);

#endif
