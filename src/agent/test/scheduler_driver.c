/* scheduler_driver.c - the scheduler's half of the conversation, without a scheduler
 *
 * scheduler_driver [PORT [LEASE_MS]]
 *
 * Prints 'listening PORT', then a JSON object for each message of a node. Does what it reads, a
 * JSON object on each line:
 *     {"do":"start","node":"n","reservation":1,"job":1,"gpus":[["GPU-..",1024]],"payload":{..}, ..}
 *     {"do":"load","node":"n","reservation":2,"model":"m","command":"..","gpus":[..]}
 *     {"do":"stop","node":"n","reservation":1,"grace_ms":1000}
 *     {"do":"output","node":"n","request":1,"reservation":1,"follow":true,"offset":0}
 *     {"do":"renew","on":false}
 * Everything that a node reports counts as stored at once. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/uplink/envelope.h"
#include "base/clock.h"
#include "node/session.h"
#include "wire/wire.h"

#define NODES_MAX 16

struct stub_node {
	struct session *session;
	struct exchange *exchange;
};

static struct {
	struct loop *loop;
	struct session_policy policy;
	struct stub_node nodes[NODES_MAX];
	int node_count;
	struct timer timer;
	bool silent; /* answers nothing */
	/* Of the order that is being given. */
	const char *uuids[PARTS_MAX], *payload, *model;
} stub;

static struct stub_node *find_node(const char *name)
{
	for (int i = 0; i < stub.node_count; i++)
		if (strcmp(session_name(stub.nodes[i].session), name) == 0)
			return &stub.nodes[i];
	return NULL;
}

static void scheduler_print_line(struct buffer *line)
{
	buffer_text(line, "\n");
	fwrite(line->data, 1, line->size, stdout);
	fflush(stdout);
	buffer_free(line);
}

static void put_change(struct json_writer *json, const struct change *change)
{
	json_put_string(json, "change", change_kind_name(change->kind));
	json_put_integer(json, "reservation", change->reservation_id);
	json_put_integer(json, "exit_code", change->exit_code);
	json_put_string(json, "reason", end_reason_name(change->reason));
	json_put_string(json, "message", change->message);
	json_put_string(json, "address", change->address);
	json_put_integer(json, "took_ms", change->took_ms);
}

static void put_beat(struct json_writer *json, const struct beat *beat)
{
	json_open_array(json, "gpus");
	for (int64_t i = 0; i < beat->sample_count; i++) {
		json_open_object(json, NULL);
		json_put_string(json, "uuid", beat->samples[i].uuid);
		json_put_integer(json, "foreign_mib", beat->samples[i].foreign_mib);
		json_put_integer(json, "used_mib", beat->samples[i].used_mib);
		json_put_integer(json, "temperature_c", beat->samples[i].temperature_c);
		json_put_flag(json, "healthy", beat->samples[i].healthy);
		json_close(json);
	}
	json_close(json);
	json_open_array(json, "uses");
	for (int64_t i = 0; i < beat->use_count; i++) {
		json_open_object(json, NULL);
		json_put_integer(json, "reservation", beat->uses[i].reservation_id);
		json_put_integer(json, "memory_mib", beat->uses[i].memory_mib);
		json_close(json);
	}
	json_close(json);
	json_open_array(json, "slots");
	for (int64_t i = 0; i < beat->slot_count; i++) {
		json_open_object(json, NULL);
		json_put_integer(json, "reservation", beat->slots[i].reservation_id);
		json_put_integer(json, "active", beat->slots[i].active);
		json_close(json);
	}
	json_close(json);
}

static void put_snapshot(struct json_writer *json, const struct node_report_command *report)
{
	json_open_array(json, "gpus");
	for (int64_t i = 0; i < report->device_count; i++) {
		json_open_object(json, NULL);
		json_put_string(json, "uuid", report->devices[i].uuid);
		json_put_string(json, "model", report->devices[i].model);
		json_put_integer(json, "capacity_mib", report->devices[i].capacity_mib);
		json_close(json);
	}
	json_close(json);
	json_open_array(json, "running");
	for (int64_t i = 0; i < report->running_count; i++)
		json_put_integer(json, NULL, report->running[i]);
	json_close(json);
}

