/* legacy.c - the half of a conversation that an older agent cannot hold itself */
#include <stdio.h>
#include <stdlib.h>

#include "api/session/legacy_local.h"
#include "api/text/ids.h"
#include "base/memory.h"

static void legacy_say(struct legacy *legacy, struct message message)
{
	message.boot = legacy->boot;
	message.connection = legacy->connection;
	message.acknowledged = legacy->acknowledged;
	message.term = legacy->node->agents->term;
	agents_message(legacy->node, &message, NULL);
}

static int64_t now_ms(const struct legacy *legacy)
{
	return loop_now_ms(legacy->node->agents->loop);
}

void legacy_connect(struct legacy *legacy)
{
	struct message hello = { .kind = MESSAGE_HELLO };

	legacy->connection++;
	legacy->change = legacy->acknowledged = 0;
	legacy->open = false;
	hello.hello = (struct hello){ legacy->node->name, NODE_PROTOCOL, now_ms(legacy) };
	legacy_say(legacy, hello);
}

static void send_snapshot(struct legacy *legacy)
{
	struct arena arena = { 0 };
	struct message message = { .kind = MESSAGE_SNAPSHOT, .number = ++legacy->change };
	size_t count = (size_t)legacy->device_count;
	struct device *devices = arena_alloc(&arena, (count + 1) * sizeof(*devices));
	int64_t *running = arena_alloc(&arena, (legacy->work_count + 1) * sizeof(*running));
	int64_t running_count = 0;

	for (size_t i = 0; i < count; i++)
		devices[i] = (struct device){ .uuid = legacy->devices[i].uuid,
			                      .model = legacy->devices[i].model,
			                      .mig_parent = "",
			                      .place = legacy->devices[i].place,
			                      .capacity_mib = legacy->devices[i].capacity_mib,
			                      .healthy = true };
	for (size_t i = 0; i < legacy->work_count; i++)
		if (legacy->works[i]->state != WORK_QUEUED)
			running[running_count++] = legacy->works[i]->reservation_id;
	message.snapshot = (struct node_report_command){
		.name = legacy->node->name,
		.boot = legacy->boot,
		.zone = "",
		.rack = "",
		.labels = "",
		.cpu_milli = legacy->cpu_milli,
		.host_bytes = legacy->host_bytes,
		.devices = devices,
		.device_count = legacy->device_count,
		.running = running,
		.running_count = running_count,
		.snapshot = true,
	};
	/* Assignments that were never handed out are ordered again. */
	for (size_t i = legacy->work_count; i-- > 0;)
		if (legacy->works[i]->state == WORK_QUEUED)
			legacy_forget(legacy, legacy->works[i]);
	legacy_say(legacy, message);
	arena_free(&arena);
}

void legacy_change(struct legacy *legacy, struct change change)
{
	struct message message = { .kind = MESSAGE_CHANGE };

	if (!legacy->open)
		return;
	message.number = ++legacy->change;
	if (!change.message)
		change.message = "";
	change.address = "";
	message.change = change;
	legacy_say(legacy, message);
}

void legacy_ended(struct legacy *legacy, struct legacy_work *work, int64_t exit_code,
                  const char *message)
{
	struct change change = { .kind = CHANGE_EXITED,
		                 .reservation_id = work->reservation_id,
		                 .exit_code = exit_code,
		                 .reason = work->stopping ? END_ORDERED : END_ITSELF,
		                 .message = message };

	legacy_forget(legacy, work);
	legacy_change(legacy, change);
	change.kind = CHANGE_RELEASED;
	legacy_change(legacy, change);
}

void legacy_forget(struct legacy *legacy, struct legacy_work *work)
{
	size_t at = 0;

	while (legacy->works[at] != work)
		at++;
	legacy->work_count--;
	memmove(&legacy->works[at], &legacy->works[at + 1],
	        (legacy->work_count - at) * sizeof(*legacy->works));
	for (int64_t i = 0; i < work->part_count; i++)
		free(work->parts[i].uuid);
	buffer_free(&work->assignment);
	free(work);
}

struct legacy_work *legacy_find(const struct legacy *legacy, const char *id)
{
	int64_t number = 0;

	if (!id_read(text_of(id), ID_JOB, &number))
		return NULL;
	for (size_t i = 0; i < legacy->work_count; i++)
		if (legacy->works[i]->job_id == number)
			return legacy->works[i];
	return NULL;
}

