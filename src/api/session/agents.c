/* agents.c - the sessions of nodes: what they say becomes commands, orders become messages */
#include "api/session/agents.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/session/agents_local.h"
#include "base/memory.h"
#include "core/record/orchestrator.h"
#include "wire/text/json_writer.h"

enum {
	NAME_BYTES_MAX = 90,
	ACKNOWLEDGE_MS = 50, /* after which what nodes said is acknowledged, together */
};

static void copy_addresses(struct agents *agents, const char *const *hosts)
{
	size_t count = 0;

	while (hosts && hosts[count])
		count++;
	const char **copies = memory_zero(count + 1, sizeof(*copies));
	for (size_t i = 0; i < count; i++)
		copies[i] = memory_text(hosts[i]);
	gethostname(agents->host_name, sizeof(agents->host_name) - 1);
	agents->addresses = (struct address_rules){ copies, count, agents->host_name };
	agents->settings.slot_addresses = NULL;
	agents->settings.policy.addresses = &agents->addresses;
}

struct agents *agents_new(struct engine_port *port, const struct agents_settings *settings)
{
	struct agents *agents = NEW(struct agents);

	agents->port = port;
	agents->requests.size = sizeof(struct agents_request);
	agents->loop = port->loop;
	agents->settings = *settings;
	agents->settings.policy.acknowledge_ms =
	    min64(ACKNOWLEDGE_MS, settings->policy.resend_ms / 4);
	copy_addresses(agents, settings->slot_addresses);
	return agents;
}

void agents_end_all(struct agents_node *node, const char *reason)
{
	agents_output_end_all(node, reason);
	agents_input_end_all(node, reason);
	agents_channel_end_all(node, reason);
}

static void free_node(struct agents_node *node)
{
	if (node->stream)
		agents_stream_end(node->stream, GRPC_UNAVAILABLE, "the scheduler is stopping");
	agents_end_all(node, "the scheduler is stopping");
	legacy_free(node->legacy);
	loop_timer_clear(node->agents->loop, &node->timer);
	if (node->session)
		session_delete(node->session);
	free(node->works);
	free(node->uses);
	free(node->slots);
	agents_keys_free(node);
	free(node->name);
	free(node);
}

void agents_stop(struct agents *agents)
{
	for (size_t i = 0; i < agents->count; i++)
		if (agents->list[i]->stream)
			agents_stream_end(agents->list[i]->stream, GRPC_UNAVAILABLE,
			                  "the scheduler is stopping");
}

void agents_free(struct agents *agents)
{
	if (!agents)
		return;
	agents->begun = false;
	for (size_t i = 0; i < agents->count; i++)
		free_node(agents->list[i]);
	agents_output_free(agents);
	agents_input_free(agents);
	agents_channel_free(agents);
	free(agents->list);
	text_map_free(&agents->nodes);
	agents_samples_free(agents);
	engine_pool_free(&agents->requests, NULL);
	for (size_t i = 0; i < agents->addresses.allowed_count; i++)
		free((char *)agents->addresses.allowed[i]);
	free((void *)agents->addresses.allowed);
	buffer_free(&agents->scratch);
	arena_free(&agents->arena);
	arena_free(&agents->packing);
	free(agents);
}

struct agents_node *agents_find(const struct agents *agents, const char *name)
{
	return text_map_get(&agents->nodes, name);
}

static int64_t now_ms(const struct agents *agents)
{
	return loop_now_ms(agents->loop);
}

static void set_timer(struct agents_node *node)
{
	int64_t wake_ms = session_wake_ms(node->session);
	struct loop *loop = node->agents->loop;

	if (wake_ms == INT64_MAX)
		loop_timer_clear(loop, &node->timer);
	else
		loop_timer_set(loop, &node->timer, max64(wake_ms - loop_now_ms(loop), 0));
}

static void tell_time(struct agents_node *node)
{
	struct agents *agents = node->agents;
	struct session_outputs outputs = { 0 };

	session_time(node->session, now_ms(agents), agents->port->active_ms(agents->port),
	             &outputs);
	agents_do(node, node->stream, &outputs);
}

static void agents_on_timer(struct timer *timer)
{
	struct agents_node *node =
	    (struct agents_node *)(void *)((char *)timer - offsetof(struct agents_node, timer));

	tell_time(node);
}

