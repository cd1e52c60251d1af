/* desk.h - a node in a test: a disk, GPUs and a scheduler that say what the test wants */
#ifndef NODE_TEST_DESK_H
#define NODE_TEST_DESK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "node/node.h"

#define DESK_GPUS 4
#define DESK_ROWS 64

struct desk_row {
	int64_t key;
	void *data;
	size_t size;
};

/* What the last input led to is in `outputs`, the messages of it in `sent`. */
struct desk {
	struct local_node *node;
	struct node_identity identity;
	struct node_policy policy;
	struct outputs outputs;
	struct message *sent[256];
	int sent_count;
	struct arena arena; /* of `sent` */
	struct desk_row disk[DESK_ROWS];
	int row_count;
	struct gpu_reading gpus[DESK_GPUS];
	int gpu_count;
	struct process_reading processes[32];
	int process_count;
	struct guard_reading guards[8];
	int guard_count;
	struct hidden_reading hidden[8];
	int hidden_count;
	int64_t now_ms, asked, connection, term, orders, lease_until_ms;
	int64_t changes; /* the highest number that the node sent */
	int64_t stored;  /* what orders acknowledge */
};

static inline struct desk_row *desk_row(struct desk *desk, int64_t key)
{
	for (int i = 0; i < desk->row_count; i++)
		if (desk->disk[i].key == key)
			return &desk->disk[i];
	return NULL;
}

static inline void desk_erase(struct desk *desk, int64_t key)
{
	struct desk_row *row = desk_row(desk, key);

	if (!row)
		return;
	free(row->data);
	*row = desk->disk[--desk->row_count];
}

static inline void desk_write(struct desk *desk, const struct output *output)
{
	desk_erase(desk, output->key);
	assert_true(desk->row_count < DESK_ROWS);
	struct desk_row *row = &desk->disk[desk->row_count++];
	*row = (struct desk_row){ output->key, memory_alloc(output->size), output->size };
	memcpy(row->data, output->data, output->size);
}

static inline void desk_sent(struct desk *desk, const struct output *output)
{
	struct error error = { 0 };
	struct message *message = message_decode(&desk->arena, output->data, output->size, &error);

	if (!message)
		fail_msg("the node sent an unreadable message: %s", error.text);
	assert_true(desk->sent_count < 256);
	desk->sent[desk->sent_count++] = message;
	desk->connection = message->connection;
	desk->changes = max64(desk->changes, message->number);
}

static inline void desk_apply(struct desk *desk, struct input input)
{
	input.now_ms = desk->now_ms;
	outputs_clear(&desk->outputs);
	desk->sent_count = 0;
	node_apply(desk->node, &input, &desk->outputs);
	node_check(desk->node);
	for (size_t i = 0; i < desk->outputs.count; i++) {
		const struct output *output = &desk->outputs.at[i];
		if (output->kind == OUTPUT_WRITE)
			desk_write(desk, output);
		else if (output->kind == OUTPUT_ERASE)
			desk_erase(desk, output->key);
		else if (output->kind == OUTPUT_SEND)
			desk_sent(desk, output);
		else if (output->kind == OUTPUT_MEASURE)
			desk->asked = output->key;
		else if (output->kind == OUTPUT_LEASE)
			desk->lease_until_ms = output->until_ms;
	}
}

static inline void desk_restart_with(struct desk *desk, const struct found *found, int64_t count)
{
	struct error error = { 0 };

	if (desk->node)
		node_delete(desk->node);
	desk->node = node_new(&desk->identity, &desk->policy);
	desk->asked = 0;
	for (int i = 0; i < desk->row_count; i++)
		if (!node_load(desk->node, desk->disk[i].key, desk->disk[i].data,
		               desk->disk[i].size, &error))
			fail_msg("not loaded: %s", error.text);
	struct input input = { .kind = INPUT_RESTART };
	input.restart.found = found;
	input.restart.found_count = count;
	input.restart.lease_until_ms = desk->lease_until_ms;
	desk_apply(desk, input);
}

/* Two GPUs of 80,000 MiB with 1,000 MiB overhead, named gpu-a and gpu-b. */
static inline struct desk *desk_new(void)
{
	struct desk *desk = NEW(struct desk);

	desk->identity = (struct node_identity){ .name = "node-1",
		                                 .boot = "boot-1",
		                                 .cpu_milli = 64000,
		                                 .host_bytes = INT64_C(1) << 38 };
	desk->policy = node_policy_default();
	desk->policy.release_tolerance_mib = 0;
	desk->now_ms = 1000000;
	desk->term = 1;
	for (int i = 0; i < 2; i++)
		desk->gpus[desk->gpu_count++] = (struct gpu_reading){
			.uuid = i == 0 ? "gpu-a" : "gpu-b",
			.model = "H100",
			.place = i,
			.capacity_mib = 80000,
			.overhead_mib = 1000,
			.temperature_c = 40,
			.utilisation = 500,
			.healthy = true,
		};
	desk_restart_with(desk, NULL, 0);
	return desk;
}