/* 0 for what is not a number, and never more than the core takes. */
static int64_t amount(double value, double scale, int64_t most)
{
	double scaled = value * scale;

	return scaled > 0 ? (scaled < (double)most ? (int64_t)scaled : most) : 0;
}

/* Memory in use that nothing of ours explains. */
static int64_t foreign_mib(const struct legacy *legacy, const char *uuid, int64_t used_mib)
{
	for (size_t i = 0; i < legacy->work_count; i++)
		for (int64_t k = 0; k < legacy->works[i]->part_count; k++)
			if (strcmp(legacy->works[i]->parts[k].uuid, uuid) == 0)
				used_mib -= legacy->works[i]->parts[k].memory_mib;
	return max64(used_mib, 0);
}

static bool has_device(const struct legacy *legacy, const char *uuid)
{
	for (int64_t i = 0; i < legacy->device_count; i++)
		if (strcmp(legacy->devices[i].uuid, uuid) == 0)
			return true;
	return false;
}

void legacy_beat(struct legacy *legacy, Agent__GPUMetrics *const *metrics, size_t count)
{
	struct message message = { .kind = MESSAGE_BEAT };
	struct gpu_sample samples[GPUS_PER_NODE_MAX];
	int64_t sample_count = 0;

	if (!legacy->open)
		legacy_connect(legacy);
	for (size_t i = 0; i < count && sample_count < GPUS_PER_NODE_MAX; i++) {
		const Agent__GPUMetrics *from = metrics[i];
		if (!has_device(legacy, from->gpu_id))
			continue;
		int64_t used_mib = max64(0, min64(from->memory_used_mb, MIB_MAX));
		samples[sample_count++] = (struct gpu_sample){
			.uuid = from->gpu_id,
			.foreign_mib = foreign_mib(legacy, from->gpu_id, used_mib),
			.used_mib = used_mib,
			.temperature_c = amount(from->temperature, 1, 1000),
			.power_mw = amount(from->power_usage, 1000, 100000000),
			.utilisation = amount(from->utilization, 10, 1000),
			.healthy = true,
		};
	}
	message.beat = (struct beat){ .sent_ms = now_ms(legacy),
		                      .samples = samples,
		                      .sample_count = sample_count };
	legacy_say(legacy, message);
}

static void answer_registration(struct legacy *legacy, bool ok, const char *text)
{
	Agent__RegisterAgentResponse response = AGENT__REGISTER_AGENT_RESPONSE__INIT;
	uint8_t bytes[1024];
	char message[ERROR_TEXT_MAX];
	struct request *request = legacy_end_registering(legacy);

	if (!request)
		return;
	snprintf(message, sizeof(message), "%s", text);
	response.success = ok;
	response.message = message;
	response.agent_id = legacy->node->name;
	size_t size = agent__register_agent_response__pack(&response, bytes);
	request_reply(request, (struct text){ (const char *)bytes, size });
}

void legacy_take(struct agents_node *node, const void *data, size_t size)
{
	struct legacy *legacy = node->legacy;
	struct arena arena = { 0 };
	struct error error;
	struct message *message = message_decode(&arena, data, size, &error);

	INVARIANT(message);
	if (message->kind == MESSAGE_REFUSE) {
		legacy->open = false;
		legacy->connection = max64(legacy->connection, message->refusal.connection);
		answer_registration(legacy, false, message->refusal.message);
	} else if (message->kind == MESSAGE_WELCOME) {
		legacy->open = true;
		send_snapshot(legacy);
	} else if (message->connection == legacy->connection) {
		if (message->acknowledged > 0)
			answer_registration(legacy, true, "registered");
		if (message->kind == MESSAGE_ORDER && message->number == legacy->acknowledged + 1) {
			legacy->acknowledged = message->number;
			legacy_order(legacy, &message->order);
			legacy_say(legacy, (struct message){ .kind = MESSAGE_ACK });
		}
	}
	arena_free(&arena);
}

void legacy_free(struct legacy *legacy)
{
	if (!legacy)
		return;
	answer_registration(legacy, false, "the node has another agent now");
	if (legacy->assignments)
		legacy_end_stream(legacy->assignments, GRPC_ABORTED,
		                  "the node has another agent now");
	while (legacy->work_count > 0)
		legacy_forget(legacy, legacy->works[0]);
	for (int64_t i = 0; i < legacy->device_count; i++) {
		free(legacy->devices[i].uuid);
		free(legacy->devices[i].model);
	}
	free(legacy->devices);
	free(legacy->works);
	free(legacy);
}