static struct agents_node *agents_add_node(struct agents *agents, const char *name, bool known)
{
	struct agents_node *node = NEW(struct agents_node);

	node->agents = agents;
	node->name = memory_text(name);
	node->timer = TIMER(agents_on_timer);
	node->session =
	    session_new(name, known, agents->term, now_ms(agents), &agents->settings.policy);
	text_map_put(&agents->nodes, name, node);
	array_reserve(agents->list, agents->capacity, agents->count + 1);
	agents->list[agents->count++] = node;
	return node;
}

struct agents_node *agents_node(struct agents *agents, const char *name)
{
	struct agents_node *node = agents_find(agents, name);

	return node ? node : agents_add_node(agents, name, false);
}

void agents_begin(struct agents *agents)
{
	struct catalogue *catalogue = agents->port->catalogue;
	struct catalogue_cursor cursor = { .kind = RECORD_NODE };
	const struct node_record *record;
	struct engine_health health;

	agents->port->health(agents->port, &health);
	agents->term = health.term;
	agents->begun = true;
	catalogue_lock(catalogue);
	/* A node of Kubernetes that has no agent is not one that is silent. */
	while ((record = catalogue_next(catalogue, &cursor)))
		if (strcmp(record->boot, NODE_BOOT_KUBERNETES) != 0)
			set_timer(agents_add_node(agents, record->name, true));
	catalogue_unlock(catalogue);
}

void agents_misreport(const struct agents_node *node, const char *sentence)
{
	const struct agents_settings *settings = &node->agents->settings;

	if (settings->misreport)
		settings->misreport(settings->context, node->name, sentence);
}

/* Whether the core refused it because it is about what another node has. */
static bool is_misreport(const struct engine_request *done)
{
	return !done->ok &&
	       (done->error.code == ERROR_FORBIDDEN ||
	        (done->error.code == ERROR_CONFLICT && done->command.kind == COMMAND_NODE_REPORT));
}

/* A command is durable, or was refused. What could not be looked at is not old news: the
 * node has to say all of it again. */
static void on_done(struct engine_request *done)
{
	struct agents_request *request = (struct agents_request *)done;
	struct agents *agents = request->agents;
	struct agents_node *node = request->node;
	struct session_outputs outputs = { 0 };
	bool unseen =
	    !done->ok && (done->error.code == ERROR_UNAVAILABLE || done->error.code == ERROR_FULL);

	if (is_misreport(done))
		agents_misreport(node, done->error.text);
	if (unseen || (!done->ok && done->command.kind == COMMAND_NODE_REPORT))
		session_refused(node->session, now_ms(agents), request->connection, &done->error,
		                &outputs);
	else if (request->change > 0)
		session_stored(node->session, now_ms(agents), request->connection, request->change,
		               &outputs);
	agents_do(node, node->stream, &outputs);
	engine_pool_give_back(&agents->requests, request);
}

static void ask_core(struct agents_node *node, const struct session_output *output)
{
	struct agents *agents = node->agents;
	struct agents_request *request = engine_pool_take(&agents->requests);

	/* The command lives as long as the engine request, not as long as the outputs. */
	request->engine.command = *command_copy(&request->engine.arena, output->command);
	request->engine.has_command = request->engine.patient = true;
	request->engine.done = on_done;
	request->agents = agents;
	request->node = node;
	request->connection = output->connection;
	request->change = output->change;
	engine_port_send(agents->port, &request->engine);
}

static void agents_send(struct agents_node *node, struct agents_stream *stream,
                        const struct session_output *output)
{
	Agent__Envelope envelope = AGENT__ENVELOPE__INIT;

	if (stream) {
		envelope.message.data = (uint8_t *)output->data;
		envelope.message.len = output->size;
		agents_stream_send(stream, &envelope);
	} else if (node->legacy) {
		legacy_take(node, output->data, output->size);
	}
}

void agents_do(struct agents_node *node, struct agents_stream *from,
               struct session_outputs *outputs)
{
	struct agents *agents = node->agents;

