/* agents_input.c - the standard input of tasks, passed on to their nodes part by part */
#include <stdlib.h>

#include "api/session/agents_local.h"
#include "base/memory.h"

enum {
	INPUTS_PER_NODE = 64, /* parts that are on their way at once */
	HELD_MS = 20000,      /* until a part that is not taken is answered with what was */
	LOST_MS = 20000,      /* for that answer */
};

/* `node` is NULL once no answer can come any more: then the timer ends it. */
struct agents_input {
	int64_t id;
	struct agents *agents;
	struct agents_node *node;
	struct agents_input *next, **link;
	struct agents_input_options options;
	struct error error;
	struct timer timer;
	bool stopped; /* the node was told to answer */
};

static void agents_input_link(struct agents_input *input, struct agents_input **list)
{
	input->next = *list;
	input->link = list;
	if (input->next)
		input->next->link = &input->next;
	*list = input;
}

static void agents_input_unlink(struct agents_input *input)
{
	if (input->link) {
		*input->link = input->next;
		if (input->next)
			input->next->link = input->link;
	}
	if (input->node)
		input->node->input_count--;
	input->node = NULL;
	input->link = NULL;
}

static void agents_input_release(struct agents_input *input)
{
	agents_input_unlink(input);
	loop_timer_clear(input->agents->loop, &input->timer);
	free(input);
}

static void agents_input_end(struct agents_input *input, const struct agents_input_answer *answer,
                             const struct error *error)
{
	struct agents_input_options options = input->options;

	agents_input_release(input);
	options.done(options.context, answer, error);
}

static void agents_input_send_stop(struct agents_input *input)
{
	Agent__Envelope envelope = AGENT__ENVELOPE__INIT;
	Agent__InputStop stop = AGENT__INPUT_STOP__INIT;

	if (!input->node || !input->node->stream)
		return;
	stop.request_id = input->id;
	envelope.input_stop = &stop;
	agents_stream_send(input->node->stream, &envelope);
}

static void agents_input_on_timer(struct timer *timer)
{
	struct agents_input *input =
	    (struct agents_input *)(void *)((char *)timer - offsetof(struct agents_input, timer));

	if (input->node && !input->stopped) {
		input->stopped = true;
		loop_timer_set(input->agents->loop, timer, LOST_MS);
		agents_input_send_stop(input);
		return;
	}
	if (input->error.code == ERROR_NONE)
		error_set(&input->error, ERROR_UNAVAILABLE,
		          "the node does not answer: its agent may be too old to take input");
	struct error error = input->error;
	agents_input_end(input, NULL, &error);
}

/* The caller is told from the loop, never while it calls. */
static void agents_input_fail(struct agents_input *input, enum error_code code, const char *reason)
{
	agents_input_unlink(input);
	agents_input_link(input, &input->agents->doomed_inputs);
	error_set(&input->error, code, "%s", reason);
	loop_timer_set(input->agents->loop, &input->timer, 0);
}

static void agents_input_send(struct agents_input *input)
{
	Agent__Envelope envelope = AGENT__ENVELOPE__INIT;
	Agent__InputChunk chunk = AGENT__INPUT_CHUNK__INIT;
	struct text data = input->options.data;

	chunk.request_id = input->id;
	chunk.reservation_id = input->options.reservation_id;
	chunk.offset = input->options.offset;
	/* protobuf-c only reads it, and has no const of its own. */
	chunk.data = (ProtobufCBinaryData){ .len = data.size, .data = (uint8_t *)data.data };
	chunk.end = input->options.end;
	envelope.input_chunk = &chunk;
	agents_stream_send(input->node->stream, &envelope);
}

struct agents_input *agents_write_input(struct agents *agents,
                                        const struct agents_input_options *options)
{
	struct agents_input *input = NEW(struct agents_input);
	struct agents_node *node = agents_find(agents, options->node);

	input->agents = agents;
	input->options = *options;
	input->options.node = NULL;
	input->id = ++agents->last_input_id;
	input->timer = TIMER(agents_input_on_timer);
	if (!node || !node->stream) {
		agents_input_fail(input, ERROR_UNAVAILABLE,
		                  "the node has no connection now: try again later");
	} else if (node->input_count >= INPUTS_PER_NODE) {
		agents_input_fail(input, ERROR_FULL,
		                  "too many tasks of this node are given input: try again later");
	} else {
		input->node = node;
		agents_input_link(input, &node->inputs);
		node->input_count++;
		loop_timer_set(agents->loop, &input->timer, HELD_MS);
		agents_input_send(input);
	}
	input->options.data = (struct text){ NULL, 0 };
	return input;
}

void agents_stop_input(struct agents_input *input)
{
	agents_input_send_stop(input);
	agents_input_release(input);
}

void agents_input_taken(struct agents_node *node, const Agent__InputTaken *taken)
{
	struct agents_input *input = node->inputs;
	struct agents_input_answer answer = { .offset = taken->offset, .closed = taken->closed };
	struct error error = { 0 };

	while (input && input->id != taken->request_id)
		input = input->next;
	if (!input)
		return;
	if (taken->error[0])
		error_set(&error, ERROR_CONFLICT, "%s", taken->error);
	else if (taken->offset < 0)
		error_set(&error, ERROR_UNAVAILABLE, "the node answered with a negative offset");
	if (error.code != ERROR_NONE)
		agents_input_end(input, NULL, &error);
	else
		agents_input_end(input, &answer, NULL);
}

void agents_input_end_all(struct agents_node *node, const char *reason)
{
	while (node->inputs)
		agents_input_fail(node->inputs, ERROR_UNAVAILABLE, reason);
}

void agents_input_free(struct agents *agents)
{
	struct agents_input *input = agents->doomed_inputs, *next;

	agents->doomed_inputs = NULL;
	for (; input; input = next) {
		struct error error = input->error;
		next = input->next;
		input->link = NULL;
		agents_input_end(input, NULL, &error);
	}
}
