/* link.c - the conversation with a scheduler: hello, snapshot, changes, beats, lease */
#include <stdlib.h>
#include <string.h>

#include "node/local.h"

static struct message message_of(const struct local_node *node, enum message_kind kind)
{
	return (struct message){ .kind = (int32_t)kind,
		                 .boot = node->identity.boot,
		                 .connection = node->kept.connection,
		                 .term = node->kept.term,
		                 .acknowledged = orders_kept(node),
		                 .protocol = node->link.protocol };
}

static void send_bytes(struct local_node *node, const void *data, size_t size)
{
	struct output *output = node_output(node, OUTPUT_SEND, 0);

	output->data = arena_copy(&node->outputs->arena, data, size);
	output->size = size;
}

static void link_send(struct local_node *node, const struct message *message)
{
	struct buffer buffer = { 0 };

	message_encode(&buffer, message);
	send_bytes(node, buffer.data, buffer.size);
	buffer_free(&buffer);
	node->link.acknowledged = max64(message->acknowledged, node->link.acknowledged);
}

/* Kept until it is acknowledged. */
static int64_t send_numbered(struct local_node *node, struct message *message)
{
	struct link *link = &node->link;
	struct buffer buffer = { 0 };

	INVARIANT(link->state >= LINK_WELCOME);
	message->number = ++link->sent;
	message_encode(&buffer, message);
	send_bytes(node, buffer.data, buffer.size);
	link->acknowledged = max64(message->acknowledged, link->acknowledged);
	if (link->pending_count == 0)
		link->pending_ms = node->now_ms;
	array_reserve(link->pending, link->pending_capacity, link->pending_count + 1);
	link->pending[link->pending_count++] =
	    (struct pending){ message->number, buffer.data, buffer.size };
	return message->number;
}

static void drop_pending(struct link *link, int64_t up_to)
{
	size_t dropped = 0;

	while (dropped < link->pending_count && link->pending[dropped].number <= up_to)
		free(link->pending[dropped++].data);
	if (dropped == 0)
		return;
	link->pending_count -= dropped;
	memmove(link->pending, link->pending + dropped,
	        link->pending_count * sizeof(*link->pending));
}

static void reset(struct local_node *node)
{
	struct link *link = &node->link;

	orders_drop_waiting(node);
	drop_pending(link, INT64_MAX);
	*link = (struct link){ .pending = link->pending,
		               .pending_capacity = link->pending_capacity,
		               .turned_down = link->turned_down,
		               .turned_down_capacity = link->turned_down_capacity };
	for (size_t i = 0; i < node->work_count; i++) {
		node->works[i]->told = false;
		node->works[i]->release_change = 0;
	}
}

/* The number is written down first: nothing that was said on an earlier
 * connection may be taken for this one's. */
void link_connected(struct local_node *node)
{
	reset(node);
	INVARIANT(node->link.state == LINK_DOWN && node->link.pending_count == 0);
	node->kept.connection++;
	node_write(node);
	node->link.state = LINK_HELLO;
	node->link.heard_ms = node->now_ms;
	node->link.protocol = node->next_protocol > 0 ? node->next_protocol : NODE_PROTOCOL;
	node->next_protocol = 0; /* the scheduler may be another one after this connection */
	struct message hello = message_of(node, MESSAGE_HELLO);
	hello.hello = (struct hello){ node->identity.name, node->link.protocol, node->now_ms };
	link_send(node, &hello);
}

void link_disconnected(struct local_node *node)
{
	reset(node);
}

static void link_give_up(struct local_node *node, const char *message)
{
	struct output *output = node_output(node, OUTPUT_DISCONNECT, 0);

	output->message = arena_string(&node->outputs->arena, message);
	reset(node);
}

static void link_renew(struct local_node *node, const struct renewal *renewal)
{
	int64_t until_ms = min64(renewal->sent_ms, node->now_ms) + renewal->lease_ms;

	if (renewal->lease_ms == 0 || until_ms <= node->lease_until_ms)
		return;
	node->lease_until_ms = until_ms;
	node_output(node, OUTPUT_LEASE, 0)->until_ms = until_ms;
}

