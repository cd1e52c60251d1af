/* session.c - the scheduler's half: connections, streams, silence */
#include "node/session.h"

#include <stdlib.h>
#include <string.h>

#include "node/session_local.h"

struct session_policy session_policy_default(void)
{
	return (struct session_policy){
		.silent_ms = 10000,
		.lease_ms = 30000,
		.grace_ms = 30000,
		.margin_ms = 10000,
		.standing_ms = 10000,
		.resend_ms = 3000,
		.foreign_step_mib = 64,
		.starts_max = 32,
	};
}

struct session *session_new(const char *name, bool known, int64_t term, int64_t now_ms,
                            const struct session_policy *policy)
{
	struct session *session = NEW(struct session);

	INVARIANT(name && policy->starts_max >= 0);
	session->name = memory_text(name);
	session->boot = memory_text("");
	session->peer = memory_text("");
	session->policy = *policy;
	session->starts.most = policy->starts_max;
	session->term = term;
	session->known = known;
	session->state = NODE_ONLINE;
	session->since_ms = session->heard_ms = session->active_ms = now_ms;
	return session;
}

static void drop_pending(struct session *session, int64_t up_to)
{
	size_t dropped = 0;

	while (dropped < session->pending_count && session->pending[dropped].number <= up_to)
		free(session->pending[dropped++].data);
	if (dropped == 0)
		return;
	session->pending_count -= dropped;
	memmove(session->pending, session->pending + dropped,
	        session->pending_count * sizeof(*session->pending));
}

void session_delete(struct session *session)
{
	drop_pending(session, INT64_MAX);
	free(session->pending);
	free(session->given);
	free(session->ended);
	starts_clear(&session->starts);
	told_free(&session->told);
	free(session->name);
	free(session->boot);
	free(session->peer);
	free(session);
}

struct session_output *session_output(struct session_outputs *outputs,
                                      enum session_output_kind kind)
{
	array_reserve(outputs->at, outputs->capacity, outputs->count + 1);
	struct session_output *output = &outputs->at[outputs->count++];
	*output = (struct session_output){ .kind = kind };
	return output;
}

static void send_bytes(struct session_outputs *outputs, const void *data, size_t size)
{
	struct session_output *output = session_output(outputs, SESSION_SEND);

	output->data = arena_copy(&outputs->arena, data, size);
	output->size = size;
}

static void session_send(struct session_outputs *outputs, const struct message *message)
{
	struct buffer buffer = { 0 };

	message_encode(&buffer, message);
	send_bytes(outputs, buffer.data, buffer.size);
	buffer_free(&buffer);
}

/* Changes that have no command are kept as soon as all before them are. */
static int64_t kept_changes(const struct session *session)
{
	return session->stored >= session->commanded ? session->taken : session->stored;
}

static struct message message_of(const struct session *session, enum message_kind kind)
{
	return (struct message){ .kind = (int32_t)kind,
		                 .boot = session->boot,
		                 .connection = session->connection,
		                 .term = session->term,
		                 .acknowledged = kept_changes(session),
		                 .issued = session->issued };
}

static void acknowledge(struct session *session, struct session_outputs *outputs)
{
	struct message message = message_of(session, MESSAGE_ACK);

	session_send(outputs, &message);
	session->acknowledged = message.acknowledged;
	session->acknowledge_ms = 0;
}

/* Soon: more may come, and anything else that is said says it too. */
static void acknowledge_soon(struct session *session, int64_t now_ms,
                             struct session_outputs *outputs)
{
	if (kept_changes(session) <= session->acknowledged)
		return;
	if (session->policy.acknowledge_ms == 0)
		acknowledge(session, outputs);
	else if (session->acknowledge_ms == 0)
		session->acknowledge_ms = max64(now_ms + session->policy.acknowledge_ms, 1);
}

