/* serve_core.c - the core places models and gives places to requests */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "core/model/model.h"
#include "core/record/config_range.h"
#include "sim/serve/serve_run.h"

enum { NODE_GPUS = 8, IDLE_TTL_MS = 1, MIB_BYTES_OF = 1 << 20, SLEEPERS_HOST = 900 };
#define NODE_HOST_BYTES (INT64_C(2) << 40) /* of a machine with eight such GPUs */
#define SERVE_RESIDUE_GB 1.0
#define WARM_UP_STEP_US INT64_C(60000000)

static int64_t mib_of(double gb)
{
	return (int64_t)(gb * 1e9 / MIB_BYTES_OF);
}

static void note_order(struct serve_run *run, struct serve_order order)
{
	array_reserve(run->orders, run->order_capacity, run->order_count + 1);
	run->orders[run->order_count++] = order;
}

/* The GPUs are numbered in the order in which their nodes reported them. */
static void read_slot(struct serve_run *run, const struct slot_record *record)
{
	struct serve_slot *slot = serve_find_slot(run, record->id);

	if (slot && slot->state == SERVE_SLOT_READY && record->closing_for != 0)
		note_order(run, (struct serve_order){ .kind = ORDER_CLOSE, .id = record->id });
	else if (slot && slot->state == SERVE_SLOT_CLOSING && record->closing_for == 0 &&
	         record->state == SLOT_READY)
		note_order(run, (struct serve_order){ .kind = ORDER_OPEN, .id = record->id });
}

static void read_effect(struct serve_run *run, const struct effect *effect)
{
	switch (effect->kind) {
	case EFFECT_PUT:
		if (effect->record_kind == RECORD_SLOT)
			read_slot(run, effect->record);
		break;
	case EFFECT_LOAD:
		note_order(run, (struct serve_order){ .kind = ORDER_LOAD,
		                                      .id = effect->load.reservation_id,
		                                      .model_id = effect->load.model_id,
		                                      .gpu = effect->load.parts.at[PART_GPU] - 1 });
		break;
	case EFFECT_SUSPEND:
	case EFFECT_RESUME:
		note_order(run, (struct serve_order){ .kind = effect->kind == EFFECT_SUSPEND
		                                                  ? ORDER_SLEEP
		                                                  : ORDER_WAKE,
		                                      .id = effect->order.reservation_id });
		break;
	case EFFECT_STOP:
		note_order(run, (struct serve_order){ .kind = ORDER_STOP,
		                                      .id = effect->order.reservation_id });
		break;
	case EFFECT_ROUTE:
		if (effect->route.outcome == ROUTE_GRANTED)
			note_order(run, (struct serve_order){ .kind = ORDER_GRANT,
			                                      .id = effect->route.request_id,
			                                      .slot_id = effect->route.slot_id });
		else if (effect->route.outcome == ROUTE_REFUSED)
			note_order(run, (struct serve_order){ .kind = ORDER_REFUSE,
			                                      .id = effect->route.request_id });
		break;
	default:
		break;
	}
}

static void send(struct serve_run *run, struct command command)
{
	run->driver.now_ms = SERVE_BEGAN_MS + run->now_us / 1000;
	if (run->failed || !driver_send(&run->driver, command, run->error)) {
		run->failed = true;
		return;
	}
	for (size_t i = 0; i < run->driver.effects.count; i++)
		read_effect(run, &run->driver.effects.at[i]);
}

static int model_of(const struct serve_run *run, int64_t model_id)
{
	int model = 0;

	while (run->model_ids[model] != model_id)
		model++;
	return model;
}

static bool sleeps_anywhere(const struct serve_run *run)
{
	return run->policy == SERVE_OURS && run->setup->sleep == SERVE_SLEEP_ANY;
}

static bool sleeps_at_home(const struct serve_run *run)
{
	return run->policy == SERVE_OURS && run->setup->sleep == SERVE_SLEEP_HOME;
}

