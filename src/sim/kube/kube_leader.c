/* kube_leader.c - schedulers: the core, its store, the pods, their watches and their writes */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kube/kube_world.h"

enum { WATCH_WAIT_MS = 100, WATCH_WAIT_MOST_MS = 10000, TICK_MS = 400, WHYS = 2 };

void request_free(struct kube_request *request)
{
	if (!request)
		return;
	free(request->method);
	free(request->path);
	free(request->body);
	free(request->answer);
	free(request);
}

static struct kube_leader *leader_of(const struct kube *kube, int64_t id)
{
	for (int i = 0; i < 2; i++)
		if (kube->leaders[i] && kube->leaders[i]->id == id)
			return kube->leaders[i];
	return NULL;
}

static void free_kube_batch(struct kube_batch *batch)
{
	effects_free(&batch->effects);
	free(batch);
}

static void leader_free(struct kube_leader *leader)
{
	if (!leader)
		return;
	pods_free(leader->pods);
	sched_free(leader->sched);
	for (size_t i = 0; i < leader->batch_count; i++)
		free_kube_batch(leader->batches[i]);
	free(leader->batches);
	for (int i = 0; i < KUBE_RESOURCES; i++) {
		reflector_free(&leader->follows[i].reflector);
		buffer_free(&leader->follows[i].bytes);
	}
	free(leader);
}

void leader_free_all(struct kube *kube)
{
	for (int i = 0; i < 2; i++) {
		leader_free(kube->leaders[i]);
		kube->leaders[i] = NULL;
	}
}

static void leader_decide(struct kube_leader *leader, const struct command *command, int64_t ticket)
{
	struct kube *kube = leader->kube;
	struct kube_batch *batch = NEW(struct kube_batch);
	struct command now = *command;

	now.now_ms = kube->now_ms;
	batch->ticket = ticket;
	if (!sched_apply(leader->sched, &now, &batch->effects, &batch->refusal) && kube->verbose)
		kube_note(kube, "the core refuses %s: %.120s", command_kind_name(command->kind),
		          batch->refusal.text);
	array_reserve(leader->batches, leader->batch_capacity, leader->batch_count + 1);
	leader->batches[leader->batch_count++] = batch;
	leader->wants_pass = true;
	if (!leader->committing)
		kube_later(
		    kube, kube_between(&kube->random, 1, 30),
		    (struct kube_event){ .kind = HAPPEN_LEADER_COMMIT, .leader = leader->id });
	leader->committing = true;
}

static void sim_command(void *context, const struct command *command, int64_t ticket)
{
	leader_decide(context, command, ticket);
}

static bool sim_node_name(void *context, int64_t node_id, struct buffer *name)
{
	const struct kube_leader *leader = context;
	const struct node_record *node = world_find(&leader->kube->store, RECORD_NODE, node_id, 0);

	if (node)
		buffer_text(name, node->name);
	return node != NULL;
}

static bool sim_gpu_uuid(void *context, int64_t gpu_id, struct buffer *uuid)
{
	const struct kube_leader *leader = context;
	const struct gpu_record *gpu = world_find(&leader->kube->store, RECORD_GPU, gpu_id, 0);

	if (gpu)
		buffer_text(uuid, gpu->uuid);
	return gpu != NULL;
}

static const struct tenant_record *tenant_named(const struct kube_leader *leader, const char *name)
{
	struct rank_cursor cursor =
	    ranktree_seek(&leader->kube->store.kept[RECORD_TENANT], INT64_MIN, INT64_MIN);
	const struct rank_entry *entry;

	while ((entry = rank_cursor_next(&cursor))) {
		const struct tenant_record *tenant = entry->value;
		if (strcmp(tenant->name, name) == 0)
			return tenant;
	}
	return NULL;
}

static int64_t sim_tenant(void *context, const char *name)
{
	const struct tenant_record *tenant = tenant_named(context, name);

	return tenant ? tenant->id : 0;
}

static void sim_tenant_record(void *context, const char *name, struct arena *arena,
                              struct tenant_record *tenant)
{
	const struct tenant_record *known = tenant_named(context, name);