static void print_message(const struct message *message, const char *node)
{
	struct buffer line = { 0 };
	struct json_writer json = json_writer_to(&line);

	json_open_object(&json, NULL);
	json_put_string(&json, "kind", message_kind_name(message->kind));
	json_put_string(&json, "node", node);
	if (message->kind == MESSAGE_CHANGE)
		put_change(&json, &message->change);
	else if (message->kind == MESSAGE_BEAT)
		put_beat(&json, &message->beat);
	else if (message->kind == MESSAGE_SNAPSHOT)
		put_snapshot(&json, &message->snapshot);
	json_close(&json);
	scheduler_print_line(&line);
}

static void send_envelope(struct stub_node *node, const struct envelope *envelope)
{
	struct buffer bytes = { 0 };

	envelope_encode(&bytes, envelope);
	if (node->exchange && !stub.silent)
		grpc_send(node->exchange, (struct text){ bytes.data, bytes.size });
	buffer_free(&bytes);
}

static void perform(struct stub_node *node, struct session_outputs *outputs)
{
	for (size_t i = 0; i < outputs->count; i++) {
		struct session_output *output = &outputs->at[i];
		if (output->kind == SESSION_SEND)
			send_envelope(
			    node, &(struct envelope){ .kind = ENVELOPE_MESSAGE,
			                              .message = { output->data, output->size } });
		else if (output->kind == SESSION_COMMAND && output->change > 0)
			session_stored(node->session, clock_steady_ms(), output->connection,
			               output->change, outputs);
		else if (output->kind == SESSION_CLOSE && node->exchange)
			grpc_finish(node->exchange, GRPC_ABORTED, "over");
		if (output->kind == SESSION_CLOSE)
			node->exchange = NULL;
	}
	session_outputs_free(outputs);
}

static struct stub_node *node_of(struct exchange *exchange, const struct message *message)
{
	for (int i = 0; i < stub.node_count; i++)
		if (stub.nodes[i].exchange == exchange && message->kind != MESSAGE_HELLO)
			return &stub.nodes[i];
	if (message->kind != MESSAGE_HELLO || stub.node_count == NODES_MAX)
		return NULL;
	struct stub_node *node = find_node(message->hello.name);
	if (!node) {
		node = &stub.nodes[stub.node_count++];
		node->session =
		    session_new(message->hello.name, false, 1, clock_steady_ms(), &stub.policy);
	}
	node->exchange = exchange;
	return node;
}

static void print_chunk(const struct output_chunk *chunk)
{
	struct buffer line = { 0 };
	struct json_writer json = json_writer_to(&line);

	json_open_object(&json, NULL);
	json_put_string(&json, "kind", "output");
	json_put_integer(&json, "request", chunk->request_id);
	json_put_integer(&json, "offset", chunk->offset);
	json_put_text(&json, "data", chunk->data);
	json_put_flag(&json, "end", chunk->end);
	json_put_text(&json, "error", chunk->error);
	json_close(&json);
	scheduler_print_line(&line);
}

static void scheduler_take(struct exchange *exchange, struct text part)
{
	struct session_outputs outputs = { 0 };
	struct arena arena = { 0 };
	struct error error = { 0 };
	struct envelope envelope;
	struct message *message = NULL;

	if (!envelope_decode(part, &arena, &envelope))
		fprintf(stderr, "not an envelope\n");
	if (envelope.kind == ENVELOPE_OUTPUT_CHUNK)
		print_chunk(&envelope.chunk);
	if (envelope.kind == ENVELOPE_MESSAGE)
		message = message_decode(&arena, (const uint8_t *)envelope.message.data,
		                         envelope.message.size, &error);
	struct stub_node *node = message ? node_of(exchange, message) : NULL;
	if (node) {
		print_message(message, session_name(node->session));
		session_message(node->session, clock_steady_ms(), message, &outputs);
		perform(node, &outputs);
	} else if (error.text[0]) {
		fprintf(stderr, "%s\n", error.text);
	}
	arena_free(&arena);
}

