/* legacy_call.c - RegisterAgent, Heartbeat, ReportMetrics, ReceiveJobAssignment */
#include <stdio.h>
#include <stdlib.h>

#include "api/session/legacy_local.h"
#include "api/text/protobuf.h"
#include "base/memory.h"
#include "base/number_text.h"
#include "node/texts.h"

/* A call of one of the two streams. `legacy` is looked for with each message: it may have
 * gone meanwhile. */
struct legacy_stream {
	struct stream stream;
	struct request *request;
	struct agents *agents;
	bool is_heartbeat;
	char node[96]; /* the one that it speaks for; empty: not said yet */
};

enum { REASON_BYTES_MAX = 4096 };

static const char not_registered[] = "the node is not registered: call RegisterAgent first";

static struct legacy *legacy_call_find(const struct agents *agents, const char *name)
{
	const struct agents_node *node = agents_find(agents, name);

	return node ? node->legacy : NULL;
}

static bool check_registration(const Agent__RegisterAgentRequest *message, struct error *error)
{
	if (message->n_gpus > GPUS_PER_NODE_MAX)
		return error_set(error, ERROR_INVALID, "a node has at most %d GPUs, not %zu",
		                 GPUS_PER_NODE_MAX, message->n_gpus);
	for (size_t i = 0; i < message->n_gpus; i++)
		if (!message->gpus[i]->gpu_id[0] || message->gpus[i]->memory_total_mb <= 0 ||
		    message->gpus[i]->memory_total_mb > MIB_MAX)
			return error_set(error, ERROR_INVALID,
			                 "gpus[%zu] needs a gpu_id and a memory_total_mb", i);
	for (size_t i = 0; i < message->n_gpus; i++)
		if (!text_check("device", "uuid", message->gpus[i]->gpu_id, error) ||
		    !text_check("device", "model", message->gpus[i]->model, error))
			return false;
	return true;
}

static void legacy_call_fill(struct legacy *legacy, const Agent__RegisterAgentRequest *message)
{
	for (int64_t i = 0; i < legacy->device_count; i++) {
		free(legacy->devices[i].uuid);
		free(legacy->devices[i].model);
	}
	free(legacy->devices);
	legacy->device_count = (int64_t)message->n_gpus;
	legacy->devices = memory_zero(message->n_gpus, sizeof(*legacy->devices));
	for (size_t i = 0; i < message->n_gpus; i++)
		legacy->devices[i] = (struct legacy_device){
			memory_text(message->gpus[i]->gpu_id),
			memory_text(message->gpus[i]->model),
			(int64_t)i,
			message->gpus[i]->memory_total_mb,
		};
	legacy->cpu_milli = max64(message->total_cpu_cores, 0) * 1000;
	legacy->host_bytes = max64(0, min64(message->total_memory_mb, HOST_BYTES_MAX >> 20)) << 20;
}

struct request *legacy_end_registering(struct legacy *legacy)
{
	struct request *request = legacy->registering;

	legacy->registering = NULL;
	if (request)
		request->state = NULL;
	return request;
}

/* The node is registered all the same: only nobody waits to hear it. */
static void registering_gone(struct exchange *exchange)
{
	struct request *request = exchange->context;
	const struct agents_node *node = request->state;

	INVARIANT(node->legacy && node->legacy->registering == request);
	legacy_end_registering(node->legacy);
	request_finish(request, GRPC_CANCELLED, NULL);
}

static const struct exchange_events registering_events = { .gone = registering_gone };

void agents_register(struct agents *agents, struct request *request)
{
	const Agent__RegisterAgentRequest *message = request->message;
	const char *name = message->node_id[0] ? message->node_id : message->hostname;
	struct error error = { 0 };

	if (!agents_may_speak(&request->identity, name, &error) ||
	    !check_registration(message, &error)) {
		request_fail(request, &error);
		return;
	}
	struct agents_node *node = agents_node(agents, name);
	if (node->stream) {
		request_finish(request, GRPC_ALREADY_EXISTS,
		               "a node of this name is connected by another agent");
		return;
	}
	if (!node->legacy) {
		node->legacy = NEW(struct legacy);
		node->legacy->node = node;
		snprintf(node->legacy->boot, sizeof(node->legacy->boot), "registered");
		legacy_adopt(node->legacy);
	}
	legacy_call_fill(node->legacy, message);
	struct request *before = legacy_end_registering(node->legacy);
	if (before)
		request_finish(before, GRPC_ABORTED, "the node was registered again meanwhile");
	node->legacy->registering = request;
	request->state = node;
	request->exchange->events = &registering_events;
	legacy_connect(node->legacy);
}