static void carry_out(struct serve_run *run, struct serve_order order)
{
	struct serve_slot *slot;

	switch (order.kind) {
	case ORDER_LOAD: {
		int model = model_of(run, order.model_id);
		bool cached = run->cached[model];
		slot = serve_add_slot(
		    run, order.id, model, (int)order.gpu,
		    run->now_us + (cached ? serve_wake_us(run, model) : serve_load_us(run, model)));
		slot->sleep = cached ? SERVE_WAKES : SERVE_AWAKE;
		run->cached[model] = sleeps_anywhere(run);
		break;
	}
	case ORDER_SLEEP:
	case ORDER_WAKE:
		slot = serve_find_slot(run, order.id);
		INVARIANT(slot && !server_has_work(&slot->server));
		slot->state = SERVE_SLOT_LOADING;
		slot->sleep = order.kind == ORDER_WAKE ? SERVE_WAKES : SERVE_FALLS_ASLEEP;
		slot->load_ends_us =
		    run->now_us + (order.kind == ORDER_WAKE ? serve_wake_us(run, slot->model)
		                                            : serve_sleep_us(run, slot->model));
		break;
	case ORDER_STOP:
		slot = serve_find_slot(run, order.id);
		if (slot)
			serve_drop_slot(run, slot);
		struct command released = { .kind = COMMAND_MEMORY_RELEASED };
		released.task.reservation_id = order.id;
		released.task.message = "";
		released.task.node = "";
		send(run, released);
		break;
	case ORDER_GRANT:
		slot = serve_find_slot(run, order.slot_id);
		array_reserve(slot->places, slot->place_capacity, slot->place_count + 1);
		slot->places[slot->place_count++] = order.id;
		slot->share++;
		break;
	case ORDER_REFUSE:
		if ((size_t)order.id <= run->trace->count)
			run->refused[order.id - 1] = true;
		break;
	case ORDER_CLOSE:
	case ORDER_OPEN:
		slot = serve_find_slot(run, order.id);
		run->closed += order.kind == ORDER_CLOSE;
		if (slot)
			slot->state =
			    order.kind == ORDER_CLOSE ? SERVE_SLOT_CLOSING : SERVE_SLOT_READY;
		break;
	}
	run->routes_changed = true;
}

static void carry_out_all(struct serve_run *run)
{
	while (run->order_next < run->order_count && !run->failed)
		carry_out(run, run->orders[run->order_next++]);
	run->order_next = run->order_count = 0;
}

void serve_core_pass(struct serve_run *run)
{
	send(run, (struct command){ .kind = COMMAND_PASS, .units = INT64_MAX });
	carry_out_all(run);
	if (sched_has_waiting(run->driver.sched)) { /* memory came back */
		send(run, (struct command){ .kind = COMMAND_PASS, .units = INT64_MAX });
		carry_out_all(run);
	}
}

void serve_core_arrived(struct serve_run *run, size_t request)
{
	struct command command = { .kind = COMMAND_REQUEST };

	command.request.request_id = (int64_t)request + 1;
	command.request.model_id = run->model_ids[run->trace->requests[request].model];
	command.request.lease_ms = 86400000;
	send(run, command);
	carry_out_all(run);
}

void serve_core_loaded(struct serve_run *run, struct serve_slot *slot)
{
	struct command command = { .kind = COMMAND_SLOT_READY };

	command.slot.reservation_id = slot->id;
	command.slot.address = "slot";
	command.slot.message = "";
	command.slot.node = "";
	send(run, command);
	carry_out_all(run);
}

void serve_core_moved(struct serve_run *run, struct serve_slot *slot)
{
	bool wakes = slot->sleep == SERVE_WAKES;
	struct command command = { .kind = wakes ? COMMAND_TASK_RESUMED : COMMAND_TASK_SUSPENDED };

	command.task.reservation_id = slot->id;
	command.task.released = true;
	command.task.message = "";
	command.task.node = "";
	command.task.ago_ms =
	    (wakes ? serve_wake_us(run, slot->model) : serve_sleep_us(run, slot->model)) / 1000;
	command.task.use.peak_mib = wakes ? 0 : mib_of(SERVE_RESIDUE_GB);
	command.task.use.host_peak_bytes =
	    wakes ? 0 : (int64_t)(serve_kind_of(run->trace, slot->model)->weights_gb * 1e9);
	slot->sleep = wakes ? SERVE_AWAKE : SERVE_SLEEPS;
	send(run, command);
	carry_out_all(run);
}