/* Forgets the state of this connection. */
static void close_connection(struct session *session)
{
	session->open = session->synced = false;
	session->taken = session->stored = session->commanded = session->acknowledged = 0;
	session->issued = session->beat_ms = session->acknowledge_ms = 0;
	session->given_count = session->ended_count = 0;
	starts_clear(&session->starts);
	drop_pending(session, INT64_MAX);
}

/* `older`: what the node's next connection must exceed. */
static void session_refuse(const struct session *session, const struct message *to, int64_t older,
                           const char *reason, struct session_outputs *outputs)
{
	struct message message = { .kind = MESSAGE_REFUSE,
		                   .boot = to->boot,
		                   .connection = to->connection,
		                   .term = session->term,
		                   .refusal = { older, reason } };

	session_send(outputs, &message);
	session_output(outputs, SESSION_CLOSE);
}

/* A scheduler that cannot be sure to be the active one gives nothing. */
static struct renewal session_renew(struct session *session, int64_t now_ms, int64_t sent_ms)
{
	if (now_ms - session->active_ms > session->policy.standing_ms)
		return (struct renewal){ sent_ms, 0 };
	session->renewed_ms = now_ms;
	return (struct renewal){ sent_ms, session->policy.lease_ms };
}

static bool check_hello(const struct session *session, const struct message *message,
                        struct session_outputs *outputs)
{
	struct error reason = { 0 };

	if (message->term > session->term)
		error_set(&reason, ERROR_CONFLICT,
		          "this scheduler has term %lld, and one of term %lld was seen",
		          (long long)session->term, (long long)message->term);
	else if (message->hello.protocol < NODE_PROTOCOL_LEAST ||
	         message->hello.protocol > NODE_PROTOCOL)
		message_refuse_protocol(&reason, message->hello.protocol);
	else if (strcmp(message->hello.name, session->name) != 0)
		error_set(&reason, ERROR_INVALID, "the node's name is %s, not %s", session->name,
		          message->hello.name);
	else if (message->connection < session->connection)
		error_set(&reason, ERROR_CONFLICT, "connection %lld is older than %lld",
		          (long long)message->connection, (long long)session->connection);
	if (reason.code == ERROR_NONE)
		return true;
	session_refuse(session, message, session->connection, reason.text, outputs);
	return false;
}

static void hello(struct session *session, int64_t now_ms, const struct message *message,
                  struct session_outputs *outputs)
{
	if (!check_hello(session, message, outputs))
		return;
	if (message->connection == session->connection && !session->open) {
		session_refuse(session, message, session->connection, "this connection has ended",
		               outputs);
		return;
	}
	if (message->connection > session->connection) {
		close_connection(session);
		session->connection = message->connection;
		session->open = true;
		session->protocol = message->hello.protocol;
		free(session->boot);
		session->boot = memory_text(message->boot);
	}
	session->heard_ms = now_ms;
	struct message welcome = message_of(session, MESSAGE_WELCOME);
	welcome.renewal = session_renew(session, now_ms, message->hello.sent_ms);
	session_send(outputs, &welcome);
}

static void set_state(struct session *session, enum node_state state,
                      struct session_outputs *outputs)
{
	struct command command = { .kind = COMMAND_NODE_STATE };

	session->state = state;
	command.node_state.name = session->name;
	command.node_state.state = state;
	if (session->known)
		session_command(session, &command, 0, outputs);
}

static void beat(struct session *session, int64_t now_ms, const struct message *message,
                 struct session_outputs *outputs)
{
	struct message answer = message_of(session, MESSAGE_RENEW);

	if (!session->synced || message->beat.sent_ms < session->beat_ms)
		return; /* an old one, that came late */
	session->beat_ms = message->beat.sent_ms;
	if (session->state == NODE_UNKNOWN)
		set_state(session, NODE_ONLINE, outputs);
	session_take_beat(session, &message->beat, outputs);
	session_output(outputs, SESSION_BEAT)->message = message;
	answer.renewal = session_renew(session, now_ms, message->beat.sent_ms);
	session_send(outputs, &answer);
}

