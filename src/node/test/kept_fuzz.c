/* kept_fuzz.c - whatever was on the disk, an agent refuses it or starts on it */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "node/node.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void kept_start(struct local_node *node)
{
	struct outputs outputs = { 0 };
	struct input time = { .kind = INPUT_TIME, .now_ms = 100000 };

	node_apply(node, &(struct input){ .kind = INPUT_RESTART, .now_ms = 5 }, &outputs);
	node_check(node);
	node_apply(node, &time, &outputs);
	node_check(node);
	outputs_free(&outputs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct node_policy policy = node_policy_default();
	struct node_identity identity = { .name = "node", .boot = "boot" };
	struct local_node *node = node_new(&identity, &policy);
	struct error error = { 0 };
	struct arena arena = { 0 };
	struct kept_work kept;
	struct node_order order;

	if (kept_work_decode(&arena, data, size, &kept, &order, &error)) {
		struct buffer buffer = { 0 };
		kept_work_encode(&buffer, &kept, &order);
		/* What an older agent did not write comes behind what it did. */
		INVARIANT(buffer.size >= size && memcmp(buffer.data, data, size) == 0);
		buffer_free(&buffer);
		if (node_load(node, kept.reservation_id, data, size, &error))
			kept_start(node);
	} else {
		INVARIANT(error.code == ERROR_CORRUPT);
		if (node_load(node, 0, data, size, &error))
			kept_start(node);
	}
	arena_free(&arena);
	node_delete(node);
	return 0;
}
