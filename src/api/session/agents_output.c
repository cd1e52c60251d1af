/* agents_output.c - the output of tasks, fetched from their nodes while somebody reads it */
#include <stdlib.h>

#include "api/session/agents_local.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/number.h"

enum {
	WINDOW = 256 << 10,    /* bytes that a node may send ahead of what was taken */
	STEP = 64 << 10,       /* taken bytes that are worth telling */
	OUTPUTS_PER_NODE = 64, /* that are read at once */
};
#define OFFSET_MAX (INT64_C(1) << 60)

/* `node` is NULL once there is nothing more to come: then the timer ends it. While `busy`
 * the reader is being called, and it is freed after that. */
struct agents_output {
	int64_t id;
	struct agents *agents;
	struct agents_node *node;
	struct agents_output *next, **link;
	struct agents_output_options options;
	int64_t taken, told; /* offsets: of the next byte, and the last that the node was told */
	int64_t ahead;       /* bytes that came since the node was told */
	struct error error;
	struct timer timer;
	bool paused, busy, stopped;
};

static void link_output(struct agents_output *output, struct agents_output **list)
{
	output->next = *list;
	output->link = list;
	if (output->next)
		output->next->link = &output->next;
	*list = output;
}

static void unlink_output(struct agents_output *output)
{
	if (output->link) {
		*output->link = output->next;
		if (output->next)
			output->next->link = output->link;
	}
	if (output->node)
		output->node->output_count--;
	output->node = NULL;
	output->link = NULL;
}

static void agents_output_release(struct agents_output *output)
{
	unlink_output(output);
	loop_timer_clear(output->agents->loop, &output->timer);
	free(output);
}

static void agents_output_end(struct agents_output *output, bool failed)
{
	struct agents_output_options options = output->options;
	struct error error = output->error;

	agents_output_release(output);
	options.end(options.context, failed ? &error : NULL);
}

static void agents_output_on_timer(struct timer *timer)
{
	struct agents_output *output =
	    (struct agents_output *)(void *)((char *)timer - offsetof(struct agents_output, timer));

	agents_output_end(output, true);
}

/* The reader is told from the loop, never while it calls. */
static void agents_output_fail(struct agents_output *output, enum error_code code,
                               const char *reason)
{
	unlink_output(output);
	link_output(output, &output->agents->doomed);
	error_set(&output->error, code, "%s", reason);
	loop_timer_set(output->agents->loop, &output->timer, 0);
}

static void send_request(struct agents_output *output)
{
	Agent__Envelope envelope = AGENT__ENVELOPE__INIT;
	Agent__OutputRequest message = AGENT__OUTPUT_REQUEST__INIT;

	message.request_id = output->id;
	message.reservation_id = output->options.reservation_id;
	message.job_id = output->options.job_id;
	message.task = output->options.task;
	message.follow = output->options.follow;
	message.offset = output->options.offset;
	message.errors = output->options.errors;
	message.window = WINDOW;
	envelope.output_request = &message;
	agents_stream_send(output->node->stream, &envelope);
}

struct agents_output *agents_read_output(struct agents *agents,
                                         const struct agents_output_options *options)
{
	struct agents_output *output = NEW(struct agents_output);
	struct agents_node *node = agents_find(agents, options->node);

	output->agents = agents;
	output->options = *options;
	output->options.node = NULL;
	output->id = ++agents->last_output_id;
	output->timer = TIMER(agents_output_on_timer);
	if (!node || !node->stream) {
		agents_output_fail(output, ERROR_UNAVAILABLE,
		                   "the node has no connection now: try again later");
	} else if (node->output_count >= OUTPUTS_PER_NODE) {
		agents_output_fail(output, ERROR_FULL,
		                   "too much output of this node is being read: try again later");
	} else {
		output->node = node;
		link_output(output, &node->outputs);
		node->output_count++;
		send_request(output);
	}
	return output;
}

