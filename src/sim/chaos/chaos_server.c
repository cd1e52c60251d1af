/* chaos_server.c - schedulers: the core, its store and its sessions, killed between any two steps
 */
#include <stdlib.h>
#include <string.h>

#include "sim/chaos/chaos_world.h"

static const char *chaos_server_gpu_uuid(void *context, int64_t gpu_id)
{
	const struct chaos *chaos = context;
	const struct gpu_record *gpu = world_find(&chaos->store, RECORD_GPU, gpu_id, 0);

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
	const struct chaos *chaos = context;
	const struct model_record *model = world_find(&chaos->store, RECORD_MODEL, model_id, 0);

	return model ? model->name : NULL;
}

/* -1: the node was removed since. */
static int node_index(const struct chaos *chaos, int64_t node_id)
{
	const struct node_record *node = world_find(&chaos->store, RECORD_NODE, node_id, 0);

	for (int i = 0; node && i < chaos->node_count; i++)
		if (strcmp(chaos->nodes[i].name, node->name) == 0)
			return i;
	return -1;
}

static int64_t server_now(const struct chaos *chaos, const struct chaos_server *server)
{
	return chaos->now_ms + server->clock_ms;
}

static void chaos_server_follow(struct chaos *chaos, int place, int at,
                                struct session_outputs *outputs);

static void free_batch(struct chaos_batch *batch)
{
	if (batch->wish)
		client_unanswered(batch->wish);
	effects_free(&batch->effects);
	free(batch);
}

static void chaos_server_stop(struct chaos_server *server)
{
	if (server->sched)
		sched_free(server->sched);
	server->sched = NULL;
	server->life++;
	for (size_t i = 0; i < server->batch_count; i++)
		free_batch(server->batches[i]);
	server->batch_count = server->stored = 0;
	server->committing = server->telling = false;
	for (int i = 0; i < CHAOS_NODES; i++) {
		if (server->sessions[i])
			session_delete(server->sessions[i]);
		server->sessions[i] = NULL;
	}
	if (server->liar)
		session_delete(server->liar);
	server->liar = NULL;
}

void server_crash(struct chaos *chaos, int place)
{
	uint64_t *dice = &chaos->dice[CHAOS_KILL];

	if (!chaos->servers[place].sched)
		return;
	chaos_note(chaos, "the scheduler at place %d is killed", place);
	chaos_server_stop(&chaos->servers[place]);
	chaos->result->crashes++;
	if (place > 0)
		return;
	request_forget_all(chaos);
	chaos_later(chaos, chance(dice, 80) ? between(dice, 1, 5000) : between(dice, 5000, 200000),
	            (struct chaos_event){ .kind = HAPPEN_SERVER_UP });
}

/* Whoever wants a reservation to stop may be too late for its own end. One that ends while it is
 * suspended counts as lost by that. */
static void note_stops(struct chaos *chaos, const struct effects *effects)
{
	for (size_t i = 0; i < effects->count; i++) {
		const struct effect *effect = &effects->at[i];
		if (effect->kind != EFFECT_STOP && effect->kind != EFFECT_SUSPEND)
			continue;
		map_put(&chaos->stopped, effect->order.reservation_id, chaos);
		struct chaos_job *job = client_job(chaos, effect->order.job_id);
		if (job)
			job->ended_itself = false;
	}
}

struct chaos_batch *server_decide(struct chaos *chaos, int place, struct command *command)
{
	struct chaos_server *server = &chaos->servers[place];

