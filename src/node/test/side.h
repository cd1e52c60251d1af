/* side.h - a session in a test, with a node that says what the test wants */
#ifndef NODE_TEST_SIDE_H
#define NODE_TEST_SIDE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "node/session.h"

/* A session of term 5 with node-1, which says what the test wants. */
struct side {
	struct session *session;
	struct session_policy policy;
	struct session_outputs outputs;
	struct arena arena;
	int64_t now_ms, connection, changes;
	struct device devices[1];
	struct rows slowdowns_c;
};

static inline struct side *side_new(bool known)
{
	struct side *side = NEW(struct side);

	side->policy = session_policy_default();
	side->policy.hot_c = 75;
	side->policy.cool_c = 70;
	side->now_ms = 500000;
	side->session = session_new("node-1", known, 5, side->now_ms, &side->policy);
	side->devices[0] = (struct device){ .uuid = "gpu-a",
		                            .model = "H100",
		                            .capacity_mib = 80000,
		                            .temperature_c = 40,
		                            .healthy = true };
	return side;
}

static inline void side_free(struct side *side)
{
	session_delete(side->session);
	session_outputs_free(&side->outputs);
	arena_free(&side->arena);
	free(side);
}

static inline struct message head(const struct side *side, enum message_kind kind)
{
	return (struct message){ .kind = (int32_t)kind,
		                 .boot = "boot-1",
		                 .connection = side->connection };
}

static inline void say(struct side *side, struct message message)
{
	session_outputs_clear(&side->outputs);
	session_message(side->session, side->now_ms, &message, &side->outputs);
}

static inline void hello(struct side *side, int64_t connection)
{
	side->connection = connection;
	side->changes = 0;
	struct message message = head(side, MESSAGE_HELLO);
	message.hello = (struct hello){ "node-1", NODE_PROTOCOL, 77 };
	say(side, message);
}

static inline void snapshot(struct side *side)
{
	struct message message = head(side, MESSAGE_SNAPSHOT);

	message.number = ++side->changes;
	message.snapshot = (struct node_report_command){ .name = "node-1",
		                                         .boot = "boot-1",
		                                         .devices = side->devices,
		                                         .device_count = 1,
		                                         .slowdowns_c = side->slowdowns_c,
		                                         .snapshot = true };
	say(side, message);
}

static inline void connect_node(struct side *side)
{
	hello(side, side->connection + 1);
	snapshot(side);
}

static inline void change(struct side *side, struct change what)
{
	struct message message = head(side, MESSAGE_CHANGE);

	message.number = ++side->changes;
	message.change = what;
	say(side, message);
}

static inline void beat(struct side *side, int64_t foreign_mib, int64_t temperature_c, bool healthy,
                        const struct use_sample *use)
{
	struct message message = head(side, MESSAGE_BEAT);
	struct gpu_sample sample = { .uuid = "gpu-a",
		                     .foreign_mib = foreign_mib,
		                     .temperature_c = temperature_c,
		                     .healthy = healthy };

	message.beat = (struct beat){ .sent_ms = side->now_ms,
		                      .samples = &sample,
		                      .sample_count = 1,
		                      .uses = use,
		                      .use_count = use ? 1 : 0 };
	say(side, message);
}

static inline int commands(const struct side *side)
{
	int count = 0;

	for (size_t i = 0; i < side->outputs.count; i++)
		count += side->outputs.at[i].kind == SESSION_COMMAND;
	return count;
}

static inline const struct command *command(const struct side *side, enum command_kind kind)
{
	for (size_t i = 0; i < side->outputs.count; i++)
		if (side->outputs.at[i].kind == SESSION_COMMAND &&
		    side->outputs.at[i].command->kind == kind)
			return side->outputs.at[i].command;
	return NULL;
}

/* The last message of this kind that was sent, or NULL. */
static inline struct message *sent(struct side *side, enum message_kind kind)
{
	struct error error = { 0 };

	for (size_t i = side->outputs.count; i-- > 0;) {
		const struct session_output *output = &side->outputs.at[i];
		if (output->kind != SESSION_SEND)
			continue;
		struct message *message =
		    message_decode(&side->arena, output->data, output->size, &error);
		assert_non_null(message);
		if (message->kind == (int32_t)kind)
			return message;
	}
	return NULL;
}

static inline void stored(struct side *side, int64_t number)
{
	session_outputs_clear(&side->outputs);
	session_stored(side->session, side->now_ms, side->connection, number, &side->outputs);
}

static inline void time_passes(struct side *side, int64_t ms)
{
	side->now_ms += ms;
	session_outputs_clear(&side->outputs);
	session_time(side->session, side->now_ms, side->now_ms, &side->outputs);
}

static inline const char *a_uuid(void *context, int64_t gpu_id)
{
	(void)context;
	return gpu_id == 3 ? "gpu-a" : NULL;
}
static inline const char *a_payload(void *context, int64_t job_id, int64_t task)
{
	(void)context;
	(void)job_id;
	(void)task;
	return "train";
}
static inline const char *a_name(void *context, int64_t model_id)
{
	(void)context;
	(void)model_id;
	return "llama";
}
static const struct session_lookup lookup = { a_uuid, a_payload, a_name, a_name, NULL };

static inline void order(struct side *side, enum effect_kind kind, int64_t reservation_id)
{
	static const int64_t rows[PART_WIDTH] = {
		[PART_GPU] = 3, [PART_MIB] = 1000, [PART_SHARE] = 13, [PART_WHOLE] = 1
	};
	struct effect effect = { .kind = kind };

	if (kind == EFFECT_LOAD)
		effect.load = (struct load_order){ .reservation_id = reservation_id,
			                           .model_id = 2,
			                           .parts = { rows, 1 },
			                           .kv_cache = "",
			                           .command = "" };
	else
		effect.order = (struct task_order){ .reservation_id = reservation_id,
			                            .job_id = 9,
			                            .parts = { rows, 1 },
			                            .grace_ms = 11,
			                            .lease_loss = LEASE_STOP };
	session_outputs_clear(&side->outputs);
	session_order(side->session, side->now_ms, &effect, &lookup, &side->outputs);
}

#define SIDE_TEST(name)                                                                            \
	static void name##_on(struct side *side);                                                  \
	static void name(void **state)                                                             \
	{                                                                                          \
		struct side *side = side_new(true);                                                \
		(void)state;                                                                       \
		name##_on(side);                                                                   \
		side_free(side);                                                                   \
	}                                                                                          \
	static void name##_on(struct side *side)

#endif