	*tenant = known ? *known : tenant_default(arena_string(arena, name));
}

static bool sim_no_agent(void *context, const char *name)
{
	(void)context, (void)name;
	return false;
}

static void sim_amounts(void *context, const char *name, int64_t *cpu_milli, int64_t *host_bytes)
{
	(void)context, (void)name;
	*cpu_milli = *host_bytes = 0;
}

static bool sim_job_is_over(void *context, int64_t job_id, bool *cancelled)
{
	const struct kube_leader *leader = context;
	const struct job_state_record *state =
	    world_find(&leader->kube->store, RECORD_JOB_STATE, job_id, 0);

	*cancelled = state && state->state == JOB_CANCELLED;
	return state && job_state_is_final((enum job_state)state->state);
}

static void sim_order(void *context, const struct effect *effect)
{
	(void)context, (void)effect; /* there is no agent to be told */
}

static int64_t sim_term(void *context)
{
	return ((const struct kube_leader *)context)->term;
}

static void sim_note(void *context, const char *sentence)
{
	kube_note(((struct kube_leader *)context)->kube, "%.180s", sentence);
}

static void sink(void *context, enum reflector_event event, const json_t *object)
{
	const struct kube_follow *follow = context;
	struct pods *pods = follow->leader->pods;

	if (follow == &follow->leader->follows[KUBE_NAMESPACES])
		pods_namespace(pods, event, object);
	else if (follow == &follow->leader->follows[KUBE_NODES_RESOURCE])
		pods_node(pods, event, object);
	else
		pods_pod(pods, event, object);
}

static const char *pod_key_of_job(const struct kube *kube, int64_t job_id)
{
	const struct job_record *job = world_find(&kube->store, RECORD_JOB, job_id, 0);

	return job && strncmp(job->idempotency_key, PODS_KEY, strlen(PODS_KEY)) == 0
	           ? job->idempotency_key
	           : NULL;
}

static void know_tasks(struct kube_leader *leader, const struct job_record *job)
{
	const struct world *store = &leader->kube->store;

	for (int64_t place = 0; place < job->tasks; place++) {
		const struct task_record *task = world_find(store, RECORD_TASK, job->id, place);
		const struct reservation_record *reservation =
		    task && task->reservation_id
			? world_find(store, RECORD_RESERVATION, task->reservation_id, 0)
			: NULL;
		bool ended = task && task->state == TASK_ENDED;
		struct pods_known_task known = { .job_id = job->id, .task = place, .ended = ended };
		if ((!reservation || reservation->phase == PHASE_CLAIM) && !ended)
			continue;
		if (reservation) {
			known.reservation_id = reservation->id;
			known.node_id = reservation->node_id;
			known.stopping = reservation->phase == PHASE_RELEASING;
			known.live = reservation->phase != PHASE_GRANTED;
			known.parts = reservation->parts;
		}
		pods_know_task(leader->pods, &known);
	}
}

static void know_jobs(struct kube_leader *leader)
{
	const struct world *store = &leader->kube->store;
	struct rank_cursor cursor =
	    ranktree_seek(&store->kept[RECORD_JOB_STATE], INT64_MIN, INT64_MIN);
	const struct rank_entry *entry;

	while ((entry = rank_cursor_next(&cursor))) {
		const struct job_state_record *state = entry->value;
		const struct job_record *job = world_find(store, RECORD_JOB, state->id, 0);
		if (!job || job_state_is_final((enum job_state)state->state) ||
		    !pod_key_of_job(leader->kube, state->id))
			continue;
		pods_know(leader->pods, &(struct pods_known){ .job_id = job->id,
		                                              .key = job->idempotency_key,
		                                              .held = state->held,
		                                              .tasks = job->tasks });
		know_tasks(leader, job);
	}
}