static void welcomed(struct local_node *node, const struct message *message)
{
	struct link *link = &node->link;

	if (link->state != LINK_HELLO)
		return;
	if (message->term > node->kept.term) {
		node->kept.term = message->term;
		node_write(node);
	}
	link->term = message->term;
	link->state = LINK_WELCOME;
	link_renew(node, &message->renewal);
	link_want_snapshot(node);
}

void link_want_snapshot(struct local_node *node)
{
	if (node->link.state < LINK_WELCOME || node->link.snapshot_wanted)
		return; /* the one that is wanted already will tell this too */
	node->link.snapshot_wanted = true;
	node->link.snapshot_asked = node_ask_measure(node);
}

/* What others decide by is told at once, the rest when its time has come. */
static bool take_figures(struct local_node *node)
{
	struct link *link = &node->link;
	uint64_t facts = report_facts(node);

	if (!link->measured_since_beat)
		return false;
	if (link->figures_told && facts == link->facts_told &&
	    node->now_ms - link->figures_ms < node->policy.figures_ms)
		return false;
	link->figures_told = true;
	link->figures_ms = node->now_ms;
	link->facts_told = facts;
	return true;
}

static void send_beat(struct local_node *node)
{
	struct arena arena = { 0 };
	struct message beat = message_of(node, MESSAGE_BEAT);

	report_beat(node, &beat, take_figures(node), &arena);
	link_send(node, &beat);
	arena_free(&arena);
	node->link.measured_since_beat = false;
}

void link_measured(struct local_node *node)
{
	struct link *link = &node->link;
	struct arena arena = { 0 };
	struct message snapshot = message_of(node, MESSAGE_SNAPSHOT);
	bool first = link->state == LINK_WELCOME;

	INVARIANT(link->snapshot_wanted && node->measure.number >= link->snapshot_asked);
	report_snapshot(node, &snapshot, &arena);
	send_numbered(node, &snapshot);
	arena_free(&arena);
	link->snapshot_wanted = false;
	link->state = LINK_UP;
	if (!first)
		return;
	for (size_t i = 0; i < node->work_count; i++)
		work_tell_end(node, node->works[i]);
}

int64_t link_change(struct local_node *node, const struct change *change)
{
	if (node->link.state != LINK_UP)
		return 0;
	struct message message = message_of(node, MESSAGE_CHANGE);
	message.change = *change;
	return send_numbered(node, &message);
}

/* The end of a work is forgotten once the scheduler has stored it and every order given
 * before that has arrived, so that no late order can start it again. */
static void take_acknowledgement(struct local_node *node)
{
	struct link *link = &node->link;

	INVARIANT(link->forgotten <= link->stored && link->stored <= link->sent);
	if (link->stored == link->forgotten || link->stored_issued > link->received)
		return;
	link->forgotten = link->stored;
	drop_pending(link, link->stored);
	link->pending_ms = node->now_ms;
	orders_acknowledged(node, link->stored);
	for (size_t i = node->work_count; i-- > 0;) {
		struct work *work = node->works[i];
		if (work->release_change > 0 && work->release_change <= link->stored)
			work_acknowledged(node, work);
	}
}

static void acknowledged(struct local_node *node, const struct message *message)
{
	struct link *link = &node->link;

	if (message->acknowledged > link->sent || message->acknowledged <= link->stored)
		return;
	link->stored = message->acknowledged;
	link->stored_issued = message->issued;
}

static void refused(struct local_node *node, const struct message *message)
{
	/* Written with the next connection. */
	node->kept.connection = max64(node->kept.connection, message->refusal.connection);
	if (node->link.state == LINK_HELLO)
		node->next_protocol = message_refused_protocol(message->refusal.message);
	link_give_up(node, message->refusal.message);
}

static void refuse_old_term(struct local_node *node, const struct message *message)
{
	struct message refusal = message_of(node, MESSAGE_REFUSE);
	struct error error = { 0 };

	error_set(&error, ERROR_CONFLICT,
	          "orders of term %lld are not followed: a scheduler of term %lld was seen",
	          (long long)message->term, (long long)node->kept.term);
	refusal.refusal.message = error.text;
	link_send(node, &refusal);
	link_give_up(node, error.text);
}