static bool is_any(const char *text, const char *const *words)
{
	while (*words && strcmp(text, *words) != 0)
		words++;
	return *words != NULL;
}

static void take_job(struct legacy *legacy, const Agent__JobMetrics *metrics)
{
	static const char *const ends[] = { "completed", "failed",  "cancelled", "preempted",
		                            "succeeded", "stopped", NULL };
	struct legacy_work *work = legacy_find(legacy, metrics->job_id);

	if (!work)
		legacy_not_here(legacy, metrics->job_id);
	if (!work || work->state == WORK_QUEUED)
		return;
	if (strcmp(metrics->state, "running") == 0 && work->state == WORK_SENT) {
		work->state = WORK_RUNNING;
		legacy_change(legacy, (struct change){ .kind = CHANGE_STARTED,
		                                       .reservation_id = work->reservation_id });
	} else if (is_any(metrics->state, ends)) {
		int64_t code = 0;
		number_read(text_of(metrics->exit_code), INT32_MIN, INT32_MAX, &code);
		text_clean(metrics->error_message, REASON_BYTES_MAX);
		bool failed = strcmp(metrics->state, "failed") == 0;
		if (work->state == WORK_SENT)
			legacy_change(legacy,
			              (struct change){ .kind = CHANGE_STARTED,
			                               .reservation_id = work->reservation_id });
		legacy_ended(legacy, work, failed && code == 0 ? 1 : max64(min64(code, 255), 0),
		             metrics->error_message);
	}
}

void agents_report(struct agents *agents, struct request *request)
{
	const Agent__ReportMetricsRequest *message = request->message;
	Agent__ReportMetricsResponse response = AGENT__REPORT_METRICS_RESPONSE__INIT;
	struct error error = { 0 };

	if (!agents_may_speak(&request->identity, message->node_id, &error)) {
		request_fail(request, &error);
		return;
	}
	struct legacy *legacy = legacy_call_find(agents, message->node_id);
	if (!legacy) {
		request_finish(request, GRPC_FAILED_PRECONDITION, not_registered);
		return;
	}
	legacy_beat(legacy, message->gpu_metrics, message->n_gpu_metrics);
	for (size_t i = 0; i < message->n_job_metrics; i++)
		take_job(legacy, message->job_metrics[i]);
	response.success = true;
	request_reply(request, protobuf_write(&response, &request->engine.arena));
}

/* "stop job-12" for each that is to stop, until it is reported as ended. */
static void answer_heartbeat(struct exchange *exchange, struct legacy *legacy, struct arena *arena)
{
	Agent__HeartbeatResponse response = AGENT__HEARTBEAT_RESPONSE__INIT;
	size_t count = legacy ? legacy->work_count : 0;
	static char again[] = "register";

	response.acknowledged = legacy != NULL;
	response.commands = arena_alloc(arena, (count + 1) * sizeof(*response.commands));
	if (!legacy)
		response.commands[response.n_commands++] = again;
	for (size_t i = 0; i < count; i++) {
		if (!legacy->works[i]->stopping)
			continue;
		char *command = arena_alloc(arena, 48);
		snprintf(command, 48, "stop job-%lld", (long long)legacy->works[i]->job_id);
		response.commands[response.n_commands++] = command;
	}
	/* One that is not taken is not worth keeping: the next says the same. */
	grpc_send(exchange, protobuf_write(&response, arena));
}

void legacy_end_stream(struct request *request, enum grpc_status status, const char *text)
{
	struct legacy_stream *stream = request->state;
	struct legacy *legacy = legacy_call_find(stream->agents, stream->node);

	if (legacy && legacy->assignments == request)
		legacy->assignments = NULL;
	request->state = NULL;
	streams_remove(&stream->stream);
	free(stream);
	request_finish(request, status, text);
}

static void take_heartbeat(struct request *request, const Agent__HeartbeatRequest *message,
                           struct arena *arena)
{
	const struct legacy_stream *stream = request->state;
	struct legacy *legacy = legacy_call_find(stream->agents, message->node_id);

	if (legacy)
		legacy_beat(legacy, message->gpu_metrics, message->n_gpu_metrics);
	answer_heartbeat(request->exchange, legacy, arena);
}