static struct pods *new_pods(struct kube_leader *leader)
{
	static const char *const names[] = { "gpu-scheduler", NULL };
	static const char *const tenants[] = { NULL };
	const struct pods_settings settings = { .scheduler_names = names,
		                                .default_tenant = "everyone",
		                                .tenants = tenants,
		                                .force_release_ms = 60000,
		                                .replace_ms = 300000 };
	const struct pods_port port = { .command = sim_command,
		                        .node_name = sim_node_name,
		                        .gpu_uuid = sim_gpu_uuid,
		                        .tenant = sim_tenant,
		                        .tenant_record = sim_tenant_record,
		                        .node_has_agent = sim_no_agent,
		                        .node_is_watched = sim_no_agent,
		                        .node_amounts = sim_amounts,
		                        .job_is_over = sim_job_is_over,
		                        .order = sim_order,
		                        .term = sim_term,
		                        .note = sim_note,
		                        .context = leader };

	return pods_new(&settings, &port);
}

/* From what is stored, and nothing else. */
static void leader_come_up(struct kube *kube)
{
	struct error error = { 0 };

	if (kube->leaders[0])
		return;
	struct kube_leader *leader = NEW(struct kube_leader);
	leader->kube = kube;
	leader->id = ++kube->last_leader;
	leader->leads = true;
	leader->sched = world_load(&kube->store, &error);
	if (!leader->sched) {
		kube_broken(kube, "books", "what is stored is not loaded: %s", error.text);
		free(leader);
		return;
	}
	kube->leaders[0] = leader;
	leader->term = sched_meta(leader->sched)->term + 1;
	kube_note(kube, "a scheduler of term %lld starts", (long long)leader->term);
	leader_decide(leader, &(struct command){ .kind = COMMAND_START }, 0);
	/* A term is stored before anyone hears of it. */
	world_apply(&kube->store, &leader->batches[0]->effects);
	leader->stored = 1;
	leader->pods = new_pods(leader);
	pods_time(leader->pods, kube->now_ms);
	know_jobs(leader);
	pods_begin(leader->pods);
	for (int i = 0; i < KUBE_RESOURCES; i++) {
		struct kube_follow *follow = &leader->follows[i];
		follow->leader = leader;
		follow->reflector = (struct reflector){
			.path = kube_paths[i], .query = "", .sink = sink, .context = follow
		};
	}
	kube_later(kube, 1,
	           (struct kube_event){ .kind = HAPPEN_LEADER_TICK, .leader = leader->id });
}

static void send_writes(struct kube_leader *leader)
{
	struct kube *kube = leader->kube;
	struct write *write;

	while ((write = writer_next(pods_writer(leader->pods), kube->now_ms))) {
		struct kube_request *request = NEW(struct kube_request);
		request->write = write;
		request->leader = leader->id;
		request->method = memory_text(write->looks ? "GET" : write->method);
		request->path = memory_text(write->looks ? write->look_path : write->path);
		if (!write->looks && write->body)
			request->body = memory_text(write->body);
		kube_later(kube, kube_between(&kube->random, 1, 200),
		           (struct kube_event){ .kind = HAPPEN_WRITE, .request = request });
	}
}

/* After each thing that it hears. */
static void leader_round(struct kube_leader *leader)
{
	pods_time(leader->pods, leader->kube->now_ms);
	pods_flush(leader->pods);
	send_writes(leader);
}

static void leader_take_answer(struct kube *kube, struct kube_request *request)
{
	struct kube_leader *leader = leader_of(kube, request->leader);

	if (!leader)
		return;
	pods_time(leader->pods, kube->now_ms);
	writer_answer(pods_writer(leader->pods), request->write, request->status,
	              request->retry_after_s, request->status ? request->answer : "no answer",
	              kube->now_ms);
	leader_round(leader);
}

static void follow_later(struct kube_follow *follow, int64_t wait_ms)
{
	follow->call = 0;
	follow->streaming = follow->open = false;
	follow->retry_ms = follow->leader->kube->now_ms + wait_ms;
}

static void begin_follow(struct kube_follow *follow)
{
	struct kube *kube = follow->leader->kube;

	follow->call = ++kube->last_call;
	follow->open = false;
	kube_later(kube, kube_between(&kube->random, 1, 50),
	           (struct kube_event){ .kind = HAPPEN_WATCH,
	                                .leader = follow->leader->id,
	                                .at = (int)(follow - follow->leader->follows),
	                                .call = follow->call });
}