void serve_core_ended(struct serve_run *run, struct serve_slot *slot)
{
	struct command command = { .kind = COMMAND_REQUEST_DONE };

	INVARIANT(slot->place_count > 0);
	command.done.request_id = slot->places[--slot->place_count];
	command.done.end = REQUEST_SUCCEEDED;
	slot->share--;
	send(run, command);
	carry_out_all(run);
}

static void add_nodes(struct serve_run *run)
{
	struct device devices[NODE_GPUS];
	char names[NODE_GPUS][32], node[32];
	double spare_gb = run->setup->gpu_gb - serve_usable_gb(run);

	for (int first = 0; first < run->setup->gpus; first += NODE_GPUS) {
		int count =
		    run->setup->gpus - first < NODE_GPUS ? run->setup->gpus - first : NODE_GPUS;
		struct command command = { .kind = COMMAND_NODE_REPORT };
		snprintf(node, sizeof(node), "node-%05d", first);
		for (int i = 0; i < count; i++) {
			snprintf(names[i], sizeof(names[i]), "GPU-%05d", first + i);
			devices[i] = (struct device){ .uuid = names[i],
				                      .model = "GPU",
				                      .mig_parent = "",
				                      .place = i,
				                      .capacity_mib = mib_of(run->setup->gpu_gb),
				                      .overhead_mib = mib_of(spare_gb),
				                      .healthy = true };
		}
		command.report = (struct node_report_command){ .name = node,
			                                       .boot = "1",
			                                       .zone = "",
			                                       .rack = "",
			                                       .labels = "",
			                                       .cpu_milli = 1000000,
			                                       .host_bytes = NODE_HOST_BYTES,
			                                       .devices = devices,
			                                       .device_count = count,
			                                       .snapshot = true };
		send(run, command);
	}
}

/* Models by how often they are asked, most first. */
static void rank_models(const struct serve_run *run, int *ranked)
{
	int64_t *asked = memory_zero((size_t)run->trace->models, sizeof(*asked));

	for (size_t i = 0; i < run->trace->count; i++)
		asked[run->trace->requests[i].model]++;
	for (int m = 0; m < run->trace->models; m++) {
		int at = m;
		for (; at > 0 && asked[ranked[at - 1]] < asked[m]; at--)
			ranked[at] = ranked[at - 1];
		ranked[at] = m;
	}
	free(asked);
}

/* Which models stay loaded: none, or those that are asked most and fit. */
static void choose_resident(const struct serve_run *run, bool *resident)
{
	int models = run->trace->models, gpus = run->setup->gpus;
	int *ranked = memory_zero((size_t)models, sizeof(*ranked));
	double *left = memory_zero((size_t)gpus, sizeof(*left));

	rank_models(run, ranked);
	for (int g = 0; g < gpus; g++)
		left[g] = serve_usable_gb(run);
	for (int i = 0; i < models; i++) {
		double need = serve_need_gb(run, ranked[i]);
		bool fits = false;
		for (int g = 0; g < gpus && !fits && run->policy == SERVE_STATIC; g++) {
			fits = left[g] >= need;
			left[g] -= fits ? need : 0;
		}
		resident[ranked[i]] = fits;
	}
	free(ranked);
	free(left);
}

/* `prewarm`: loaded before it begins, where there is room. */
static void put_model(struct serve_run *run, int model, int64_t tenant_id, bool resident,
                      bool prewarm)
{
	static const int64_t splits[] = { 1, 0 };
	struct command command = { .kind = COMMAND_PUT_MODEL };
	char name[32];

	snprintf(name, sizeof(name), "m%d", model);
	command.model.model = (struct model_record){
		.id = run->model_ids[model],
		.tenant_id = tenant_id,
		.name = name,
		.runtime = RUNTIME_VLLM,
		.command = "",
		.payload = "",
		.kv_cache = "",
		.gpu_models = "",
		.node_labels = "",
		.message = "",
		.shared = true,
		.memory_mib = mib_of(serve_need_gb(run, model)),
		.splits = { splits, 1 },
		.concurrency = SERVER_BATCH_MAX,
		.min_replicas = resident,
		.prewarm = prewarm,
		.max_replicas = 1,
		.idle_ttl_ms = IDLE_TTL_MS,
		.priority = 500,
		.policy = SLOT_SPREAD,
		.sleep = sleeps_at_home(run) ? SLEEP_DRIVER : SLEEP_OFF,
	};
	send(run, command);
	if (run->model_ids[model] == 0)
		run->model_ids[model] = run->driver.effects.reply_id;
}