	if (!server->sched)
		return NULL;
	struct chaos_batch *batch = NEW(struct chaos_batch);
	command->now_ms = chaos->now_ms + chaos->wall_ms;
	if (!sched_apply(server->sched, command, &batch->effects, &batch->refusal) &&
	    command->kind != COMMAND_NODE_REPORT && command->kind != COMMAND_NODE_REMOVE)
		batch->refusal.code = ERROR_NONE;
	note_stops(chaos, &batch->effects);
	array_reserve(server->batches, server->batch_capacity, server->batch_count + 1);
	server->batches[server->batch_count++] = batch;
	server->wants_pass = true;
	if (!server->committing)
		chaos_later(chaos, between(&chaos->random, 1, 30),
		            (struct chaos_event){ .kind = HAPPEN_SERVER_COMMIT,
		                                  .node = place,
		                                  .life = server->life });
	server->committing = true;
	return batch;
}

static void hand_over(struct chaos *chaos, int place, const struct effect *effect)
{
	struct chaos_server *server = &chaos->servers[place];
	struct session_lookup lookup = { chaos_server_gpu_uuid, no_payload, model_name,
		                         no_model_payload, chaos };
	struct session_outputs outputs = { 0 };
	int at = node_index(chaos, effect->kind == EFFECT_LOAD ? effect->load.node_id
	                                                       : effect->order.node_id);

	if (at < 0)
		return;
	session_order(server->sessions[at], server_now(chaos, server), effect, &lookup, &outputs);
	chaos_server_follow(chaos, place, at, &outputs);
	session_outputs_free(&outputs);
}

/* It can be killed between any two things that it tells. */
static void hand_over_all(struct chaos *chaos, int place, const struct effects *effects)
{
	int64_t life = chaos->servers[place].life;

	for (size_t i = 0; i < effects->count; i++) {
		const struct effect *effect = &effects->at[i];
		if (effect->kind == EFFECT_ROUTE && place == 0)
			request_routed(chaos, &effect->route);
		if (effect->kind != EFFECT_START && effect->kind != EFFECT_STOP &&
		    effect->kind != EFFECT_LOAD && effect->kind != EFFECT_SUSPEND &&
		    effect->kind != EFFECT_RESUME)
			continue;
		if (chaos_fails(chaos, CHAOS_KILL, 2))
			server_crash(chaos, place);
		if (chaos->servers[place].life != life)
			return;
		hand_over(chaos, place, effect);
	}
}

/* The node may forget what it said, once all that followed is told. */
static void acknowledge(struct chaos *chaos, int place, const struct chaos_batch *batch)
{
	struct chaos_server *server = &chaos->servers[place];
	struct session *session = server->sessions[batch->node];
	struct session_outputs outputs = { 0 };

	if (batch->refusal.code != ERROR_NONE)
		session_refused(session, server_now(chaos, server), batch->connection,
		                &batch->refusal, &outputs);
	session_stored(session, server_now(chaos, server), batch->connection, batch->change,
	               &outputs);
	chaos_server_follow(chaos, place, batch->node, &outputs);
	session_outputs_free(&outputs);
}

static void chaos_server_tell(struct chaos *chaos, int place)
{
	struct chaos_server *server = &chaos->servers[place];
	int64_t life = server->life;

	server->telling = false;
	while (server->stored > 0) {
		struct chaos_batch *batch = server->batches[0];
		server->stored--;
		server->batch_count--;
		memmove(server->batches, server->batches + 1,
		        server->batch_count * sizeof(struct chaos_batch *));
		hand_over_all(chaos, place, &batch->effects);
		if (server->life == life && batch->wish)
			client_told(chaos, batch->wish, &batch->effects);
		else if (batch->wish)
			client_unanswered(batch->wish);
		batch->wish = NULL;
		if (server->life == life && batch->change > 0)
			acknowledge(chaos, place, batch);
		free_batch(batch);
		if (server->life != life)
			return;
	}
}