static void stream_later(struct kube_follow *follow)
{
	struct kube *kube = follow->leader->kube;

	kube_later(kube, kube_between(&kube->random, 1, 150),
	           (struct kube_event){ .kind = HAPPEN_STREAM,
	                                .leader = follow->leader->id,
	                                .at = (int)(follow - follow->leader->follows),
	                                .call = follow->call });
}

/* Connections that end without a last word. What was sent may have come in part. */
static void cut_follow(struct kube_follow *follow, int64_t wait_ms)
{
	struct error error = { 0 };

	if (!follow->call)
		return;
	if (follow->open && follow->sent < follow->bytes.size && wait_ms % 2 == 0)
		reflector_feed(&follow->reflector, follow->bytes.data + follow->sent,
		               (follow->bytes.size - follow->sent) / 2, &error);
	reflector_lost(&follow->reflector);
	follow_later(follow, WATCH_WAIT_MS + wait_ms);
}

void leader_cut(struct kube *kube, struct kube_leader *leader, int64_t wait_ms)
{
	(void)kube;
	for (int i = 0; i < KUBE_RESOURCES; i++)
		cut_follow(&leader->follows[i], wait_ms);
}

static void open_follow(struct kube *kube, struct kube_follow *follow)
{
	struct buffer path = { 0 };
	struct error error = { 0 };

	if (api_is_down(kube)) {
		cut_follow(follow, kube_between(&kube->random, 0, WATCH_WAIT_MOST_MS));
		return;
	}
	reflector_request(&follow->reflector, &path);
	int status = api_watch(kube, follow, path.data);
	if (kube->verbose)
		kube_note(kube, "GET %s: %d", path.data, status);
	buffer_free(&path);
	follow->open = status == 200;
	if (!reflector_status(&follow->reflector, status, &error)) {
		follow_later(follow, WATCH_WAIT_MS);
		return;
	}
	stream_later(follow);
}

/* A part of what the server has sent, which may end in the middle of an object. */
static void take_bytes(struct kube *kube, struct kube_follow *follow)
{
	struct error error = { 0 };

	if (kube->now_ms < follow->silent_until_ms) {
		stream_later(follow);
		return;
	}
	api_feed(kube, follow);
	size_t left = follow->bytes.size - follow->sent;
	size_t part = left && kube_chance(&kube->random, 30)
	                  ? (size_t)kube_between(&kube->random, 1, (int64_t)left)
	                  : left;
	bool good =
	    reflector_feed(&follow->reflector, follow->bytes.data + follow->sent, part, &error);
	follow->sent += part;
	if (follow->sent == follow->bytes.size) {
		buffer_clear(&follow->bytes);
		follow->sent = 0;
	}
	if (!good) {
		kube_note(kube, "a watch ends: %.150s", error.text);
		follow_later(follow, WATCH_WAIT_MS);
		return;
	}
	bool over = follow->ends && follow->bytes.size == 0;
	/* A watch ends by itself after a while. */
	if (over || (follow->streaming && kube_chance(&kube->random, 1) && part == left)) {
		bool right = reflector_end(&follow->reflector, &error);
		follow_later(follow, right ? 0 : WATCH_WAIT_MS);
		return;
	}
	if (kube_fails(kube, KUBE_WATCH, 2))
		follow->silent_until_ms =
		    kube->now_ms + kube_between(&kube->dice[KUBE_WATCH], 1000, 60000);
	stream_later(follow);
}

static void explain(struct kube_leader *leader)
{
	struct buffer text = { 0 };
	struct error error = { 0 };
	int64_t job_id;

	for (int i = 0;
	     i < WHYS && pods_is_ready(leader->pods) && (job_id = pods_wants_why(leader->pods)) > 0;
	     i++) {
		buffer_clear(&text);
		if (sched_why(leader->sched, job_id, 0, &text, &error))
			pods_why(leader->pods, job_id, text.data);
	}
	buffer_free(&text);
}

