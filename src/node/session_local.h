/* session_local.h - the inside of a session: what its files share */
#ifndef NODE_SESSION_LOCAL_H
#define NODE_SESSION_LOCAL_H

#include "node/session.h"
#include "node/starts.h"
#include "node/told.h"

struct session_pending {
	int64_t number;
	void *data;
	size_t size;
};

/* An order to start or load. */
struct session_given {
	int64_t number, reservation_id;
};

/* A change that told the end of a reservation. */
struct session_ended {
	int64_t change, reservation_id;
};

/* `taken` changes came in order; commands were made for those up to `commanded`,
 * of which `stored` are durable. `issued` orders were given, of which `pending`
 * are not acknowledged. `given` are orders that the node may not have had when it
 * made the next change that is to be taken: `pending` does not say that, for what
 * was acknowledged meanwhile overtakes changes. `ended` are changes that are not durable. All of
 * these, and `starts`, are reset by a new connection. */
struct session {
	char *name, *boot, *peer;
	struct session_policy policy;
	int64_t term;
	bool known;            /* to the core */
	enum node_state state; /* as the core was told */
	int64_t since_ms, heard_ms, renewed_ms, active_ms;
	int64_t protocol;   /* of its agent */
	int64_t connection; /* the last one's number; 0: none yet */
	bool open, synced;
	int64_t taken, commanded, stored, acknowledged, issued;
	int64_t acknowledge_ms; /* when to, at the latest; 0: there is nothing to */
	int64_t beat_ms;        /* the last beat, by the node's clock */
	struct session_pending *pending;
	size_t pending_count, pending_capacity;
	int64_t pending_ms;
	struct session_given *given;
	size_t given_count, given_capacity;
	struct session_ended *ended;
	size_t ended_count, ended_capacity;
	struct starts starts;
	struct session_lookup lookup; /* of the last order */
	struct told told;
};

struct session_output *session_output(struct session_outputs *outputs,
                                      enum session_output_kind kind);
/* Copies it; `change` is not 0 on the last command of a change. */
void session_command(struct session *session, const struct command *command, int64_t change,
                     struct session_outputs *outputs);
void session_send_order(struct session *session, int64_t now_ms, const struct node_order *order,
                        struct session_outputs *outputs);

/* session_orders.c: orders that are held. */
/* Sends those that may be under way now. */
void session_send_held(struct session *session, int64_t now_ms, struct session_outputs *outputs);
/* A change came: the start of its reservation is not under way any more. */
void session_note_start(struct session *session, const struct message *message);
/* A snapshot came: starts that the node neither has nor is going to get are not under way. */
void session_note_snapshot(struct session *session, const struct node_report_command *report);
/* Changes up to `stored` are durable: what they ended must not be started by a late order. */
void session_drop_ended(struct session *session);

/* session_facts.c: what the node says becomes commands. */
void session_take_snapshot(struct session *session, const struct message *message,
                           struct session_outputs *outputs);
void session_take_change(struct session *session, const struct message *message,
                         struct session_outputs *outputs);
void session_take_beat(struct session *session, const struct beat *beat,
                       struct session_outputs *outputs);

#endif