static inline void desk_free(struct desk *desk)
{
	node_delete(desk->node);
	while (desk->row_count > 0)
		desk_erase(desk, desk->disk[0].key);
	outputs_free(&desk->outputs);
	arena_free(&desk->arena);
	free(desk);
}

static inline void desk_measure(struct desk *desk)
{
	desk_apply(desk, (struct input){ .kind = INPUT_MEASURED,
	                                 .measured = { .number = desk->asked,
	                                               .gpus = desk->gpus,
	                                               .gpu_count = desk->gpu_count,
	                                               .processes = desk->processes,
	                                               .process_count = desk->process_count,
	                                               .guards = desk->guards,
	                                               .guard_count = desk->guard_count,
	                                               .hidden = desk->hidden,
	                                               .hidden_count = desk->hidden_count } });
}

/* A process on a GPU; both what it uses and what the GPU has in use grow. */
static inline void desk_use(struct desk *desk, int gpu, int64_t reservation_id, int64_t memory_mib)
{
	desk->processes[desk->process_count++] =
	    (struct process_reading){ .uuid = desk->gpus[gpu].uuid,
		                      .pid = 100 + reservation_id,
		                      .memory_mib = memory_mib,
		                      .reservation_id = reservation_id };
	desk->gpus[gpu].used_mib += memory_mib;
}

/* What the guard of reservation 7 counted. */
static inline struct guard_reading desk_guard(int64_t peak_mib, int64_t refusals,
                                              int64_t refused_mib)
{
	return (struct guard_reading){ .reservation_id = 7,
		                       .limit_mib = 1000,
		                       .peak_mib = peak_mib,
		                       .refusals = refusals,
		                       .refused_mib = refused_mib };
}

/* Its processes end. `back`: so does what they used. */
static inline void desk_unuse(struct desk *desk, int64_t reservation_id, bool back)
{
	int left = 0;

	for (int i = 0; i < desk->process_count; i++) {
		struct process_reading process = desk->processes[i];
		if (process.reservation_id != reservation_id) {
			desk->processes[left++] = process;
			continue;
		}
		for (int g = 0; back && g < desk->gpu_count; g++)
			if (strcmp(desk->gpus[g].uuid, process.uuid) == 0)
				desk->gpus[g].used_mib -= process.memory_mib;
	}
	desk->process_count = left;
}

static inline struct message desk_head(const struct desk *desk, enum message_kind kind)
{
	return (struct message){ .kind = (int32_t)kind,
		                 .boot = desk->identity.boot,
		                 .connection = desk->connection,
		                 .term = desk->term,
		                 .issued = desk->orders };
}

static inline void desk_receive(struct desk *desk, struct message message)
{
	desk_apply(desk, (struct input){ .kind = INPUT_MESSAGE, .message = &message });
}

static inline void desk_welcome(struct desk *desk, int64_t lease_ms)
{
	struct message message = desk_head(desk, MESSAGE_WELCOME);

	message.renewal = (struct renewal){ desk->now_ms, lease_ms };
	desk_receive(desk, message);
}

/* Hello, welcome, and the measurement that the snapshot waits for. */
static inline void desk_connect(struct desk *desk)
{
	desk->orders = desk->changes = desk->stored = 0;
	desk_apply(desk, (struct input){ .kind = INPUT_CONNECTED });
	desk_welcome(desk, 30000);
	desk_measure(desk);
}

static inline struct node_order start_order(int64_t reservation_id, struct order_part *part,
                                            int64_t memory_mib)
{
	*part = (struct order_part){ .uuid = "gpu-a", .memory_mib = memory_mib };
	return (struct node_order){ .kind = ORDER_START,
		                    .reservation_id = reservation_id,
		                    .parts = part,
		                    .part_count = 1,
		                    .grace_ms = 5000,
		                    .payload = "train",
		                    .job_id = reservation_id,
		                    .tasks = 1 };
}

static inline void desk_order(struct desk *desk, const struct node_order *order)
{
	struct message message = desk_head(desk, MESSAGE_ORDER);

	message.number = message.issued = ++desk->orders;
	message.acknowledged = desk->stored;
	message.order = *order;
	desk_receive(desk, message);
}