static void leader_tick(struct kube_leader *leader)
{
	struct kube *kube = leader->kube;

	kube_later(kube, TICK_MS,
	           (struct kube_event){ .kind = HAPPEN_LEADER_TICK, .leader = leader->id });
	for (int i = 0; i < KUBE_RESOURCES; i++)
		if (!leader->follows[i].call && leader->follows[i].retry_ms <= kube->now_ms)
			begin_follow(&leader->follows[i]);
	if (leader->wants_pass || leader->next_pass_ms <= kube->now_ms) {
		leader->next_pass_ms = kube->now_ms + 2000;
		leader_decide(leader, &(struct command){ .kind = COMMAND_PASS, .units = 1000 }, 0);
		leader->wants_pass = false;
	}
	leader_round(leader);
	explain(leader);
	send_writes(leader);
}

void leader_crash(struct kube *kube, int place)
{
	uint64_t *dice = &kube->dice[KUBE_KILL];

	if (!kube->leaders[place])
		return;
	kube_note(kube, "the scheduler of term %lld is killed",
	          (long long)kube->leaders[place]->term);
	leader_free(kube->leaders[place]);
	kube->leaders[place] = NULL;
	kube->result->crashes++;
	if (place == 0)
		kube_later(kube,
		           kube_chance(dice, 80) ? kube_between(dice, 1, 5000)
		                                 : kube_between(dice, 5000, 120000),
		           (struct kube_event){ .kind = HAPPEN_LEADER_UP });
}

/* The old one continues as if nothing had happened, beside its successor, and stores no more. */
void leader_take_over(struct kube *kube)
{
	struct kube_leader *old = kube->leaders[0];
	uint64_t *dice = &kube->dice[KUBE_SECOND];

	if (!old || kube->leaders[1])
		return;
	kube->leaders[1] = old;
	kube->leaders[0] = NULL;
	old->leads = false;
	kube_note(kube, "another takes over from the scheduler of term %lld", (long long)old->term);
	kube->result->takeovers++;
	kube_later(kube, kube_between(dice, 1, 30000),
	           (struct kube_event){ .kind = HAPPEN_LEADER_STOPS, .leader = old->id });
	leader_come_up(kube);
}

/* All that was decided is stored at once. */
static void leader_commit(struct kube *kube, struct kube_leader *leader)
{
	if (!leader->leads || kube_fails(kube, KUBE_KILL, 3)) {
		leader_crash(kube, leader == kube->leaders[1]);
		return;
	}
	for (size_t i = leader->stored; i < leader->batch_count; i++)
		world_apply(&kube->store, &leader->batches[i]->effects);
	leader->stored = leader->batch_count;
	leader->committing = false;
	if (leader->telling)
		return;
	leader->telling = true;
	kube_later(kube, kube_between(&kube->random, 0, 10),
	           (struct kube_event){ .kind = HAPPEN_LEADER_TELL, .leader = leader->id });
}

static void tell_effect(struct kube_leader *leader, const struct effect *effect)
{
	const struct kube *kube = leader->kube;
	const char *key;

	if (effect->kind == EFFECT_START || effect->kind == EFFECT_STOP) {
		key = effect->order.job_id ? pod_key_of_job(kube, effect->order.job_id) : "";
		if (key)
			pods_effect(leader->pods, key, effect);
	} else if (effect->kind == EFFECT_EVENT && effect->event.kind == EVENT_JOB_ENDED) {
		key = pod_key_of_job(kube, effect->event.job_id);
		if (key)
			pods_job_ended(leader->pods, key);
	}
}

static void tell_submitted(struct kube_leader *leader, const struct kube_batch *batch)
{
	if (batch->ticket)
		pods_submitted(leader->pods, batch->ticket,
		               batch->refusal.code ? 0 : batch->effects.reply_id, &batch->refusal);
}

