/* slot_load_test.c - a core loaded from records behaves like one whose routers restart */
#include "base/number.h"
#include "core/test/property_keeper.h"
#include "core/test/slots.h"

#define MODELS 8
#define STEPS 700
#define SEEDS 40

/* A core, what is kept of it, and another that was loaded from that when all
 * requests had ended and is given the same commands since. */
struct walk {
	struct harness *h;
	struct keeper keeper;
	struct sched *twin;
	uint64_t seed;
	int64_t tenants[2], models[MODELS];
	int64_t requests[256], last_request;
	int request_count;
	int64_t ended[256], reloads, granted, evicted; /* what happened, so that it did happen */
};

static uint64_t below(struct walk *walk, uint64_t bound)
{
	return random_below(&walk->seed, bound);
}

static void must_agree(const struct effects *one, const struct effects *other,
                       const struct command *command)
{
	struct buffer a = { 0 }, b = { 0 };

	effects_encode(&a, one);
	effects_encode(&b, other);
	if (a.size != b.size || memcmp(a.data, b.data, a.size) != 0) {
		struct buffer text = { 0 };
		command_print(&text, command);
		buffer_text(&text, "\nfirst:\n");
		effects_print(&text, one);
		buffer_text(&text, "\nloaded:\n");
		effects_print(&text, other);
		fail_msg("%s", text.data);
	}
	buffer_free(&a);
	buffer_free(&b);
}

static void slot_load_forget(struct walk *walk, int64_t id)
{
	for (int i = 0; i < walk->request_count; i++)
		if (walk->requests[i] == id) {
			walk->requests[i] = walk->requests[--walk->request_count];
			return;
		}
	fail_msg("request %lld ended twice", (long long)id);
}

/* Every request ends exactly once. */
static void slot_load_note_effects(struct walk *walk)
{
	for (size_t i = 0; i < walk->h->effects.count; i++) {
		const struct effect *effect = &walk->h->effects.at[i];
		if (effect->kind == EFFECT_ROUTE && effect->route.outcome == ROUTE_GRANTED)
			walk->granted++;
		if (effect->kind == EFFECT_ROUTE && effect->route.outcome >= ROUTE_REFUSED)
			slot_load_forget(walk, effect->route.request_id);
		if (effect->kind == EFFECT_PUT && effect->record_kind == RECORD_DECISION)
			walk->evicted += ((const struct decision_record *)effect->record)->kind ==
			                 DECISION_UNLOAD;
	}
}

static void slot_load_follow(struct harness *h, const struct command *command, bool applied)
{
	struct walk *walk = h->watcher;
	struct effects effects = { 0 };
	struct error error;

	if (walk->twin) {
		bool also = sched_apply(walk->twin, command, &effects, &error);
		assert_int_equal(also, applied);
		sched_check(walk->twin);
		must_agree(&h->effects, &effects, command);
		effects_free(&effects);
	}
	if (applied) {
		slot_load_note_effects(walk);
		keeper_apply(&walk->keeper, &h->effects);
	}
	if (command->kind == COMMAND_RESET_REQUESTS) {
		sched_free(walk->twin);
		walk->twin = keeper_load(&walk->keeper);
		sched_check(walk->twin);
		walk->reloads++;
	}
}

static void put_random_model(struct walk *walk, int at)
{
	static const char *const names[MODELS] = { "a", "b", "c", "d", "e", "f", "g", "h" };
	static const int64_t splits[] = { 1, 0, 2, 0 };
	struct model_record given =
	    model_of(walk->tenants[below(walk, 2)], names[at], 5000 + (int64_t)below(walk, 90000));

	given.id = walk->models[at];
	if (given.id && model(walk->h, given.id))
		given.tenant_id = model(walk->h, given.id)->r.tenant_id;
	given.concurrency = 1 + (int64_t)below(walk, 3);
	given.min_replicas = (int64_t)below(walk, 6) / 4;
	given.max_replicas = 1 + (int64_t)below(walk, 3);
	given.prewarm = below(walk, 4) == 0;
	given.pinned = below(walk, 8) == 0;
	given.uneven = below(walk, 3) == 0;
	given.policy = (int32_t)below(walk, 2);
	given.priority = 100 * (int64_t)below(walk, 10);
	given.idle_ttl_ms = 1 + (int64_t)below(walk, 10000);
	given.load_timeout_ms = 1000 + (int64_t)below(walk, 60000);
	if (below(walk, 3) == 0)
		given.splits = (struct rows){ splits, 2 };
	if (below(walk, 4) == 0)
		given.cpu_milli = 30000;
	if (try_put_model(walk->h, given, false))
		walk->models[at] = walk->h->effects.reply_id;
}