/* All that was decided is stored at once. One that leads no more cannot, and stops. */
static void chaos_server_commit(struct chaos *chaos, int place)
{
	struct chaos_server *server = &chaos->servers[place];

	if (place > 0 || chaos_fails(chaos, CHAOS_KILL, 3)) {
		server_crash(chaos, place);
		return;
	}
	for (size_t i = server->stored; i < server->batch_count; i++) {
		world_apply(&chaos->store, &server->batches[i]->effects);
		if (server->batches[i]->wish)
			client_stored(chaos, server->batches[i]);
		check_stored(chaos, &server->batches[i]->effects);
	}
	server->stored = server->batch_count;
	server->committing = false;
	server->active_ms = server_now(chaos, server);
	if (server->telling)
		return;
	server->telling = true;
	chaos_later(chaos, between(&chaos->random, 0, 10),
	            (struct chaos_event){
			.kind = HAPPEN_SERVER_TELL, .node = place, .life = server->life });
}

static void command_of(struct chaos *chaos, int place, int at, const struct session_output *output)
{
	struct command command = *output->command;
	struct chaos_batch *batch = server_decide(chaos, place, &command);

	batch->node = at;
	batch->connection = output->connection;
	batch->change = output->change;
	if (place == 0 && command.kind == COMMAND_NODE_REPORT)
		chaos->nodes[at].mistaken = false;
}

static void chaos_server_follow(struct chaos *chaos, int place, int at,
                                struct session_outputs *outputs)
{
	for (size_t i = 0; i < outputs->count && chaos->servers[place].sched; i++) {
		const struct session_output *output = &outputs->at[i];
		if (output->kind == SESSION_COMMAND)
			command_of(chaos, place, at, output);
		else if (output->kind == SESSION_SEND)
			chaos_send(chaos, HAPPEN_TO_AGENT, at, place, output->data, output->size);
	}
}

static void chaos_server_take_message(struct chaos *chaos, const struct chaos_event *event)
{
	struct chaos_server *server = &chaos->servers[event->server];
	struct arena arena = { 0 };
	struct error error = { 0 };
	struct session_outputs outputs = { 0 };

	if (!server->sched)
		return;
	const struct message *read = message_decode(&arena, event->data, event->size, &error);
	if (read) {
		session_message(server->sessions[event->node], server_now(chaos, server), read,
		                &outputs);
		chaos_server_follow(chaos, event->server, event->node, &outputs);
	} else {
		chaos_broken(chaos, "books", "an agent's message is not read: %s", error.text);
	}
	session_outputs_free(&outputs);
	arena_free(&arena);
}

static void pass(struct chaos *chaos, int place)
{
	struct command command = { .kind = COMMAND_PASS, .units = 1000 };

	chaos->servers[place].next_pass_ms = chaos->now_ms + 2000;
	server_decide(chaos, place, &command);
	chaos->servers[place].wants_pass = false;
}

/* Once nothing fails and nobody asks any more, jobs can have all GPUs. Where models keep slots,
 * others may wait forever. */
static void remove_models(struct chaos *chaos)
{
	bool wanted = chaos->request_count > 0 &&
	              (!chaos->reserving || chaos->now_ms - chaos->quiet_ms < 600000);

	for (int i = 0; chaos->quiet_ms > 0 && !wanted && i < chaos->model_count; i++) {
		const struct model_record *model =
		    world_find(&chaos->store, RECORD_MODEL, chaos->model_ids[i], 0);
		struct command command = { .kind = COMMAND_REMOVE_MODEL,
			                   .id = chaos->model_ids[i] };
		if (model && !model->removed)
			server_decide(chaos, 0, &command);
	}
}

static void chaos_server_tick(struct chaos *chaos, const struct chaos_event *event)
{
	int place = event->node;
	struct chaos_server *server = &chaos->servers[place];
	struct session_outputs outputs = { 0 };

	if (!server->sched || event->life != server->life)
		return;
	chaos_later(chaos, 300, *event);
	if (place == 0)
		server->active_ms = server_now(chaos, server);
	for (int i = 0; i < chaos->node_count && server->sched; i++) {
		session_outputs_clear(&outputs);
		session_time(server->sessions[i], server_now(chaos, server), server->active_ms,
		             &outputs);
		chaos_server_follow(chaos, place, i, &outputs);
	}
	session_outputs_free(&outputs);
	if (place == 0)
		remove_models(chaos);
	if (server->sched && (server->wants_pass || server->next_pass_ms <= chaos->now_ms))
		pass(chaos, place);
}

