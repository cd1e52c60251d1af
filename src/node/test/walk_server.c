/* walk_server.c - the core, its store and its sessions, killed between any two steps */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/test/walk.h"

static const char *gpu_uuid(void *context, int64_t gpu_id)
{
	const struct walk_server *server = context;
	const struct gpu_record *gpu = keeper_find(&server->keeper, RECORD_GPU, gpu_id, 0);

	return gpu ? gpu->uuid : NULL;
}

static const char *no_payload(void *context, int64_t job_id, int64_t task)
{
	(void)context;
	(void)job_id;
	(void)task;
	return "";
}

static const char *no_model_payload(void *context, int64_t model_id)
{
	(void)context;
	(void)model_id;
	return "";
}

static const char *model_name(void *context, int64_t model_id)
{
	const struct walk_server *server = context;
	const struct model_record *model = keeper_find(&server->keeper, RECORD_MODEL, model_id, 0);

	return model ? model->name : NULL;
}

static int node_index(const struct walk *walk, int64_t node_id)
{
	const struct node_record *node = keeper_find(&walk->server.keeper, RECORD_NODE, node_id, 0);

	for (int i = 0; node && i < WALK_NODES; i++)
		if (strcmp(walk->nodes[i].name, node->name) == 0)
			return i;
	panic("an order for a node that is not known");
}

static void follow(struct walk *walk, int at, struct session_outputs *outputs);

static void drop_batches(struct walk_server *server);

void server_crash(struct walk *walk)
{
	struct walk_server *server = &walk->server;

	if (!server->sched)
		return;
	sched_free(server->sched);
	server->sched = NULL;
	server->life++;
	drop_batches(server);
	for (int i = 0; i < WALK_NODES; i++) {
		session_delete(server->sessions[i]);
		server->sessions[i] = NULL;
	}
	walk->crashes++;
	int64_t wait_ms = chance(&walk->random, 80) ? between(&walk->random, 1, 5000)
	                                            : between(&walk->random, 5000, 200000);
	walk_later(walk, wait_ms, (struct walk_event){ .kind = WALK_SERVER_UP });
}

static void hand_over(struct walk *walk, const struct effect *effect)
{
	struct walk_server *server = &walk->server;
	struct session_lookup lookup = { gpu_uuid, no_payload, model_name, no_model_payload,
		                         server };
	struct session_outputs outputs = { 0 };
	int64_t node_id =
	    effect->kind == EFFECT_LOAD ? effect->load.node_id : effect->order.node_id;
	int at = node_index(walk, node_id);

	session_order(server->sessions[at], walk->now_ms, effect, &lookup, &outputs);
	follow(walk, at, &outputs);
	session_outputs_free(&outputs);
}

/* Decided, and stored later, together with what else is decided until then. */
static struct walk_batch *decide(struct walk *walk, struct command *command)
{
	struct walk_server *server = &walk->server;
	struct walk_batch *batch = NEW(struct walk_batch);

	command->now_ms = walk->now_ms;
	if (!sched_apply(server->sched, command, &batch->effects, &batch->refusal))
		batch->refusal.code =
		    command->kind == COMMAND_NODE_REPORT ? batch->refusal.code : ERROR_NONE;
	if (server->batch_count == 0)
		walk_later(walk, between(&walk->random, 1, 30),
		           (struct walk_event){ .kind = WALK_SERVER_COMMIT, .life = server->life });
	array_reserve(server->batches, server->batch_capacity, server->batch_count + 1);
	server->batches[server->batch_count++] = batch;
	server->wants_pass = true;
	return batch;
}

int64_t server_apply(struct walk *walk, struct command *command)
{
	return walk->server.sched ? decide(walk, command)->effects.reply_id : 0;
}

static void drop_batches(struct walk_server *server)
{
	for (size_t i = 0; i < server->batch_count; i++) {
		effects_free(&server->batches[i]->effects);
		free(server->batches[i]);
	}
	server->batch_count = 0;
}

static void hand_over_all(struct walk *walk, const struct effects *effects)
{
	for (size_t i = 0; i < effects->count && walk->server.sched; i++) {
		const struct effect *effect = &effects->at[i];
		if (effect->kind != EFFECT_START && effect->kind != EFFECT_STOP &&
		    effect->kind != EFFECT_LOAD)
			continue;
		if (walk_fails(walk, 2))
			server_crash(walk);
		else
			hand_over(walk, effect);
	}
}

/* The node may forget what it said, once all that followed is told. */
static void acknowledge(struct walk *walk, const struct walk_batch *batch)
{
	struct session *session = walk->server.sessions[batch->node];
	struct session_outputs outputs = { 0 };

	if (batch->refusal.code != ERROR_NONE)
		session_refused(session, walk->now_ms, batch->connection, &batch->refusal,
		                &outputs);
	session_stored(session, walk->now_ms, batch->connection, batch->change, &outputs);
	follow(walk, batch->node, &outputs);
	session_outputs_free(&outputs);
}