/* The node had those when it made a change, and has them in all later ones. */
static void drop_given(struct session *session, int64_t up_to)
{
	size_t left = 0;

	for (size_t i = 0; i < session->given_count; i++)
		if (session->given[i].number > up_to)
			session->given[left++] = session->given[i];
	session->given_count = left;
}

/* In the order of their numbers: the first is a snapshot. */
static void numbered(struct session *session, int64_t now_ms, const struct message *message,
                     struct session_outputs *outputs)
{
	if (message->number != session->taken + 1) {
		acknowledge(session, outputs);
		return;
	}
	if (message->kind == MESSAGE_CHANGE && !session->synced) {
		session_refuse(session, message, session->connection, "a snapshot comes first",
		               outputs);
		close_connection(session);
		return;
	}
	session->taken++;
	drop_given(session, message->acknowledged);
	if (message->kind == MESSAGE_SNAPSHOT) {
		session->synced = session->known = true;
		session->state = NODE_ONLINE;
		session_note_snapshot(session, &message->snapshot);
		session_take_snapshot(session, message, outputs);
	} else {
		session_note_start(session, message);
		session_take_change(session, message, outputs);
	}
	session_send_held(session, now_ms, outputs);
	acknowledge_soon(session, now_ms, outputs);
}

/* Of a connection that this scheduler does not have: begun with another, or given
 * up. What is older than the present one is only late. */
static void stranger(const struct session *session, const struct message *message,
                     struct session_outputs *outputs)
{
	if (message->connection >= session->connection)
		session_refuse(session, message, session->connection,
		               "this connection is not known: connect again", outputs);
}

void session_message(struct session *session, int64_t now_ms, const struct message *message,
                     struct session_outputs *outputs)
{
	if (message->kind == MESSAGE_HELLO) {
		hello(session, now_ms, message, outputs);
		return;
	}
	bool ours = session->open && message->connection == session->connection &&
	            strcmp(message->boot, session->boot) == 0;
	if (message->kind == MESSAGE_REFUSE) {
		if (ours) {
			session_output(outputs, SESSION_NOTE)->message = message;
			session_output(outputs, SESSION_CLOSE);
			close_connection(session);
		}
		return;
	}
	if (!ours) {
		stranger(session, message, outputs);
		return;
	}
	session->heard_ms = max64(now_ms, session->heard_ms);
	if (message->acknowledged > 0 && message->acknowledged <= session->issued) {
		size_t before = session->pending_count;
		drop_pending(session, message->acknowledged);
		if (session->pending_count < before)
			session->pending_ms = now_ms;
	}
	if (message->kind == MESSAGE_SNAPSHOT || message->kind == MESSAGE_CHANGE)
		numbered(session, now_ms, message, outputs);
	else if (message->kind == MESSAGE_BEAT)
		beat(session, now_ms, message, outputs);
}

void session_send_order(struct session *session, int64_t now_ms, const struct node_order *order,
                        struct session_outputs *outputs)
{
	struct buffer buffer = { 0 };

	INVARIANT(session->pending_count == 0 ||
	          session->pending[session->pending_count - 1].number == session->issued);
	session->issued++;
	struct message message = message_of(session, MESSAGE_ORDER);
	message.number = session->issued;
	message.order = *order;
	message_encode(&buffer, &message);
	send_bytes(outputs, buffer.data, buffer.size);
	session->acknowledged = message.acknowledged;
	session->acknowledge_ms = 0;
	if (session->pending_count == 0)
		session->pending_ms = now_ms;
	array_reserve(session->pending, session->pending_capacity, session->pending_count + 1);
	session->pending[session->pending_count++] =
	    (struct session_pending){ message.number, buffer.data, buffer.size };
	if (order->kind == ORDER_STOP)
		return;
	array_reserve(session->given, session->given_capacity, session->given_count + 1);
	session->given[session->given_count++] =
	    (struct session_given){ message.number, order->reservation_id };
}