static bool is_known(const struct chaos *chaos, int at)
{
	struct rank_cursor cursor =
	    ranktree_seek(&chaos->store.kept[RECORD_NODE], INT64_MIN, INT64_MIN);
	const struct rank_entry *entry;

	while ((entry = rank_cursor_next(&cursor))) {
		const struct node_record *node = entry->value;
		if (strcmp(node->name, chaos->nodes[at].name) == 0)
			return true;
	}
	return false;
}

/* From what is stored, and nothing else. */
static void come_up(struct chaos *chaos)
{
	struct chaos_server *server = &chaos->servers[0];
	struct command command = { .kind = COMMAND_START };
	struct error error = { 0 };

	if (server->sched)
		return;
	server->sched = world_load(&chaos->store, &error);
	if (!server->sched) {
		chaos_broken(chaos, "books", "what is stored is not loaded: %s", error.text);
		return;
	}
	server->clock_ms = between(&chaos->random, 0, 1000000);
	server->active_ms = server_now(chaos, server);
	server->term = sched_meta(server->sched)->term + 1;
	chaos_note(chaos, "a scheduler of term %lld starts", (long long)server->term);
	for (int i = 0; i < chaos->node_count; i++)
		server->sessions[i] =
		    session_new(chaos->nodes[i].name, is_known(chaos, i), server->term,
		                server_now(chaos, server), &chaos->session_policy);
	chaos_later(chaos, 300,
	            (struct chaos_event){ .kind = HAPPEN_SERVER_TICK, .life = server->life });
	server_decide(chaos, 0, &command);
	/* A term is stored before anyone hears of it. */
	world_apply(&chaos->store, &server->batches[0]->effects);
	server->stored = 1;
	chaos_later(chaos, 0,
	            (struct chaos_event){ .kind = HAPPEN_SERVER_TELL, .life = server->life });
	server->telling = true;
}

/* The old leader continues as if nothing had happened, beside its successor. */
void server_take_over(struct chaos *chaos)
{
	struct chaos_server *active = &chaos->servers[0], *old = &chaos->servers[1];
	uint64_t *dice = &chaos->dice[CHAOS_SECOND];

	if (!active->sched || old->sched)
		return;
	int64_t old_life = old->life, new_life = active->life + 1;
	struct chaos_batch **batches = old->batches;
	size_t capacity = old->batch_capacity;
	*old = *active;
	old->life = old_life + 1;
	*active = (struct chaos_server){ .life = new_life,
		                         .batches = batches,
		                         .batch_capacity = capacity };
	chaos_note(chaos, "another takes over from the scheduler of term %lld",
	           (long long)old->term);
	chaos->result->takeovers++;
	request_forget_all(chaos);
	for (int i = 0; i < chaos->node_count; i++)
		chaos->nodes[i].server = chance(dice, 70) ? 1 : 0;
	struct chaos_event event = { .node = 1, .life = old->life };
	event.kind = HAPPEN_SERVER_TICK;
	chaos_later(chaos, 300, event);
	event.kind = HAPPEN_SERVER_TELL;
	chaos_later(chaos, between(dice, 0, 10000), event);
	event.kind = HAPPEN_SERVER_STOPS;
	old->telling = old->committing = true; /* it never stores again */
	chaos_later(chaos, between(dice, 1, 30000), event);
	come_up(chaos);
}