/* What a random slot's node tells about it. */
static void tell_slot(struct walk *walk)
{
	const struct models *models = &walk->h->sched->models;
	int64_t ids[256];
	int count = 0;

	for (size_t m = 0; m < models->count; m++)
		for (size_t i = 0; i < models->all[m]->slot_count && count < 256; i++)
			ids[count++] = models->all[m]->slots[i]->r.id;
	if (count == 0)
		return;
	int64_t id = ids[below(walk, (uint64_t)count)];
	const struct slot *slot = map_get(&models->slots, id);
	if (slot->r.state == SLOT_STOPPING)
		to_task(walk->h, COMMAND_MEMORY_RELEASED, id, 0, false);
	else if (slot->r.state == SLOT_LOADING && below(walk, 4) > 0)
		to_slot(walk->h, below(walk, 4) ? COMMAND_SLOT_READY : COMMAND_SLOT_LOADING, id, "",
		        false);
	else if (below(walk, 12) == 0)
		to_slot(walk->h, COMMAND_SLOT_EXITED, id, "died", below(walk, 2) == 0);
}

static const char *const node_names[] = { "n1", "n2", "n3" };
static const char *const uuids[3][3] = { { "n1-gpu0" },
	                                 { "n2-gpu0", "n2-gpu1" },
	                                 { "n3-gpu0", "n3-gpu1", "n3-gpu2" } };

/* All that a node has, but for a slot that it lost and one that nobody knows. */
static void slot_load_snapshot(struct walk *walk)
{
	const char *name = node_names[below(walk, 3)];
	const struct node *node = cluster_node(&walk->h->sched->cluster, name);
	struct device devices[8];
	struct slot_report slots[64];
	struct measurement measurements[64];
	int64_t running[64], count = 0, slot_count = 0, measured = 0;
	bool forgets = below(walk, 4) == 0, finds = below(walk, 4) == 0;

	for (int i = 0; i < node->gpu_count; i++)
		devices[i] = device_of(uuids[node->r.id - 1][i], i, 80000);
	for (int i = 0; i < node->reservation_count && count < 60; i++) {
		const struct reservation *reservation = node->reservations[i];
		const struct slot *slot = reservation->slot;
		if (reservation->phase == PHASE_CLAIM || (forgets && below(walk, 3) == 0) ||
		    (slot && slot->r.state == SLOT_PLACED))
			continue;
		running[count++] = reservation->id;
		if (slot)
			slots[slot_count++] = (struct slot_report){ slot->r.id, "a", "x",
				                                    slot->r.state == SLOT_READY };
	}
	if (finds) {
		slots[slot_count++] = (struct slot_report){ 1000000 + walk->h->now_ms, "a", "y",
			                                    below(walk, 2) == 0 };
		measurements[measured++] =
		    (struct measurement){ 1000000 + walk->h->now_ms, devices[0].uuid,
			                  (int64_t)below(walk, 40000) };
	}
	struct node_report_command all = report_of(name, devices, node->gpu_count);
	all.running = running;
	all.running_count = count;
	all.slots = slots;
	all.slot_count = slot_count;
	all.measurements = measurements;
	all.measurement_count = measured;
	all.snapshot = true;
	must(walk->h, report(walk->h, all));
}

static void change_node(struct walk *walk)
{
	const char *name = node_names[below(walk, 3)];

	switch (below(walk, 6)) {
	case 0:
		set_node_state(walk->h, name, NODE_UNKNOWN);
		break;
	case 1:
		set_node_state(walk->h, name, NODE_LOST);
		break;
	case 2:
		drain(walk->h, name, below(walk, 3) == 0);
		break;
	case 3:
		report_gpu(walk->h, below(walk, 2) ? "n1-gpu0" : "n2-gpu0",
		           below(walk, 2) ? (int64_t)below(walk, 90000) : 0, 40, true);
		break;
	default:
		slot_load_snapshot(walk);
		break;
	}
}