	for (size_t i = 0; i < outputs->count; i++) {
		const struct session_output *output = &outputs->at[i];
		switch (output->kind) {
		case SESSION_COMMAND:
			ask_core(node, output);
			break;
		case SESSION_SEND:
			agents_send(node, from, output);
			break;
		case SESSION_NOTE:
			if (agents->settings.note)
				agents->settings.note(agents->settings.context, node->name,
				                      output->message);
			break;
		case SESSION_BEAT:
			agents_take_beat(node, &output->message->beat);
			break;
		case SESSION_MISREPORT:
			agents_misreport(node, output->reason);
			break;
		case SESSION_CLOSE:
			if (from)
				agents_stream_end(from, GRPC_OK, NULL);
			from = NULL;
			break;
		}
	}
	session_outputs_free(outputs);
	arena_reset(&agents->arena); /* of orders that were held until now */
	set_timer(node);
}

static void send_advice(struct agents_node *node)
{
	const struct agents_advice *advice = &node->agents->settings.advice;
	Agent__AgentSettings settings = AGENT__AGENT_SETTINGS__INIT;
	Agent__Envelope envelope = AGENT__ENVELOPE__INIT;

	if (!node->stream || (advice->heartbeat_ms == 0 && advice->metrics_ms == 0 &&
	                      !advice->container_runtime && !advice->sign_in))
		return;
	settings.heartbeat_interval_ms = advice->heartbeat_ms;
	settings.metrics_interval_ms = advice->metrics_ms;
	settings.sign_in = advice->sign_in;
	if (advice->container_runtime)
		settings.container_runtime = (char *)advice->container_runtime;
	envelope.settings = &settings;
	agents_stream_send(node->stream, &envelope);
}

void agents_advise(struct agents *agents, const struct agents_advice *advice)
{
	agents->settings.advice = *advice;
	for (size_t i = 0; i < agents->count; i++)
		send_advice(agents->list[i]);
}

static void set_peer(struct agents_node *node, const struct exchange *exchange)
{
	char peer[64];

	snprintf(peer, sizeof(peer), "%.*s", (int)min64((int64_t)exchange->peer_address.size, 63),
	         exchange->peer_address.data);
	session_set_peer(node->session, peer);
}

void agents_message(struct agents_node *node, const struct message *message,
                    struct agents_stream *from)
{
	struct session_outputs outputs = { 0 };
	const struct agents_settings *settings = &node->agents->settings;
	bool was_synced = session_is_synced(node->session);

	tell_time(node);
	session_message(node->session, now_ms(node->agents), message, &outputs);
	/* It has told the keys of its slots by now, if they have any. */
	if (!was_synced && session_is_synced(node->session) && settings->slots_changed)
		settings->slots_changed(settings->context);
	bool welcome = message->kind == MESSAGE_HELLO && from &&
	               session_connection(node->session) == message->connection;
	if (welcome && node->stream != from) {
		if (node->stream)
			agents_stream_end(node->stream, GRPC_ABORTED,
			                  "the node has another connection now");
		legacy_free(node->legacy);
		node->legacy = NULL;
		from->node = node;
		node->stream = from;
		set_peer(node, from->request->exchange);
	}
	agents_do(node, from, &outputs);
	if (welcome) {
		send_advice(node);
		agents_tell_leases(node);
	}
}

void agents_disconnected(struct agents_node *node)
{
	session_disconnected(node->session, session_connection(node->session));
	agents_end_all(node, "the node has no connection now: try again later");
	set_timer(node);
}

/* Names are in URLs, in logs and on command lines. */
static bool is_node_name(const char *name)
{
	size_t size = strlen(name);

	for (const char *at = name; *at; at++)
		if (*at <= ' ' || *at > '~' || strchr("/\\\"'?#%", *at))
			return false;
	return size > 0 && size <= NAME_BYTES_MAX;
}

bool agents_may_speak(const struct identity *identity, const char *name, struct error *error)
{
	if (!is_node_name(name))
		return error_set(error, ERROR_INVALID,
		                 "a node's name has 1 to %d letters, digits, dots and dashes",
		                 NAME_BYTES_MAX);
	if (identity->role != ROLE_AGENT && identity->role != ROLE_ADMIN)
		return error_set(error, ERROR_FORBIDDEN,
		                 "only agents may report for nodes: use a token with the role "
		                 "'agent'");
	if (identity->role == ROLE_AGENT && identity->node[0] && strcmp(identity->node, name) != 0)
		return error_set(error, ERROR_FORBIDDEN, "this token is for node %s, not for %.90s",
		                 identity->node, name);
	return true;
}

