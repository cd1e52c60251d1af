/* session.h - the scheduler's half of a conversation with a node: a state machine */
#ifndef NODE_SESSION_H
#define NODE_SESSION_H

#include "core/record/command.h"
#include "core/record/effects.h"
#include "node/address.h"
#include "node/message.h"

/* One per node, for as long as the node is known: it outlives connections. What
 * the node says becomes commands of the core, orders of the core become numbered
 * messages. No clock and no sockets: times are milliseconds of the scheduler's
 * clock that never goes back.
 *
 * Who drives it applies its commands in order; hands it each order only after the
 * transaction with that order is durable; and calls session_stored for a change
 * only after the transaction with its commands is durable and all orders of that
 * transaction and of those before were handed over. */

struct session_policy {
	int64_t silent_ms; /* after which a silent node is unknown */
	int64_t lease_ms;  /* what a renewal is worth */
	int64_t grace_ms;  /* the longest that an order gives between notice and kill */
	int64_t margin_ms; /* for clocks that run unevenly and kills that take their time */
	/* How long a scheduler renews leases after it last knew that it leads. A scheduler that
	 * took over waits that long before it counts. */
	int64_t standing_ms;
	int64_t acknowledge_ms; /* what is durable is acknowledged so much later, with others, where
	                           nothing else is said meanwhile */
	int64_t resend_ms;      /* after which an unacknowledged order is sent again */
	int64_t foreign_step_mib; /* a change of foreign memory by no more is not told */
	int64_t hot_c, cool_c;    /* only whether it is hot is told: see heat.h */
	/* Which hosts nodes may announce; lives as long as the session. NULL: any. */
	const struct address_rules *addresses;
	int64_t starts_max; /* orders to start or load under way at once; 0: no bound */
};
struct session_policy session_policy_default(void);

enum session_output_kind {
	SESSION_COMMAND,   /* for the core; its time is to be filled in */
	SESSION_SEND,      /* to the node, by this connection */
	SESSION_NOTE,      /* something for people to see: late, over, idle, refused */
	SESSION_BEAT,      /* what the node measures, for those who watch */
	SESSION_CLOSE,     /* close this connection */
	SESSION_MISREPORT, /* the node announced what is not its own: `reason` */
};

struct session_output {
	enum session_output_kind kind;
	const struct command *command;
	int64_t connection, change; /* COMMAND: for session_stored, on the last command of a
	                               change; change 0: nothing is to be told */
	const void *data;           /* SEND */
	size_t size;
	const struct message *message; /* NOTE, BEAT */
	const char *reason;            /* MISREPORT: a sentence */
};

/* In the order in which they are to be done. Zero is empty. */
struct session_outputs {
	struct session_output *at;
	size_t count, capacity;
	struct arena arena;
};
void session_outputs_clear(struct session_outputs *outputs);
void session_outputs_free(struct session_outputs *outputs);

struct session;

/* For a node that said hello, or (`known`) that the core knows, which counts as
 * silent from `now_ms` on. `term` is the scheduler's own. */
struct session *session_new(const char *name, bool known, int64_t term, int64_t now_ms,
                            const struct session_policy *policy);
void session_delete(struct session *session);

/* A message from the node, decoded. A message of an unknown connection is answered so that the node
 * reconnects. */
void session_message(struct session *session, int64_t now_ms, const struct message *message,
                     struct session_outputs *outputs);
/* The IP address that the present connection comes from. */
void session_set_peer(struct session *session, const char *peer);
/* The commands of all changes up to this number, on this connection, are
 * durable, or were refused: the node may forget them. */
void session_stored(struct session *session, int64_t now_ms, int64_t connection, int64_t change,
                    struct session_outputs *outputs);
/* The core refused a full report of the node: closes the connection and tells the node why.
 * (Any other refused command is outdated.) */
void session_refused(struct session *session, int64_t now_ms, int64_t connection,
                     const struct error *error, struct session_outputs *outputs);
/* The connection broke. */
void session_disconnected(struct session *session, int64_t connection);
/* An administrator declared the node dead, or removed it: closes the connection. A node that
 * is alive after all returns with a snapshot and is told what to stop. */
void session_given_up(struct session *session, const char *reason, struct session_outputs *outputs);
/* Time passed. `active_ms`: when the scheduler last knew that it is the active one. */
void session_time(struct session *session, int64_t now_ms, int64_t active_ms,
                  struct session_outputs *outputs);
/* When session_time is wanted at the latest. */
int64_t session_wake_ms(const struct session *session);

/* Data of orders that the core does not have. Texts live until the call returns. `context`
 * outlives the session: an order that is held is looked up when it is sent. */
struct session_lookup {
	const char *(*gpu_uuid)(void *context, int64_t gpu_id);
	const char *(*task_payload)(void *context, int64_t job_id, int64_t task);
	const char *(*model_name)(void *context, int64_t model_id);
	const char *(*model_payload)(void *context, int64_t model_id);
	void *context;
};
/* An order (EFFECT_START, STOP or LOAD) for this node. While the node has not
 * reported it is dropped: the core gives it again when the snapshot comes. With
 * `starts_max` orders under way, one to start or load is held: see starts.h. */
void session_order(struct session *session, int64_t now_ms, const struct effect *effect,
                   const struct session_lookup *lookup, struct session_outputs *outputs);

const char *session_name(const struct session *session);
int64_t session_connection(const struct session *session); /* 0: none */
/* True if the GPU was in the node's last snapshot. */
bool session_has_gpu(const struct session *session, const char *uuid);
bool session_is_synced(const struct session *session);

#endif