static void change_jobs(struct walk *walk)
{
	struct harness *h = walk->h;
	struct job_record given = below(walk, 2) ? whole(walk->tenants[below(walk, 2)], 1)
	                                         : memory(walk->tenants[below(walk, 2)], 30000);

	given.priority = 100 * (int64_t)below(walk, 10);
	if (below(walk, 4) == 0)
		given.tasks = given.min_available = 2;
	if (below(walk, 3) == 0) {
		submit(h, given);
		return;
	}
	for (size_t i = 0; i < h->sched->cluster.node_count; i++) {
		const struct node *node = h->sched->cluster.nodes[i];
		for (int r = 0; r < node->reservation_count; r++) {
			const struct reservation *reservation = node->reservations[r];
			if (!reservation->job || below(walk, 3))
				continue;
			if (reservation->phase == PHASE_RELEASING)
				to_task(h, COMMAND_MEMORY_RELEASED, reservation->id, 0, false);
			else if (reservation->phase == PHASE_GRANTED)
				to_task(h, COMMAND_TASK_STARTED, reservation->id, 0, false);
			else if (reservation->phase == PHASE_LIVE)
				to_task(h, COMMAND_TASK_EXITED, reservation->id, 0, true);
			return;
		}
	}
}

static void change_requests(struct walk *walk)
{
	struct harness *h = walk->h;

	if (walk->request_count < 200 && below(walk, 5) > 1) {
		int64_t id = ++walk->last_request;
		walk->requests[walk->request_count++] = id;
		if (!try_request(h, walk->models[below(walk, MODELS)], 0, id))
			slot_load_forget(walk, id);
	} else if (walk->request_count > 0) {
		int64_t id = walk->requests[below(walk, (uint64_t)walk->request_count)];
		must(h, try_done(h, id, (enum request_end)below(walk, 3)));
		slot_load_forget(walk, id);
	}
}

static void slot_load_step(struct walk *walk)
{
	struct harness *h = walk->h;
	int at = (int)below(walk, MODELS);

	h->now_ms += (int64_t)below(walk, 4) == 0 ? (int64_t)below(walk, 8000) : 1;
	switch (below(walk, 20)) {
	case 0:
		put_random_model(walk, at);
		break;
	case 1:
		if (below(walk, 4) == 0 && apply_to(h, COMMAND_REMOVE_MODEL, walk->models[at]))
			walk->models[at] = 0;
		break;
	case 2:
	case 3:
		change_node(walk);
		break;
	case 4:
	case 5:
		change_jobs(walk);
		break;
	case 6:
		time_passes(h, (int64_t)below(walk, 20000));
		break;
	case 7:
		if (below(walk, 3) == 0)
			must(h,
			     harness_apply(h, (struct command){ .kind = COMMAND_RESET_REQUESTS }));
		break;
	case 8:
	case 9:
	case 10:
		must(h, harness_apply(h, (struct command){ .kind = COMMAND_PASS,
		                                           .units = 1 + (int64_t)below(walk, 9) }));
		break;
	case 11:
	case 12:
	case 13:
	case 14:
		tell_slot(walk);
		break;
	default:
		change_requests(walk);
		break;
	}
}

static void walk_at_random(struct walk *walk)
{
	struct harness *h = walk->h = harness_new();

	h->watch = slot_load_follow;
	h->watcher = walk;
	for (int i = 0; i < 3; i++)
		add_node(h, node_names[i], i + 1, 80000);
	struct tenant_record tenant = tenant_named("one");
	walk->tenants[0] = put_tenant(h, tenant);
	tenant.name = "two";
	tenant.limit_gpu = 2500;
	tenant.quota_gpu = QUOTA_UNSET;
	walk->tenants[1] = put_tenant(h, tenant);
	for (int i = 0; i < MODELS; i++)
		put_random_model(walk, i);
	for (int i = 0; i < STEPS; i++)
		slot_load_step(walk);
	must(h, harness_apply(h, (struct command){ .kind = COMMAND_RESET_REQUESTS }));
	assert_int_equal(walk->request_count, 0);
	sched_free(walk->twin);
	keeper_free(&walk->keeper);
	harness_free(h);
}

static void a_loaded_core_goes_on_as_one_whose_routers_start_anew(void **unused)
{
	int64_t granted = 0, evicted = 0, reloads = 0;

	(void)unused;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct walk walk = { .seed = seed };
		walk_at_random(&walk);
		granted += walk.granted;
		evicted += walk.evicted;
		reloads += walk.reloads;
	}
	/* So that it was not a walk in an empty park. */
	assert_true(granted > 10 * SEEDS && evicted > SEEDS / 4 && reloads > SEEDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_loaded_core_goes_on_as_one_whose_routers_start_anew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