static void gone(struct exchange *exchange)
{
	for (int i = 0; i < stub.node_count; i++) {
		if (stub.nodes[i].exchange != exchange)
			continue;
		session_disconnected(stub.nodes[i].session,
		                     session_connection(stub.nodes[i].session));
		stub.nodes[i].exchange = NULL;
	}
	grpc_finish(exchange, GRPC_CANCELLED, NULL);
}

static void head(struct exchange *exchange)
{
	static const struct exchange_events events = { .body = scheduler_take,
		                                       .body_end = gone,
		                                       .gone = gone };

	exchange->events = &events;
	grpc_stream(exchange);
}

static void scheduler_request(struct exchange *exchange)
{
	exchange_refuse(exchange, 404, "not_found", "there is nothing else here");
}

static const char *scheduler_gpu_uuid(void *context, int64_t gpu_id)
{
	(void)context;
	return stub.uuids[gpu_id];
}

static const char *task_payload(void *context, int64_t job_id, int64_t task)
{
	(void)context, (void)job_id, (void)task;
	return stub.payload;
}

static const char *model_text(void *context, int64_t model_id)
{
	(void)context, (void)model_id;
	return stub.model;
}

static const char *model_payload(void *context, int64_t model_id)
{
	(void)context, (void)model_id;
	return stub.payload;
}

static int64_t scheduler_number(const json_t *line, const char *name)
{
	return json_integer_value(json_object_get(line, name));
}

static struct rows read_parts(const json_t *line, int64_t *numbers)
{
	const json_t *gpus = json_object_get(line, "gpus");
	size_t count = json_array_size(gpus);

	for (size_t i = 0; i < count && i < PARTS_MAX; i++) {
		const json_t *gpu = json_array_get(gpus, i);
		stub.uuids[i] = json_string_value(json_array_get(gpu, 0));
		numbers[i * PART_WIDTH + PART_GPU] = (int64_t)i;
		numbers[i * PART_WIDTH + PART_MIB] = json_integer_value(json_array_get(gpu, 1));
		numbers[i * PART_WIDTH + PART_SHARE] = 1000;
		numbers[i * PART_WIDTH + PART_WHOLE] = 0;
	}
	return (struct rows){ numbers, (int64_t)count };
}

static struct effect read_order(const json_t *line, const char *what, int64_t *numbers)
{
	struct effect effect = { .kind = strcmp(what, "stop") == 0   ? EFFECT_STOP
		                         : strcmp(what, "load") == 0 ? EFFECT_LOAD
		                                                     : EFFECT_START };

	if (effect.kind == EFFECT_LOAD) {
		effect.load =
		    (struct load_order){ .term = 1,
			                 .reservation_id = scheduler_number(line, "reservation"),
			                 .model_id = 1,
			                 .runtime = RUNTIME_CUSTOM,
			                 .parts = read_parts(line, numbers),
			                 .kv_cache = "",
			                 .load_timeout_ms = scheduler_number(line, "timeout_ms") };
		effect.load.command = json_string_value(json_object_get(line, "command"));
		return effect;
	}
	effect.order =
	    (struct task_order){ .term = 1,
		                 .reservation_id = scheduler_number(line, "reservation"),
		                 .job_id = scheduler_number(line, "job"),
		                 .task = scheduler_number(line, "task"),
		                 .tasks = scheduler_number(line, "tasks"),
		                 .grace_ms = scheduler_number(line, "grace_ms"),
		                 .parts = read_parts(line, numbers),
		                 .cpu_milli = scheduler_number(line, "cpu_milli"),
		                 .host_bytes = scheduler_number(line, "host_bytes"),
		                 .max_runtime_ms = scheduler_number(line, "runtime_ms") };
	effect.order.lease_loss =
	    json_is_true(json_object_get(line, "lease_stop")) ? LEASE_STOP : LEASE_KEEP;
	return effect;
}