void server_event(struct chaos *chaos, const struct chaos_event *event)
{
	if (event->kind == HAPPEN_TO_SERVER) {
		chaos_server_take_message(chaos, event);
		return;
	}
	if (event->kind == HAPPEN_SERVER_UP) {
		come_up(chaos);
		return;
	}
	const struct chaos_server *server = &chaos->servers[event->node];
	if (!server->sched || event->life != server->life)
		return;
	if (event->kind == HAPPEN_SERVER_TICK)
		chaos_server_tick(chaos, event);
	else if (event->kind == HAPPEN_SERVER_COMMIT)
		chaos_server_commit(chaos, event->node);
	else if (event->kind == HAPPEN_SERVER_TELL)
		chaos_server_tell(chaos, event->node);
	else
		server_crash(chaos, event->node);
}

int64_t server_must(struct chaos *chaos, struct command command)
{
	const struct chaos_batch *batch = server_decide(chaos, 0, &command);
	int64_t reply_id = batch->effects.reply_id;

	INVARIANT(batch->effects.count > 0);
	chaos_server_commit(chaos, 0);
	chaos_server_tell(chaos, 0);
	return reply_id;
}

void server_init(struct chaos *chaos)
{
	struct chaos_server *server = &chaos->servers[0];

	server->sched = sched_new();
	server_must(chaos, (struct command){ .kind = COMMAND_CONFIGURE,
	                                     .configure = cluster_config(chaos) });
	client_init(chaos);
	chaos_server_stop(server);
	come_up(chaos);
}

void server_free(struct chaos *chaos)
{
	for (int i = 0; i < 2; i++) {
		chaos_server_stop(&chaos->servers[i]);
		free(chaos->servers[i].batches);
	}
}

/* Results that the node still has for others do not count any more. */
static void write_off(struct chaos *chaos, int at)
{
	for (size_t i = 0; i < chaos->run_count; i++) {
		struct run *run = chaos->runs[i];
		struct chaos_job *job = client_job(chaos, run->job_id);
		if (run->node != at)
			continue;
		run->given_up = true;
		if (job)
			job->ended_itself = false;
	}
}

static void remove_node(struct chaos *chaos, int at)
{
	struct chaos_server *server = &chaos->servers[0];
	struct command command = { .kind = COMMAND_NODE_REMOVE, .node = chaos->nodes[at].name };
	struct session_outputs outputs = { 0 };

	const struct chaos_batch *batch = server_decide(chaos, 0, &command);
	if (batch->refusal.code != ERROR_NONE)
		return;
	chaos_note(chaos, "node-%d is removed", at);
	session_given_up(server->sessions[at], "the node was removed", &outputs);
	chaos_server_follow(chaos, 0, at, &outputs);
	session_outputs_free(&outputs);
	if (!chance(&chaos->dice[CHAOS_GIVE_UP], 50))
		return;
	session_delete(server->sessions[at]);
	server->sessions[at] = session_new(chaos->nodes[at].name, false, server->term,
	                                   server_now(chaos, server), &chaos->session_policy);
}

/* Mostly of a node that is off; at times he is wrong. */
static void declare_dead(struct chaos *chaos, int at)
{
	struct chaos_server *server = &chaos->servers[0];
	struct command command = { .kind = COMMAND_NODE_DEAD, .node = chaos->nodes[at].name };
	struct session_outputs outputs = { 0 };

	if (!chaos->nodes[at].off && !chance(&chaos->dice[CHAOS_GIVE_UP], 30))
		return;
	chaos_note(chaos, "node-%d is declared dead%s", at,
	           chaos->nodes[at].off ? "" : ", wrongly");
	chaos->nodes[at].mistaken = !chaos->nodes[at].off;
	write_off(chaos, at);
	server_decide(chaos, 0, &command);
	session_given_up(server->sessions[at], "the node was declared dead", &outputs);
	chaos_server_follow(chaos, 0, at, &outputs);
	session_outputs_free(&outputs);
}

void server_give_up(struct chaos *chaos, int at)
{
	if (!chaos->servers[0].sched)
		return;
	if (chance(&chaos->dice[CHAOS_GIVE_UP], 50))
		declare_dead(chaos, at);
	if (chance(&chaos->dice[CHAOS_GIVE_UP], 50))
		remove_node(chaos, at);
}