/* An order for memory of gpu-a that is checked by a measurement at once. */
static inline void desk_start(struct desk *desk, int64_t reservation_id, int64_t memory_mib)
{
	struct order_part part;
	struct node_order order = start_order(reservation_id, &part, memory_mib);

	desk_order(desk, &order);
	desk_measure(desk);
}

static inline void desk_event(struct desk *desk, enum input_kind kind, struct work_event event)
{
	desk_apply(desk, (struct input){ .kind = (int32_t)kind, .event = event });
}

/* Started, and its first process with it. */
static inline void desk_run(struct desk *desk, int64_t reservation_id, int64_t memory_mib)
{
	desk_start(desk, reservation_id, memory_mib);
	desk_event(desk, INPUT_STARTED,
	           (struct work_event){ .reservation_id = reservation_id,
	                                .pid = 100 + reservation_id,
	                                .pid_start = 7 });
}

static inline void desk_exit(struct desk *desk, int64_t reservation_id, int64_t exit_code)
{
	desk_event(desk, INPUT_EXITED,
	           (struct work_event){ .reservation_id = reservation_id, .exit_code = exit_code });
}

static inline void desk_gone(struct desk *desk, int64_t reservation_id)
{
	desk_event(desk, INPUT_GONE, (struct work_event){ .reservation_id = reservation_id });
}

static inline void desk_stop(struct desk *desk, int64_t reservation_id, int64_t grace_ms)
{
	struct node_order order = { .kind = ORDER_STOP,
		                    .reservation_id = reservation_id,
		                    .grace_ms = grace_ms };

	desk_order(desk, &order);
}

static inline void desk_time(struct desk *desk, int64_t ms)
{
	desk->now_ms += ms;
	desk_apply(desk, (struct input){ .kind = INPUT_TIME });
}

/* Time passes with a scheduler that renews. */
static inline void desk_renew(struct desk *desk, int64_t ms)
{
	desk->now_ms += ms;
	struct message message = desk_head(desk, MESSAGE_RENEW);
	message.renewal = (struct renewal){ desk->now_ms, 30000 };
	desk_receive(desk, message);
}

static inline void desk_acknowledge(struct desk *desk, int64_t change)
{
	struct message message = desk_head(desk, MESSAGE_ACK);

	message.acknowledged = change;
	desk_receive(desk, message);
}

static inline int desk_count(const struct desk *desk, enum output_kind kind, int64_t key)
{
	int count = 0;

	for (size_t i = 0; i < desk->outputs.count; i++)
		count +=
		    desk->outputs.at[i].kind == (int32_t)kind && desk->outputs.at[i].key == key;
	return count;
}

/* Where the first output of this kind is; -1: there is none. */
static inline int desk_place(const struct desk *desk, enum output_kind kind)
{
	for (size_t i = 0; i < desk->outputs.count; i++)
		if (desk->outputs.at[i].kind == (int32_t)kind)
			return (int)i;
	return -1;
}

static inline const struct message *desk_message(const struct desk *desk, enum message_kind kind)
{
	for (int i = 0; i < desk->sent_count; i++)
		if (desk->sent[i]->kind == (int32_t)kind)
			return desk->sent[i];
	return NULL;
}

static inline const struct change *desk_change(const struct desk *desk, enum change_kind kind)
{
	for (int i = 0; i < desk->sent_count; i++)
		if (desk->sent[i]->kind == MESSAGE_CHANGE &&
		    desk->sent[i]->change.kind == (int32_t)kind)
			return &desk->sent[i]->change;
	return NULL;
}

/* What the node knows of a reservation, or NULL. */
static inline const struct kept_work *desk_work(const struct desk *desk, int64_t reservation_id)
{
	for (size_t i = 0; i < node_work_count(desk->node); i++)
		if (node_work(desk->node, i).kept->reservation_id == reservation_id)
			return node_work(desk->node, i).kept;
	return NULL;
}

static inline int desk_phase(const struct desk *desk, int64_t reservation_id)
{
	const struct kept_work *work = desk_work(desk, reservation_id);

	return work ? work->phase : -1;
}

static inline bool snapshot_runs(const struct message *snapshot, int64_t reservation_id)
{
	for (int64_t i = 0; i < snapshot->snapshot.running_count; i++)
		if (snapshot->snapshot.running[i] == reservation_id)
			return true;
	return false;
}

#define DESK_TEST(name)                                                                            \
	static void name##_on(struct desk *desk);                                                  \
	static void name(void **state)                                                             \
	{                                                                                          \
		struct desk *desk = desk_new();                                                    \
		(void)state;                                                                       \
		name##_on(desk);                                                                   \
		desk_free(desk);                                                                   \
	}                                                                                          \
	static void name##_on(struct desk *desk)

#endif