/* What orders need, copied into the arena of the order. */

static const char *agents_gpu_uuid(void *context, int64_t gpu_id)
{
	struct agents *agents = context;
	struct catalogue *catalogue = agents->port->catalogue;

	catalogue_lock(catalogue);
	const struct gpu_record *gpu = catalogue_get(catalogue, RECORD_GPU, gpu_id, 0);
	const char *uuid = arena_string(&agents->arena, gpu ? gpu->uuid : "");
	catalogue_unlock(catalogue);
	return uuid;
}

static const char *model_name(void *context, int64_t model_id)
{
	struct agents *agents = context;
	struct catalogue *catalogue = agents->port->catalogue;

	catalogue_lock(catalogue);
	const struct model_record *model = catalogue_get(catalogue, RECORD_MODEL, model_id, 0);
	const char *name = arena_string(&agents->arena, model ? model->name : "");
	catalogue_unlock(catalogue);
	return name;
}

/* What could not be made is told to the node, which then says why it does not start. */
static const char *finish_payload(struct agents *agents, bool ok, struct buffer *payload,
                                  const struct error *error)
{
	if (!ok) {
		buffer_clear(payload);
		struct json_writer json = json_writer_to(payload);
		json_open_object(&json, NULL);
		json_put_string(&json, "error", error->text);
		json_close(&json);
	}
	buffer_text(payload, "");
	return arena_string(&agents->arena, payload->data);
}

static const char *task_payload(void *context, int64_t job_id, int64_t task)
{
	struct agents *agents = context;
	struct error error = { 0 };

	buffer_clear(&agents->scratch);
	bool ok = agents->settings.task_payload(agents->settings.context, job_id, task,
	                                        &agents->scratch, &error);
	return finish_payload(agents, ok, &agents->scratch, &error);
}

static const char *model_payload(void *context, int64_t model_id)
{
	struct agents *agents = context;
	struct error error = { 0 };

	buffer_clear(&agents->scratch);
	bool ok = agents->settings.model_payload(agents->settings.context, model_id,
	                                         &agents->scratch, &error);
	return finish_payload(agents, ok, &agents->scratch, &error);
}

static struct agents_node *node_by_id(struct agents *agents, int64_t id)
{
	struct catalogue *catalogue = agents->port->catalogue;

	catalogue_lock(catalogue);
	const struct node_record *record = catalogue_get(catalogue, RECORD_NODE, id, 0);
	struct agents_node *node = record ? agents_find(agents, record->name) : NULL;
	catalogue_unlock(catalogue);
	return node;
}

void agents_order(struct agents *agents, const struct effect *effect)
{
	struct session_lookup lookup = { agents_gpu_uuid, task_payload, model_name, model_payload,
		                         agents };
	struct session_outputs outputs = { 0 };
	int64_t node_id =
	    effect->kind == EFFECT_LOAD ? effect->load.node_id : effect->order.node_id;
	struct agents_node *node = agents->begun ? node_by_id(agents, node_id) : NULL;

	/* A node that never said anything to this scheduler is told when it does. */
	if (!node)
		return;
	arena_reset(&agents->arena);
	session_order(node->session, now_ms(agents), effect, &lookup, &outputs);
	agents_do(node, node->stream, &outputs);
}

void agents_misreported(struct agents *agents, const struct event *event)
{
	const struct agents_node *node = node_by_id(agents, event->node_id);
	char sentence[256];

	if (!node)
		return;
	snprintf(sentence, sizeof(sentence),
	         "node %.90s reports reservation %lld, which is on another node", node->name,
	         (long long)event->value);
	agents_misreport(node, sentence);
}

void agents_given_up(struct agents *agents, const char *name, const char *reason)
{
	struct agents_node *node = agents_find(agents, name);
	struct session_outputs outputs = { 0 };

	if (!node)
		return;
	session_given_up(node->session, reason, &outputs);
	agents_do(node, node->stream, &outputs);
}

bool agents_is_connected(const struct agents *agents, const char *name)
{
	const struct agents_node *node = agents_find(agents, name);

	return node && session_connection(node->session) != 0;
}