/* It can be killed before it stored anything, and between any two things it tells. */
static void commit(struct walk *walk)
{
	struct walk_server *server = &walk->server;
	struct walk_batch **batches = server->batches;
	size_t count = server->batch_count;

	if (walk_fails(walk, 3)) {
		server_crash(walk);
		return;
	}
	server->batches = NULL;
	server->batch_count = server->batch_capacity = 0;
	for (size_t i = 0; i < count; i++)
		keeper_apply(&server->keeper, &batches[i]->effects);
	for (size_t i = 0; i < count; i++) {
		if (server->sched)
			hand_over_all(walk, &batches[i]->effects);
		if (server->sched && batches[i]->change > 0)
			acknowledge(walk, batches[i]);
		effects_free(&batches[i]->effects);
		free(batches[i]);
	}
	free(batches);
}

static void command_of(struct walk *walk, int at, const struct session_output *output)
{
	struct command command = *output->command;
	struct walk_batch *batch = decide(walk, &command);

	batch->node = at;
	batch->connection = output->connection;
	batch->change = output->change;
}

static void follow(struct walk *walk, int at, struct session_outputs *outputs)
{
	for (size_t i = 0; i < outputs->count && walk->server.sched; i++) {
		const struct session_output *output = &outputs->at[i];
		if (output->kind == SESSION_COMMAND)
			command_of(walk, at, output);
		else if (output->kind == SESSION_SEND)
			walk_send(walk, WALK_TO_AGENT, at, output->data, output->size);
	}
}

static void message(struct walk *walk, const struct walk_event *event)
{
	struct walk_server *server = &walk->server;
	struct arena arena = { 0 };
	struct error error = { 0 };
	struct session_outputs outputs = { 0 };

	if (!server->sched)
		return;
	struct message *read = message_decode(&arena, event->data, event->size, &error);
	if (!read)
		panic("an agent's message is not read: %s", error.text);
	session_message(server->sessions[event->node], walk->now_ms, read, &outputs);
	follow(walk, event->node, &outputs);
	session_outputs_free(&outputs);
	arena_free(&arena);
}

static void pass(struct walk *walk)
{
	struct command command = { .kind = COMMAND_PASS, .units = 1000 };

	walk->server.wants_pass = false;
	walk->server.next_pass_ms = walk->now_ms + 2000;
	server_apply(walk, &command);
	walk->server.wants_pass = false;
}

/* Once nothing fails any more, jobs can have all GPUs. */
static void remove_model(struct walk *walk)
{
	struct command command = { .kind = COMMAND_REMOVE_MODEL, .id = walk->model_id };

	if (walk->faults || walk->model_id == 0)
		return;
	server_apply(walk, &command);
	walk->model_id = 0;
}

static void tick(struct walk *walk, const struct walk_event *event)
{
	struct walk_server *server = &walk->server;
	struct session_outputs outputs = { 0 };

	if (!server->sched || event->life != server->life)
		return;
	walk_later(walk, 250, *event);
	for (int i = 0; i < WALK_NODES && server->sched; i++) {
		session_outputs_clear(&outputs);
		session_time(server->sessions[i], walk->now_ms, walk->now_ms, &outputs);
		follow(walk, i, &outputs);
	}
	session_outputs_free(&outputs);
	remove_model(walk);
	if (server->sched && (server->wants_pass || server->next_pass_ms <= walk->now_ms))
		pass(walk);
}

static bool is_known(const struct walk *walk, int at)
{
	const struct keeper *keeper = &walk->server.keeper;

	for (size_t i = 0; i < keeper_node_count(keeper); i++)
		if (strcmp(keeper_node(keeper, i)->name, walk->nodes[at].name) == 0)
			return true;
	return false;
}

static void come_up(struct walk *walk)
{
	struct walk_server *server = &walk->server;
	struct command command = { .kind = COMMAND_START };

	if (server->sched)
		return;
	server->sched = keeper_load(&server->keeper);
	int64_t term = sched_meta(server->sched)->term + 1;
	for (int i = 0; i < WALK_NODES; i++)
		server->sessions[i] = session_new(walk->nodes[i].name, is_known(walk, i), term,
		                                  walk->now_ms, &server->policy);
	walk_later(walk, 250,
	           (struct walk_event){ .kind = WALK_SERVER_TICK, .life = server->life });
	server_apply(walk, &command);
}

void server_event(struct walk *walk, const struct walk_event *event)
{
	if (event->kind == WALK_TO_SERVER)
		message(walk, event);
	else if (event->kind == WALK_SERVER_TICK)
		tick(walk, event);
	else if (event->kind == WALK_SERVER_COMMIT) {
		if (walk->server.sched && event->life == walk->server.life)
			commit(walk);
	} else
		come_up(walk);
}