/* What was ordered is done at once: loads, and slots that go to sleep. */
static void settle(struct serve_run *run)
{
	bool again = true;

	while (again && !run->failed) {
		again = false;
		for (size_t i = 0; i < run->slot_count && !again; i++) {
			struct serve_slot *slot = run->slots[i];
			if (slot->state != SERVE_SLOT_LOADING || slot->sleep == SERVE_SLEEPS)
				continue;
			again = true;
			if (slot->sleep == SERVE_FALLS_ASLEEP) {
				slot->load_ends_us = INT64_MAX;
			} else {
				slot->state = SERVE_SLOT_READY;
			}
			bool moved = sleeps_at_home(run) && slot->sleep != SERVE_AWAKE;
			slot->sleep = moved ? slot->sleep : SERVE_AWAKE;
			(moved ? serve_core_moved : serve_core_loaded)(run, slot);
		}
		serve_core_pass(run);
	}
}

/* Every model was asked before it begins, one a minute: so all are ready or asleep, as far as host
 * memory goes. */
static void ask_each_once(struct serve_run *run)
{
	int models = run->trace->models;

	for (int model = 0; model < models && !run->failed; model++) {
		struct command asked = { .kind = COMMAND_REQUEST };
		struct command done = { .kind = COMMAND_REQUEST_DONE };
		asked.request.request_id = done.done.request_id =
		    (int64_t)run->trace->count + model + 1;
		asked.request.model_id = run->model_ids[model];
		asked.request.lease_ms = 86400000;
		done.done.end = REQUEST_SUCCEEDED;
		send(run, asked);
		carry_out_all(run);
		settle(run);
		for (size_t i = 0; i < run->slot_count; i++)
			if (run->slots[i]->place_count > 0) {
				run->slots[i]->place_count = 0;
				run->slots[i]->share = 0;
			}
		send(run, done);
		carry_out_all(run);
		run->now_us += WARM_UP_STEP_US;
	}
}

bool serve_core_begin(struct serve_run *run)
{
	bool *resident = memory_zero((size_t)run->trace->models, sizeof(*resident));
	struct command configure = { .kind = COMMAND_CONFIGURE, .configure = config_default() };
	struct command tenant = { .kind = COMMAND_PUT_TENANT, .tenant = tenant_default("all") };
	bool warm = run->policy == SERVE_OURS && run->setup->sleep != SERVE_SLEEP_NONE;

	if (warm)
		run->now_us = -(int64_t)run->trace->models * WARM_UP_STEP_US;
	driver_start(&run->driver);
	if (sleeps_at_home(run))
		configure.configure.suspend_host = SLEEPERS_HOST;
	if (run->policy == SERVE_STATIC)
		configure.configure.turn_wait_ms = RANGE_MOST(RANGE_TURN_WAIT_MS);
	tenant.tenant.payload = "";
	send(run, configure);
	send(run, tenant);
	int64_t tenant_id = run->driver.effects.reply_id;
	add_nodes(run);
	choose_resident(run, resident);
	memset(run->model_ids, 0, (size_t)run->trace->models * sizeof(*run->model_ids));
	for (int model = 0; model < run->trace->models; model++)
		put_model(run, model, tenant_id, resident[model], run->policy != SERVE_STATIC);
	serve_core_pass(run);
	for (size_t i = 0; i < run->slot_count; i++) { /* the service has been running for long */
		struct serve_slot *slot = run->slots[i];
		slot->state = SERVE_SLOT_READY;
		serve_core_loaded(run, slot);
	}
	for (int model = 0; model < run->trace->models; model++)
		put_model(run, model, tenant_id, resident[model], false);
	if (warm)
		ask_each_once(run);
	free(resident);
	return !run->failed;
}