void agents_stop_output(struct agents_output *output)
{
	Agent__Envelope envelope = AGENT__ENVELOPE__INIT;
	Agent__OutputStop stop = AGENT__OUTPUT_STOP__INIT;

	if (output->node && output->node->stream) {
		stop.request_id = output->id;
		envelope.output_stop = &stop;
		agents_stream_send(output->node->stream, &envelope);
	}
	if (output->busy)
		output->stopped = true;
	else
		agents_output_release(output);
}

static void tell_taken(struct agents_output *output)
{
	Agent__Envelope envelope = AGENT__ENVELOPE__INIT;
	Agent__OutputTaken taken = AGENT__OUTPUT_TAKEN__INIT;

	if (!output->node || !output->node->stream)
		return;
	taken.request_id = output->id;
	taken.offset = output->taken;
	envelope.output_taken = &taken;
	output->told = output->taken;
	output->ahead = 0;
	agents_stream_send(output->node->stream, &envelope);
}

void agents_pause_output(struct agents_output *output, bool paused)
{
	output->paused = paused;
	if (!paused && output->taken > output->told)
		tell_taken(output);
}

static struct agents_output *agents_output_find(const struct agents_node *node, int64_t id)
{
	struct agents_output *output = node->outputs;

	while (output && output->id != id)
		output = output->next;
	return output;
}

/* Whether the node may send that: nothing twice, and no more ahead than it was asked for. What
 * comes is kept for a reader that may be slow, so nothing else bounds it. */
static bool is_due(const struct agents_output *output, const Agent__OutputChunk *chunk)
{
	return chunk->offset >= output->taken && chunk->offset <= OFFSET_MAX &&
	       chunk->data.len <= WINDOW && output->ahead + (int64_t)chunk->data.len <= WINDOW;
}

static void cut_off(struct agents_output *output)
{
	Agent__Envelope envelope = AGENT__ENVELOPE__INIT;
	Agent__OutputStop stop = AGENT__OUTPUT_STOP__INIT;
	struct agents_stream *stream = output->node->stream;

	log_at(LOG_WARNING, "a node sent output that it was not asked for",
	       LOG_TEXT("node", output->node->name), LOG_NUMBER("job", output->options.job_id),
	       LOG_NUMBER("window_bytes", WINDOW));
	stop.request_id = output->id;
	envelope.output_stop = &stop;
	agents_output_fail(output, ERROR_UNAVAILABLE,
	                   "the node sent more output than it was asked for");
	if (stream)
		agents_stream_send(stream, &envelope);
}

void agents_output_chunk(struct agents_node *node, const Agent__OutputChunk *chunk)
{
	struct agents_output *output = agents_output_find(node, chunk->request_id);

	if (!output)
		return;
	if (chunk->data.len > 0 && !is_due(output, chunk)) {
		cut_off(output);
		return;
	}
	if (chunk->data.len > 0) {
		output->ahead += (int64_t)chunk->data.len;
		output->busy = true;
		output->options.part(output->options.context, chunk->offset, chunk->data.data,
		                     chunk->data.len);
		output->busy = false;
		if (output->stopped) {
			agents_output_release(output);
			return;
		}
		output->taken = chunk->offset + (int64_t)chunk->data.len;
	}
	if (chunk->end && chunk->error[0])
		error_set(&output->error, ERROR_NOT_FOUND, "%s", chunk->error);
	if (chunk->end)
		agents_output_end(output, chunk->error[0] != '\0');
	else if (!output->paused && output->taken - output->told >= STEP)
		tell_taken(output);
}

void agents_output_end_all(struct agents_node *node, const char *reason)
{
	while (node->outputs)
		agents_output_fail(node->outputs, ERROR_UNAVAILABLE, reason);
}

void agents_output_free(struct agents *agents)
{
	struct agents_output *output = agents->doomed, *next;

	agents->doomed = NULL;
	for (; output; output = next) {
		next = output->next;
		output->link = NULL;
		agents_output_end(output, true);
	}
}