static int64_t must(struct walk *walk, struct command command)
{
	struct walk_batch *batch = decide(walk, &command);
	int64_t reply_id = batch->effects.reply_id;

	INVARIANT(batch->effects.count > 0);
	commit(walk);
	return reply_id;
}

static struct tenant_record tenant(void)
{
	return (struct tenant_record){ .name = "team",
		                       .limit_gpu = UNLIMITED,
		                       .limit_cpu = UNLIMITED,
		                       .limit_host = UNLIMITED,
		                       .limit_gpu_memory = UNLIMITED,
		                       .limit_jobs = UNLIMITED,
		                       .quota_gpu = UNLIMITED,
		                       .quota_cpu = UNLIMITED,
		                       .quota_host = UNLIMITED,
		                       .weight = 1000,
		                       .max_preemptions = UNLIMITED,
		                       .queue_max = UNLIMITED,
		                       .budget_per_month = UNLIMITED };
}

void server_init(struct walk *walk)
{
	struct walk_server *server = &walk->server;
	struct command model = { .kind = COMMAND_PUT_MODEL };
	struct config_record config = config_default();

	for (int i = 0; i < WALK_NODES; i++)
		snprintf(walk->nodes[i].name, sizeof(walk->nodes[i].name), "node-%d", i);
	server->policy = session_policy_default();
	server->policy.margin_ms = 200; /* clocks are exact here, and kills quick */
	server->sched = sched_new();
	walk->faults = false; /* nothing fails before the first record is there */
	config.enable_preemption = config.enable_consolidation = false;
	config.refuse_backoff_ms = 1000;
	config.foreign_tolerance_mib = 500; /* what always stands on GPUs here */
	must(walk, (struct command){ .kind = COMMAND_CONFIGURE, .configure = config });
	walk->tenant_id =
	    must(walk, (struct command){ .kind = COMMAND_PUT_TENANT, .tenant = tenant() });
	model.model.model = (struct model_record){ .tenant_id = walk->tenant_id,
		                                   .name = "model",
		                                   .runtime = RUNTIME_LLAMA_CPP,
		                                   .command = "",
		                                   .payload = "",
		                                   .kv_cache = "",
		                                   .gpu_models = "",
		                                   .node_labels = "",
		                                   .message = "",
		                                   .memory_mib = 2000,
		                                   .priority = 500,
		                                   .load_timeout_ms = 60000,
		                                   .min_replicas = 2,
		                                   .max_replicas = 2 };
	walk->model_id = must(walk, model);
	sched_free(server->sched);
	server->sched = NULL;
	come_up(walk);
	walk->faults = true;
}

void server_free(struct walk_server *server)
{
	for (int i = 0; i < WALK_NODES; i++)
		if (server->sessions[i])
			session_delete(server->sessions[i]);
	if (server->sched)
		sched_free(server->sched);
	drop_batches(server);
	free(server->batches);
	keeper_free(&server->keeper);
}

static void print(enum record_kind kind, const void *record)
{
	struct buffer text = { 0 };

	fields_print(&text, record_type(kind), record);
	fprintf(stderr, "%s%s\n", record_type(kind)->name, text.data);
	buffer_free(&text);
}

int64_t server_waiting(const struct walk *walk)
{
	const struct keeper *keeper = &walk->server.keeper;
	int64_t count = 0;

	for (size_t i = 0; i < keeper_job_state_count(keeper); i++)
		count += keeper_job_state(keeper, i)->state < JOB_COMPLETED;
	return count;
}

void server_print(const struct walk *walk)
{
	const struct keeper *keeper = &walk->server.keeper;

	for (size_t i = 0; i < keeper_job_state_count(keeper); i++)
		if (keeper_job_state(keeper, i)->state < JOB_COMPLETED) {
			const struct job_state_record *job = keeper_job_state(keeper, i);
			print(RECORD_JOB, keeper_find(keeper, RECORD_JOB, job->id, 0));
			print(RECORD_JOB_STATE, job);
		}
	for (size_t i = 0; i < keeper_reservation_count(keeper); i++)
		print(RECORD_RESERVATION, keeper_reservation(keeper, i));
	for (size_t i = 0; i < keeper_node_count(keeper); i++)
		print(RECORD_NODE, keeper_node(keeper, i));
	for (size_t i = 0; i < keeper_gpu_count(keeper); i++)
		print(RECORD_GPU, keeper_gpu(keeper, i));
}

static bool is_over(const struct job_state_record *job)
{
	return job->state == JOB_COMPLETED || job->state == JOB_CANCELLED;
}

bool server_is_done(const struct walk *walk)
{
	const struct keeper *keeper = &walk->server.keeper;

	for (size_t i = 0; i < keeper_job_state_count(keeper); i++) {
		const struct job_state_record *job = keeper_job_state(keeper, i);
		if (job->state == JOB_FAILED)
			panic("job-%lld failed: %s", (long long)job->id, job->message);
		if (!is_over(job))
			return false;
	}
	return keeper_reservation_count(keeper) == 0;
}
