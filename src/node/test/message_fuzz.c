/* message_fuzz.c - whatever the bytes, a message is refused or can be written and read again */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "node/message.h"
#include "node/node.h"
#include "node/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read is read again from what is written of it. It need not be the same bytes: texts
 * for people are cleaned, and what an older agent does not say comes after the rest. */
static void message_check(const struct message *message)
{
	struct buffer once = { 0 }, twice = { 0 };
	struct arena arena = { 0 };
	struct error error = { 0 };

	message_encode(&once, message);
	const struct message *again =
	    message_decode(&arena, (const uint8_t *)once.data, once.size, &error);
	INVARIANT(again != NULL);
	message_encode(&twice, again);
	INVARIANT(once.size == twice.size && memcmp(once.data, twice.data, once.size) == 0);
	buffer_clear(&twice);
	message_print(&twice, message);
	INVARIANT(!memchr(twice.data, '\n', twice.size));
	arena_free(&arena);
	buffer_free(&once);
	buffer_free(&twice);
}

/* A session takes anything that can be read, on a connection that is open. */
static void offer_to_session(const struct message *message)
{
	struct session_policy policy = session_policy_default();
	struct session *session = session_new("node", false, 1, 1000, &policy);
	struct session_outputs outputs = { 0 };
	struct message hello = { .kind = MESSAGE_HELLO,
		                 .boot = message->boot,
		                 .connection = message->connection,
		                 .hello = { "node", NODE_PROTOCOL, 0 } };
	struct message snapshot = { .kind = MESSAGE_SNAPSHOT,
		                    .boot = message->boot,
		                    .connection = message->connection,
		                    .number = 1 };

	session_message(session, 1000, &hello, &outputs);
	session_message(session, 1000, &snapshot, &outputs);
	session_message(session, 1001, message, &outputs);
	session_outputs_free(&outputs);
	session_delete(session);
}

/* And so does a node that is connected. */
static void offer_to_node(struct message *message)
{
	struct node_policy policy = node_policy_default();
	struct node_identity identity = { .name = "node", .boot = message->boot };
	struct local_node *node = node_new(&identity, &policy);
	struct outputs outputs = { 0 };
	struct gpu_reading gpu = { .uuid = "gpu", .capacity_mib = 1000, .healthy = true };
	struct message welcome = { .kind = MESSAGE_WELCOME,
		                   .boot = message->boot,
		                   .connection = 1,
		                   .term = message->term };
	struct input measured = { .kind = INPUT_MEASURED, .now_ms = 5 };

	measured.measured = (struct measured){ .number = 2, .gpus = &gpu, .gpu_count = 1 };
	message->connection = 1;
	node_apply(node, &(struct input){ .kind = INPUT_RESTART }, &outputs);
	node_apply(node, &(struct input){ .kind = INPUT_CONNECTED }, &outputs);
	node_apply(node, &(struct input){ .kind = INPUT_MESSAGE, .message = &welcome }, &outputs);
	node_apply(node, &measured, &outputs);
	node_apply(node, &(struct input){ .kind = INPUT_MESSAGE, .message = message }, &outputs);
	measured.measured.number = 3;
	node_apply(node, &measured, &outputs);
	node_check(node);
	outputs_free(&outputs);
	node_delete(node);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	struct error error = { 0 };
	struct message *message = message_decode(&arena, data, size, &error);

	INVARIANT(!message == (error.code != ERROR_NONE));
	if (message) {
		message_check(message);
		offer_to_session(message);
		offer_to_node(message);
	}
	arena_free(&arena);
	return 0;
}
