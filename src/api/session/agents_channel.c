/* agents_channel.c - channels to interactive sessions of tasks, through the connections of nodes */
#include <stdlib.h>

#include "api/session/agents_local.h"
#include "base/memory.h"

enum { CHANNELS_PER_NODE = 2048 };

/* `node` is NULL once nothing can come any more: then the timer ends it. */
struct agents_channel {
	int64_t id;
	struct agents *agents;
	struct agents_node *node;
	struct agents_channel *next, **link;
	void (*frame)(void *context, struct text frame);
	void (*closed)(void *context, const struct error *error);
	void *context;
	struct error error;
	struct timer timer;
};

static void channel_link(struct agents_channel *channel, struct agents_channel **list)
{
	channel->next = *list;
	channel->link = list;
	if (channel->next)
		channel->next->link = &channel->next;
	*list = channel;
}

static void channel_unlink(struct agents_channel *channel)
{
	*channel->link = channel->next;
	if (channel->next)
		channel->next->link = channel->link;
	if (channel->node)
		channel->node->channel_count--;
	channel->node = NULL;
}

static void channel_release(struct agents_channel *channel)
{
	channel_unlink(channel);
	loop_timer_clear(channel->agents->loop, &channel->timer);
	free(channel);
}

static void channel_end(struct agents_channel *channel, const struct error *error)
{
	void (*closed)(void *context, const struct error *error) = channel->closed;
	void *context = channel->context;
	struct error copy = *error;

	channel_release(channel);
	closed(context, &copy);
}

static void channel_on_timer(struct timer *timer)
{
	struct agents_channel *channel =
	    (struct agents_channel *)(void *)((char *)timer -
	                                      offsetof(struct agents_channel, timer));

	channel_end(channel, &channel->error);
}

/* The caller is told from the loop, never while it calls. */
static void channel_fail(struct agents_channel *channel, enum error_code code, const char *reason)
{
	channel_unlink(channel);
	channel_link(channel, &channel->agents->doomed_channels);
	error_set(&channel->error, code, "%s", reason);
	loop_timer_set(channel->agents->loop, &channel->timer, 0);
}

static void send_open(struct agents_channel *channel, const struct agents_channel_options *options)
{
	Agent__Envelope envelope = AGENT__ENVELOPE__INIT;
	Agent__SessionOpen open = AGENT__SESSION_OPEN__INIT;

	open.channel = channel->id;
	open.reservation_id = options->reservation_id;
	open.session_id = (char *)options->session_id;
	open.kind = (int32_t)options->kind;
	open.command = options->command;
	open.n_command = options->command_count;
	open.environment = options->environment;
	open.n_environment = options->environment_count;
	open.terminal = options->terminal;
	open.columns = (int32_t)options->columns;
	open.rows = (int32_t)options->rows;
	open.port = (int32_t)options->port;
	open.offset = options->offset;
	open.idle_ms = options->idle_ms;
	envelope.session_open = &open;
	if (!agents_stream_try(channel->node->stream, &envelope))
		channel_fail(channel, ERROR_UNAVAILABLE, "the node is busy: try again later");
}

struct agents_channel *agents_open_channel(struct agents *agents,
                                           const struct agents_channel_options *options)
{
	struct agents_channel *channel = NEW(struct agents_channel);
	struct agents_node *node = agents_find(agents, options->node);

	*channel = (struct agents_channel){ .id = ++agents->last_channel_id,
		                            .agents = agents,
		                            .frame = options->frame,
		                            .closed = options->closed,
		                            .context = options->context,
		                            .timer = TIMER(channel_on_timer) };
	channel_link(channel, &agents->doomed_channels);
	if (!node || !node->stream) {
		channel_fail(channel, ERROR_UNAVAILABLE,
		             "the node has no connection now: try again later");
	} else if (node->channel_count >= CHANNELS_PER_NODE) {
		channel_fail(channel, ERROR_FULL,
		             "the node has too many sessions: try again later");
	} else {
		channel_unlink(channel);
		channel->node = node;
		node->channel_count++;
		channel_link(channel, &node->channels);
		send_open(channel, options);
	}
	return channel;
}

void agents_channel_send(struct agents_channel *channel, struct text frame)
{
	Agent__Envelope envelope = AGENT__ENVELOPE__INIT;
	Agent__SessionData data = AGENT__SESSION_DATA__INIT;

	if (!channel->node || !channel->node->stream)
		return;
	data.channel = channel->id;
	/* protobuf-c only reads it, and has no const of its own. */
	data.frame = (ProtobufCBinaryData){ .len = frame.size, .data = (uint8_t *)frame.data };
	envelope.session_data = &data;
	if (!agents_stream_try(channel->node->stream, &envelope))
		channel_fail(channel, ERROR_UNAVAILABLE, "the node does not read: try again later");
}

void agents_close_channel(struct agents_channel *channel)
{
	Agent__Envelope envelope = AGENT__ENVELOPE__INIT;
	Agent__SessionClose close = AGENT__SESSION_CLOSE__INIT;

	if (channel->node && channel->node->stream) {
		close.channel = channel->id;
		envelope.session_close = &close;
		agents_stream_send(channel->node->stream, &envelope);
	}
	channel_release(channel);
}

static struct agents_channel *find_channel(const struct agents_node *node, int64_t id)
{
	struct agents_channel *channel = node->channels;

	while (channel && channel->id != id)
		channel = channel->next;
	return channel;
}

void agents_channel_data(struct agents_node *node, const Agent__SessionData *data)
{
	struct agents_channel *channel = find_channel(node, data->channel);

	if (channel)
		channel->frame(channel->context,
		               (struct text){ (const char *)data->frame.data, data->frame.len });
}

void agents_channel_closed(struct agents_node *node, const Agent__SessionClose *close)
{
	struct agents_channel *channel = find_channel(node, close->channel);
	struct error error = { 0 };
	bool known = close->code >= ERROR_INVALID && close->code <= ERROR_UNAVAILABLE;

	if (!channel)
		return;
	if (close->error[0])
		error_set(&error, known ? (enum error_code)close->code : ERROR_UNAVAILABLE, "%s",
		          close->error);
	channel_end(channel, &error);
}

void agents_channel_end_all(struct agents_node *node, const char *reason)
{
	while (node->channels)
		channel_fail(node->channels, ERROR_UNAVAILABLE, reason);
}

void agents_channel_free(struct agents *agents)
{
	struct agents_channel *channel = agents->doomed_channels, *next;

	for (; channel; channel = next) {
		struct error error = channel->error;
		next = channel->next;
		channel_end(channel, &error);
	}
}