static void take_readiness(struct request *request, const Agent__JobAssignmentRequest *message)
{
	const struct legacy_stream *stream = request->state;
	struct legacy *legacy = legacy_call_find(stream->agents, message->node_id);

	if (!legacy) {
		legacy_end_stream(request, GRPC_FAILED_PRECONDITION, not_registered);
		return;
	}
	struct request *before = legacy->assignments;
	legacy->assignments = request;
	if (before && before != request)
		legacy_end_stream(before, GRPC_ABORTED,
		                  "the node takes its assignments by another call");
	legacy->assignments = request;
	legacy_hand_out(legacy);
}

/* A stream names its node once: what is kept of it, and cleared with it, is kept there. */
static bool take_name(struct legacy_stream *stream, const char *name, struct error *error)
{
	if (!agents_may_speak(&stream->request->identity, name, error))
		return false;
	if (stream->node[0] && strcmp(stream->node, name) != 0)
		return error_set(error, ERROR_INVALID,
		                 "this call is for node %s: open another for %s", stream->node,
		                 name);
	INVARIANT(strlen(name) < sizeof(stream->node));
	snprintf(stream->node, sizeof(stream->node), "%s", name);
	return true;
}

static void legacy_call_on_body(struct exchange *exchange, struct text part)
{
	struct request *request = exchange->context;
	struct legacy_stream *stream = request->state;
	struct arena arena = { 0 };
	struct error error = { 0 };
	const void *message =
	    protobuf_read(stream->is_heartbeat ? &agent__heartbeat_request__descriptor
	                                       : &agent__job_assignment_request__descriptor,
	                  part, &arena);
	const char *name = "";

	if (message)
		name = stream->is_heartbeat
		           ? ((const Agent__HeartbeatRequest *)message)->node_id
		           : ((const Agent__JobAssignmentRequest *)message)->node_id;
	if (!message)
		legacy_end_stream(request, GRPC_INVALID_ARGUMENT,
		                  "this is not a message of this call");
	else if (!take_name(stream, name, &error))
		legacy_end_stream(request, grpc_status_of_error(error.code), error.text);
	else if (stream->is_heartbeat)
		take_heartbeat(request, message, &arena);
	else
		take_readiness(request, message);
	arena_free(&arena);
}

static void legacy_call_on_writable(struct exchange *exchange)
{
	const struct legacy_stream *stream = ((const struct request *)exchange->context)->state;
	struct legacy *legacy = legacy_call_find(stream->agents, stream->node);

	if (legacy)
		legacy_hand_out(legacy);
}

static void legacy_call_on_end(struct exchange *exchange)
{
	const struct legacy_stream *stream = ((const struct request *)exchange->context)->state;

	/* Who said that it is ready and then closed its side still takes assignments. */
	if (stream->is_heartbeat || !stream->node[0])
		legacy_end_stream(exchange->context, GRPC_OK, NULL);
}

static void legacy_call_on_gone(struct exchange *exchange)
{
	legacy_end_stream(exchange->context, GRPC_CANCELLED, NULL);
}

/* A node whose token no longer holds gets no further assignment. */
static void end_sign_in(struct stream *watched, const char *reason)
{
	const struct legacy_stream *stream =
	    (struct legacy_stream *)(void *)((char *)watched -
	                                     offsetof(struct legacy_stream, stream));

	legacy_end_stream(stream->request, GRPC_UNAUTHENTICATED, reason);
}

static const struct exchange_events events = { .body = legacy_call_on_body,
	                                       .body_end = legacy_call_on_end,
	                                       .writable = legacy_call_on_writable,
	                                       .gone = legacy_call_on_gone };

static void open_stream(struct agents *agents, struct request *request, bool is_heartbeat)
{
	struct legacy_stream *stream = NEW(struct legacy_stream);

	stream->agents = agents;
	stream->request = request;
	stream->is_heartbeat = is_heartbeat;
	request->state = stream;
	request->exchange->events = &events;
	streams_add(agents->settings.streams, &stream->stream, &request->identity, end_sign_in);
	grpc_stream(request->exchange);
}

void agents_heartbeat(struct agents *agents, struct request *request)
{
	open_stream(agents, request, true);
}

void agents_assignments(struct agents *agents, struct request *request)
{
	open_stream(agents, request, false);
}