static void give_order(struct stub_node *node, const json_t *line, const char *what)
{
	static const struct session_lookup lookup = { scheduler_gpu_uuid, task_payload, model_text,
		                                      model_payload, NULL };
	int64_t numbers[PARTS_MAX * PART_WIDTH];
	struct session_outputs outputs = { 0 };
	struct effect effect = read_order(line, what, numbers);
	char *payload = json_dumps(json_object_get(line, "payload"), JSON_COMPACT);

	stub.payload = payload ? payload : "{}";
	stub.model = json_string_value(json_object_get(line, "model"));
	session_order(node->session, clock_steady_ms(), &effect, &lookup, &outputs);
	perform(node, &outputs);
	free(payload);
}

static void ask_output(struct stub_node *node, const json_t *line)
{
	struct envelope envelope = {
		.kind = ENVELOPE_OUTPUT_REQUEST,
		.request = { .request_id = scheduler_number(line, "request"),
		             .reservation_id = scheduler_number(line, "reservation"),
		             .job_id = scheduler_number(line, "job"),
		             .task = scheduler_number(line, "task"),
		             .follow = json_is_true(json_object_get(line, "follow")),
		             .offset = scheduler_number(line, "offset") },
	};

	send_envelope(node, &envelope);
}

struct line_post {
	struct post post;
	char *text; /* NULL: the input has ended */
};

static void obey(struct post *post)
{
	struct line_post *line_post = (struct line_post *)post;
	json_t *line = line_post->text ? json_loads(line_post->text, 0, NULL) : NULL;
	const char *what = json_string_value(json_object_get(line, "do"));
	const char *name = json_string_value(json_object_get(line, "node"));
	struct stub_node *node = name ? find_node(name) : NULL;

	if (!line_post->text)
		loop_stop(stub.loop, 100);
	else if (what && strcmp(what, "renew") == 0)
		stub.silent = !json_is_true(json_object_get(line, "on"));
	else if (what && node && strcmp(what, "output") == 0)
		ask_output(node, line);
	else if (what && node)
		give_order(node, line, what);
	else
		fprintf(stderr, "not understood: %s\n", line_post->text);
	json_decref(line);
	free(line_post->text);
	free(line_post);
}

static void *read_lines(void *nothing)
{
	char *text = NULL;
	size_t size = 0;
	bool more = true;

	(void)nothing;
	while (more) {
		more = getline(&text, &size, stdin) > 0;
		struct line_post *post = NEW(struct line_post);
		post->post.run = obey;
		post->text = more ? memory_text(text) : NULL;
		loop_post(stub.loop, &post->post);
	}
	free(text);
	return NULL;
}

static void time_passes(struct timer *timer)
{
	for (int i = 0; i < stub.node_count; i++) {
		struct session_outputs outputs = { 0 };
		session_time(stub.nodes[i].session, clock_steady_ms(), clock_steady_ms(), &outputs);
		perform(&stub.nodes[i], &outputs);
	}
	loop_timer_set(stub.loop, timer, 50);
}

int main(int argc, char **argv)
{
	static const struct handler handler = { .head = head, .request = scheduler_request };
	struct limits limits = limits_default();
	struct error error = { 0 };
	pthread_t reader;

	stub.policy = session_policy_default();
	stub.policy.starts_max = 0; /* an order is looked up while its line is read */
	if (argc > 2)
		stub.policy.lease_ms = atoll(argv[2]);
	stub.loop = loop_new(&limits);
	struct listener *listener = listener_open(
	    stub.loop,
	    &(struct listener_options){ .address = "127.0.0.1",
	                                .port = (uint16_t)(argc > 1 ? atoi(argv[1]) : 0),
	                                .handler = &handler },
	    &error);
	if (!listener) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	printf("listening %d\n", listener_port(listener));
	fflush(stdout);
	stub.timer = TIMER(time_passes);
	loop_timer_set(stub.loop, &stub.timer, 50);
	pthread_create(&reader, NULL, read_lines, NULL);
	loop_run(stub.loop);
	pthread_join(reader, NULL);
	loop_free(stub.loop);
	return 0;
}