/* Whoever the connection is with is not the active one any more, even where the
 * one that is was not asked. */
static void leave_for_newer(struct local_node *node, const struct message *message)
{
	struct error error = { 0 };

	error_set(&error, ERROR_CONFLICT,
	          "a scheduler of term %lld was seen, and this one has term %lld",
	          (long long)message->term, (long long)node->link.term);
	node->kept.term = message->term;
	node_write(node);
	link_give_up(node, error.text);
}

void link_message(struct local_node *node, const struct message *message)
{
	struct link *link = &node->link;

	if (link->state == LINK_DOWN || message->connection != node->kept.connection ||
	    strcmp(message->boot, node->identity.boot) != 0)
		return;
	if (message->kind == MESSAGE_REFUSE) {
		refused(node, message);
		return;
	}
	if (message->term < node->kept.term) {
		refuse_old_term(node, message);
		return;
	}
	if (link->state != LINK_HELLO && message->term > link->term) {
		leave_for_newer(node, message);
		return;
	}
	if (message->kind == MESSAGE_WELCOME) {
		link->heard_ms = node->now_ms;
		welcomed(node, message);
		return;
	}
	if (link->state == LINK_HELLO)
		return;
	link->heard_ms = node->now_ms;
	acknowledged(node, message);
	if (message->kind == MESSAGE_RENEW)
		link_renew(node, &message->renewal);
	else if (message->kind == MESSAGE_ORDER)
		orders_take(node, message);
	take_acknowledgement(node);
}

static void resend(struct local_node *node)
{
	for (size_t i = 0; i < node->link.pending_count; i++)
		send_bytes(node, node->link.pending[i].data, node->link.pending[i].size);
	node->link.pending_ms = node->now_ms;
}

static int64_t silence_ms(const struct local_node *node)
{
	return max64(node->policy.silence_ms, 3 * node->policy.beat_ms);
}

void link_time(struct local_node *node)
{
	struct link *link = &node->link;
	bool beat = node->next_beat_ms <= node->now_ms;

	if (beat)
		node->next_beat_ms = node_later(node, max64(node->policy.beat_ms, 1));
	if (link->state == LINK_DOWN)
		return;
	if (node->now_ms - link->heard_ms >= silence_ms(node)) {
		link_give_up(node, "the scheduler is silent");
		return;
	}
	if (link->pending_count > 0 && node->now_ms - link->pending_ms >= node->policy.resend_ms)
		resend(node);
	if (beat && link->state == LINK_UP)
		send_beat(node);
}

int64_t link_wake_ms(const struct local_node *node)
{
	const struct link *link = &node->link;
	int64_t wake_ms = INT64_MAX;

	if (link->state != LINK_DOWN)
		wake_ms = link->heard_ms + silence_ms(node);
	if (link->pending_count > 0)
		wake_ms = min64(wake_ms, link->pending_ms + node->policy.resend_ms);
	if (link->acknowledge_ms > 0)
		wake_ms = min64(wake_ms, link->acknowledge_ms);
	return wake_ms;
}

void link_acknowledge(struct local_node *node)
{
	struct link *link = &node->link;
	bool again = link->acknowledged < 0; /* an order came twice: somebody misses it */

	if (link->state != LINK_UP || orders_kept(node) == link->acknowledged) {
		link->acknowledge_ms = 0;
		return;
	}
	if (link->acknowledge_ms == 0)
		link->acknowledge_ms = max64(node_later(node, node->policy.acknowledge_ms), 1);
	if (!again && node->now_ms < link->acknowledge_ms)
		return;
	link->acknowledge_ms = 0;
	struct message message = message_of(node, MESSAGE_ACK);
	link_send(node, &message);
	node->link.acknowledged = message.acknowledged;
}

void link_free(struct link *link)
{
	drop_pending(link, INT64_MAX);
	free(link->pending);
	free(link->turned_down);
}