static void leader_tell(struct kube *kube, struct kube_leader *leader)
{
	int64_t id = leader->id;

	leader->telling = false;
	while (leader->stored > 0) {
		struct kube_batch *batch = leader->batches[0];
		leader->stored--;
		leader->batch_count--;
		memmove(leader->batches, leader->batches + 1,
		        leader->batch_count * sizeof(struct kube_batch *));
		bool first = kube_chance(&kube->random, 50);
		if (first)
			tell_submitted(leader, batch);
		for (size_t i = 0; i < batch->effects.count; i++) {
			tell_effect(leader, &batch->effects.at[i]);
			if (kube_fails(kube, KUBE_KILL, 1)) {
				leader_crash(kube, leader == kube->leaders[1]);
				break;
			}
		}
		if (leader_of(kube, id) && !first)
			tell_submitted(leader, batch);
		free_kube_batch(batch);
		if (!leader_of(kube, id))
			return;
	}
	leader_round(leader);
}

void leader_command(struct kube *kube, struct command command)
{
	if (kube->leaders[0])
		leader_decide(kube->leaders[0], &command, 0);
}

void leader_init(struct kube *kube)
{
	struct config_record config = config_default();
	struct effects effects = { 0 };
	struct error error = { 0 };
	uint64_t *random = &kube->random;
	struct sched *sched = sched_new();

	config.enable_preemption = kube_chance(random, 60);
	config.enable_consolidation = kube_chance(random, 50);
	config.enable_backfill = kube_chance(random, 70);
	config.gang_grace_ms = kube_between(random, 5, 60) * 1000;
	config.release_timeout_ms = kube_between(random, 5, 60) * 1000;
	config.grace_ms = kube_between(random, 1, 10) * 1000;
	config.refuse_backoff_ms = 1000;
	config.retention_ms = 3600000;
	struct command commands[] = {
		{ .kind = COMMAND_CONFIGURE, .now_ms = kube->now_ms, .configure = config },
		{ .kind = COMMAND_PUT_TENANT,
		  .now_ms = kube->now_ms,
		  .tenant = tenant_default("everyone") },
	};
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		effects_clear(&effects);
		if (!sched_apply(sched, &commands[i], &effects, &error))
			panic("%s", error.text);
		world_apply(&kube->store, &effects);
	}
	effects_free(&effects);
	sched_free(sched);
	leader_come_up(kube);
}

static void follow_event(struct kube *kube, const struct kube_event *event,
                         struct kube_leader *leader)
{
	struct kube_follow *follow = &leader->follows[event->at];

	if (follow->call != event->call)
		return;
	pods_time(leader->pods, kube->now_ms);
	if (event->kind == HAPPEN_WATCH)
		open_follow(kube, follow);
	else
		take_bytes(kube, follow);
	leader_round(leader);
}

static void request_event(struct kube *kube, const struct kube_event *event)
{
	struct kube_request *request = event->request;

	if (event->kind == HAPPEN_ANSWER) {
		leader_take_answer(kube, request);
		request_free(request);
		return;
	}
	api_write(kube, request);
	kube_note(kube, "%s %s: %d", request->method, request->path, request->status);
	/* The one that waits for an answer gives up at last. */
	int64_t wait_ms = request->status == 0 ? kube_between(&kube->random, 1000, 30000)
	                                       : kube_between(&kube->random, 1, 200);
	kube_later(kube, wait_ms, (struct kube_event){ .kind = HAPPEN_ANSWER, .request = request });
}

void leader_event(struct kube *kube, const struct kube_event *event)
{
	struct kube_leader *leader = leader_of(kube, event->leader);

	if (event->request)
		request_event(kube, event);
	else if (event->kind == HAPPEN_LEADER_UP)
		leader_come_up(kube);
	else if (!leader)
		return;
	else if (event->kind == HAPPEN_LEADER_TICK)
		leader_tick(leader);
	else if (event->kind == HAPPEN_LEADER_COMMIT)
		leader_commit(kube, leader);
	else if (event->kind == HAPPEN_LEADER_TELL)
		leader_tell(kube, leader);
	else if (event->kind == HAPPEN_LEADER_STOPS)
		leader_crash(kube, leader == kube->leaders[1]);
	else
		follow_event(kube, event, leader);
}