void session_stored(struct session *session, int64_t now_ms, int64_t connection, int64_t change,
                    struct session_outputs *outputs)
{
	if (!session->open || connection != session->connection || change > session->commanded)
		return;
	INVARIANT(session->stored <= session->commanded);
	session->stored = max64(session->stored, change);
	session_drop_ended(session);
	acknowledge_soon(session, now_ms, outputs);
}

void session_refused(struct session *session, int64_t now_ms, int64_t connection,
                     const struct error *error, struct session_outputs *outputs)
{
	(void)now_ms;
	if (!session->open || connection != session->connection)
		return;
	struct message message = message_of(session, MESSAGE_REFUSE);
	session_refuse(session, &message, session->connection, error->text, outputs);
	close_connection(session);
}

void session_disconnected(struct session *session, int64_t connection)
{
	if (connection == session->connection)
		close_connection(session);
}

void session_given_up(struct session *session, const char *reason, struct session_outputs *outputs)
{
	session->state = NODE_LOST;
	if (!session->open)
		return;
	struct message message = message_of(session, MESSAGE_REFUSE);
	session_refuse(session, &message, session->connection, reason, outputs);
	close_connection(session);
}

/* Nothing that is to stop without a lease runs any more from here on. */
static int64_t lost_ms(const struct session *session)
{
	const struct session_policy *policy = &session->policy;
	int64_t from_ms = max64(session->renewed_ms, session->since_ms + policy->standing_ms);

	return from_ms + policy->lease_ms + policy->grace_ms + policy->margin_ms;
}

static int64_t silent_ms(const struct session *session)
{
	return session->heard_ms + session->policy.silent_ms;
}

void session_time(struct session *session, int64_t now_ms, int64_t active_ms,
                  struct session_outputs *outputs)
{
	session->active_ms = max64(session->active_ms, active_ms);
	if (session->acknowledge_ms > 0 && now_ms >= session->acknowledge_ms)
		acknowledge(session, outputs);
	if (session->pending_count > 0 &&
	    now_ms - session->pending_ms >= session->policy.resend_ms) {
		for (size_t i = 0; i < session->pending_count; i++)
			send_bytes(outputs, session->pending[i].data, session->pending[i].size);
		session->pending_ms = now_ms;
	}
	if (now_ms < silent_ms(session))
		return;
	if (session->state == NODE_ONLINE)
		set_state(session, NODE_UNKNOWN, outputs);
	if (session->state == NODE_UNKNOWN && now_ms >= lost_ms(session)) {
		/* It comes back with a new connection, and a snapshot: much may have
		 * been given up that it still has. */
		close_connection(session);
		set_state(session, NODE_LOST, outputs);
	}
}

int64_t session_wake_ms(const struct session *session)
{
	int64_t wake_ms = session->acknowledge_ms > 0 ? session->acknowledge_ms : INT64_MAX;

	if (session->pending_count > 0)
		wake_ms = min64(wake_ms, session->pending_ms + session->policy.resend_ms);
	if (session->state == NODE_ONLINE)
		wake_ms = min64(wake_ms, silent_ms(session));
	if (session->state == NODE_UNKNOWN)
		wake_ms = min64(wake_ms, max64(silent_ms(session), lost_ms(session)));
	return wake_ms;
}

void session_set_peer(struct session *session, const char *peer)
{
	free(session->peer);
	session->peer = memory_text(peer);
}

const char *session_name(const struct session *session)
{
	return session->name;
}

int64_t session_connection(const struct session *session)
{
	return session->open ? session->connection : 0;
}

bool session_has_gpu(const struct session *session, const char *uuid)
{
	return told_has(&session->told, uuid);
}

bool session_is_synced(const struct session *session)
{
	return session->synced;
}

void session_outputs_clear(struct session_outputs *outputs)
{
	outputs->count = 0;
	arena_reset(&outputs->arena);
}

void session_outputs_free(struct session_outputs *outputs)
{
	free(outputs->at);
	arena_free(&outputs->arena);
	*outputs = (struct session_outputs){ 0 };
}
