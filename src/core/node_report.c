/* node_report.c - what nodes tell: always recorded, however unwelcome */
#include <stdlib.h>
#include <string.h>

#include "core/queue/job.h"
#include "core/record/heat.h"
#include "core/record/orchestrator.h"
#include "core/state.h"

void node_report_over(struct sched *sched, struct gpu *gpu)
{
	bool over = gpu_is_over(gpu);

	INVARIANT(gpu->node != NULL && sched->effects != NULL);
	if (over != gpu->was_over)
		sched_event(sched,
		            (struct event){ .kind = over ? EVENT_GPU_OVER : EVENT_GPU_FREE_AGAIN,
		                            .gpu_id = gpu->r.id,
		                            .node_id = gpu->node->r.id,
		                            .value = -gpu_free_now(gpu) });
	gpu->was_over = over;
}

static bool hot_after(const struct sched *sched, bool was_hot, int64_t temperature_c,
                      int64_t slowdown_c)
{
	const struct config_record *config = &sched->config;

	return heat_is_hot(was_hot, temperature_c,
	                   heat_threshold_c(config->thermal_threshold_c, slowdown_c),
	                   config->thermal_resume_c);
}

static bool has_right(const struct reservation *reservation, const struct node *node,
                      const char *uuid)
{
	if (!reservation || reservation->node != node || reservation->phase == PHASE_CLAIM)
		return false;
	for (int i = 0; i < reservation->part_count; i++)
		if (strcmp(reservation->parts[i].gpu->r.uuid, uuid) == 0)
			return true;
	return false;
}

/* Memory that work uses which has no right to this GPU: given up here and still
 * running there, say. It is there, so it counts as foreign. */
static int64_t stray_mib(const struct sched *sched, const struct node *node, const char *uuid,
                         const struct measurement *measurements, int64_t count)
{
	int64_t sum = 0;

	for (int64_t i = 0; i < count; i++) {
		const struct measurement *measurement = &measurements[i];
		if (strcmp(measurement->uuid, uuid) == 0 &&
		    !has_right(map_get(&sched->reservations, measurement->reservation_id), node,
		               uuid))
			sum = min64(sum + measurement->memory_mib, MIB_MAX);
	}
	return sum;
}

/* Measurements that say nothing new change nothing. */
static void node_report_measure(struct sched *sched, const struct node *node,
                                const struct measurement *measurements, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		struct reservation *reservation =
		    map_get(&sched->reservations, measurements[i].reservation_id);
		struct gpu *gpu = cluster_gpu(&sched->cluster, measurements[i].uuid);
		if (!reservation || !gpu || reservation->node != node || gpu->node != node ||
		    reservation->phase == PHASE_CLAIM)
			continue;
		for (int p = 0; p < reservation->part_count; p++)
			if (reservation->parts[p].gpu == gpu &&
			    reservation->parts[p].measured_mib != measurements[i].memory_mib)
				sched_dirty_reservation(sched, reservation);
		ledger_measure(&sched->ledger, reservation, gpu, measurements[i].memory_mib);
		if (reservation->slot)
			evict_measured(reservation->slot);
		node_report_over(sched, gpu);
	}
}

/* The device that stands for all that have this UUID: they agree, but for the
 * temperature, of which the highest counts. */
static struct device merged(const struct node_report_command *report, int64_t first,
                            int64_t *aliases)
{
	struct device device = report->devices[first];

	*aliases = 0;
	for (int64_t i = first; i < report->device_count; i++) {
		const struct device *other = &report->devices[i];
		if (strcmp(other->uuid, device.uuid) != 0)
			continue;
		++*aliases;
		device.temperature_c = max64(device.temperature_c, other->temperature_c);
		device.place = min64(device.place, other->place);
		device.healthy = device.healthy && other->healthy;
	}
	return device;
}

/* The lowest temperature at which the device slows down, of those with its UUID; 0: not known. */
static int64_t slowdown_of(const struct node_report_command *report, int64_t first)
{
	int64_t slowdown_c = 0;

	for (int64_t i = first; i < min64(report->device_count, report->slowdowns_c.count); i++) {
		int64_t its_c = report->slowdowns_c.at[i];
		if (its_c > 0 && (slowdown_c == 0 || its_c < slowdown_c) &&
		    strcmp(report->devices[i].uuid, report->devices[first].uuid) == 0)
			slowdown_c = its_c;
	}
	return slowdown_c;
}

static bool is_first(const struct node_report_command *report, int64_t at)
{
	for (int64_t i = 0; i < at; i++)
		if (strcmp(report->devices[i].uuid, report->devices[at].uuid) == 0)
			return false;
	return true;
}

static struct gpu_record record_of(const struct sched *sched, const struct node *node,
                                   const struct gpu *gpu, const struct device *device,
                                   int64_t aliases, int64_t slowdown_c)
{
	bool was_hot = gpu && gpu->r.hot;

	return (struct gpu_record){
		.id = gpu ? gpu->r.id : 0,
		.node_id = node->r.id,
		.uuid = device->uuid,
		.model = device->model,
		.mig_parent = device->mig_parent,
		.place = device->place,
		.capacity_mib = device->capacity_mib,
		.overhead_mib = device->overhead_mib,
		.foreign_mib = device->foreign_mib,
		.temperature_c = device->temperature_c,
		.slowdown_c = slowdown_c,
		.nvlink_group = device->nvlink_group,
		.aliases = aliases,
		.hot = hot_after(sched, was_hot, device->temperature_c, slowdown_c),
		.healthy = device->healthy,
		.mig_mode = device->mig_mode,
		.present = true,
	};
}

static void report_gpu(struct sched *sched, struct node *node, const struct device *device,
                       int64_t aliases, int64_t slowdown_c)
{
	struct gpu *gpu = cluster_gpu(&sched->cluster, device->uuid);

	if (gpu && gpu->node != node) { /* its old node is not online and has nothing on it */
		sched_forget_gpu(sched, gpu);
		gpu = NULL;
	}
	struct gpu_record record = record_of(sched, node, gpu, device, aliases, slowdown_c);
	if (gpu && record_equal(RECORD_GPU, &record, &gpu->r))
		return;
	if (!gpu) {
		record.id = ++sched->meta.last_gpu_id;
		gpu = cluster_add_gpu(&sched->cluster, node, &record);
		sched_cluster_changed(sched, true);
	} else {
		bool structure =
		    strcmp(record.model, gpu->r.model) != 0 || record.place != gpu->r.place;
		gpu_redescribe(&sched->cluster, gpu, &record);
		ledger_facts(&sched->ledger, gpu, record.capacity_mib, record.overhead_mib,
		             record.foreign_mib);
		sched_cluster_changed(sched, structure);
	}
	sched_dirty_gpu(sched, gpu);
	node_report_over(sched, gpu);
}

static bool gpu_in_report(const struct gpu *gpu, const struct node_report_command *report)
{
	for (int64_t i = 0; i < report->device_count; i++)
		if (strcmp(report->devices[i].uuid, gpu->r.uuid) == 0)
			return true;
	return false;
}

/* What the node does not have any more: gone, or kept until it is empty. */
static void drop_absent_gpus(struct sched *sched, struct node *node,
                             const struct node_report_command *report)
{
	for (int i = node->gpu_count - 1; i >= 0; i--) {
		struct gpu *gpu = node->gpus[i];
		if (gpu_in_report(gpu, report))
			continue;
		sched_cluster_changed(sched, true);
		if (gpu_is_reserved(gpu) || gpu->promised_ms != INT64_MAX) {
			if (gpu->r.present) {
				gpu->r.present = false;
				sched_dirty_gpu(sched, gpu);
			}
			continue;
		}
		sched_forget_gpu(sched, gpu);
	}
}

static bool is_slot(const struct node_report_command *report, int64_t id)
{
	for (int64_t i = 0; i < report->slot_count; i++)
		if (report->slots[i].reservation_id == id)
			return true;
	return false;
}

static bool is_running(const struct node_report_command *report, int64_t id)
{
	for (int64_t i = 0; i < report->running_count; i++)
		if (report->running[i] == id)
			return true;
	return is_slot(report, id);
}

static bool is_coming(const struct node_report_command *report, int64_t id)
{
	for (int64_t i = 0; i < report->coming_count; i++)
		if (report->coming[i] == id)
			return true;
	return false;
}

static void resend(struct sched *sched, const struct reservation *reservation)
{
	if (reservation->phase == PHASE_GRANTED)
		order_start(sched, reservation);
	else if (reservation->phase == PHASE_SUSPENDING)
		order_suspend(sched, reservation);
	else if (reservation->phase == PHASE_RESUMING)
		order_resume(sched, reservation);
	else if (reservation->phase == PHASE_RELEASING)
		order_stop(sched, reservation);
}

/* Compares a slot with the report; the node's facts about it were applied before. */
static void compare_slot(struct sched *sched, struct slot *slot, bool there)
{
	switch ((enum slot_state)slot->r.state) {
	case SLOT_LOADING:
		if (there)
			slot_loading(sched, slot, NULL);
		else if (slot->reservation->phase == PHASE_GRANTED)
			slot_order_load(sched, slot);
		else
			slot_vanished(sched, slot);
		break;
	case SLOT_STOPPING:
		if (there)
			order_stop_unknown(sched, slot->reservation->node, slot->r.id);
		else
			slot_vanished(sched, slot);
		break;
	case SLOT_READY:
	case SLOT_ASLEEP:
		if (!there)
			slot_vanished(sched, slot);
		break;
	case SLOT_SLEEPING:
	case SLOT_WAKING:
		if (!there)
			slot_vanished(sched, slot);
		else if (slot->reservation->phase != PHASE_WAKING)
			slot_order_move(sched, slot);
		break;
	default: /* the node was not told of it yet */
		break;
	}
}

/* Somebody else starts what runs there: see record/orchestrator.h. */
static bool is_orchestrated(const struct node *node)
{
	return strcmp(node->r.boot, NODE_BOOT_KUBERNETES) != 0 &&
	       strstr(node->r.labels, NODE_ORCHESTRATOR "=");
}

/* What the node has and what it should have. */
static void compare_running(struct sched *sched, struct node *node,
                            const struct node_report_command *report)
{
	int count = node->reservation_count;
	int64_t *ids = memory_alloc((size_t)(count + 1) * sizeof(*ids));

	for (int i = 0; i < count; i++)
		ids[i] = node->reservations[i]->id;
	for (int i = 0; i < count; i++) {
		struct reservation *reservation = map_get(&sched->reservations, ids[i]);
		if (!reservation || reservation->phase == PHASE_CLAIM)
			continue;
		bool there = is_running(report, ids[i]);
		if (!there && is_coming(report, ids[i]))
			continue;
		if (reservation->slot)
			compare_slot(sched, reservation->slot, there);
		else if (there && reservation->phase == PHASE_GRANTED)
			task_started(sched, reservation, NULL);
		else if (there ? reservation->phase == PHASE_RELEASING ||
		                     reservation->phase == PHASE_SUSPENDING ||
		                     reservation->phase == PHASE_RESUMING
		               : reservation->phase == PHASE_GRANTED)
			resend(sched, reservation);
		else if (!there && reservation->phase == PHASE_LIVE && is_orchestrated(node))
			order_start(sched, reservation); /* its orchestrator says when it ends */
		else if (!there)
			task_vanished(sched, reservation);
	}
	free(ids);
	for (int64_t i = 0; i < report->running_count; i++) {
		const struct reservation *reservation =
		    map_get(&sched->reservations, report->running[i]);
		if ((!reservation || reservation->node != node) &&
		    !is_slot(report, report->running[i]))
			order_stop_unknown(sched, node, report->running[i]);
	}
}

static bool is_of_other(const struct sched *sched, const struct node *node, int64_t id)
{
	const struct reservation *reservation = map_get(&sched->reservations, id);

	return reservation && reservation->node != node;
}

/* The first reservation of another node that the report names; 0: none. */
static int64_t first_of_other(const struct sched *sched, const struct node *node,
                              const struct node_report_command *report)
{
	for (int64_t i = 0; i < report->running_count; i++)
		if (is_of_other(sched, node, report->running[i]))
			return report->running[i];
	for (int64_t i = 0; i < report->slot_count; i++)
		if (is_of_other(sched, node, report->slots[i].reservation_id))
			return report->slots[i].reservation_id;
	for (int64_t i = 0; i < report->measurement_count; i++)
		if (is_of_other(sched, node, report->measurements[i].reservation_id))
			return report->measurements[i].reservation_id;
	return 0;
}

/* What a report says about another node's work changes nothing, but people should know:
 * the node lies, or the ledger was restored from a backup and gave an id out twice. */
static void note_others(struct sched *sched, const struct node *node,
                        const struct node_report_command *report)
{
	int64_t id = first_of_other(sched, node, report);

	if (id > 0)
		sched_event(sched, (struct event){ .kind = EVENT_NODE_MISREPORTED,
		                                   .node_id = node->r.id,
		                                   .value = id });
}

/* Slots that the node has. True if one was adopted: its memory is foreign no more. */
static bool take_slots(struct sched *sched, struct node *node,
                       const struct node_report_command *report)
{
	size_t known = sched->models.slots.count;

	for (int64_t i = 0; i < report->slot_count; i++)
		if (!slot_reported(sched, node, &report->slots[i], report))
			order_stop_unknown(sched, node, report->slots[i].reservation_id);
	return sched->models.slots.count != known;
}

static struct node *node_report_report_node(struct sched *sched,
                                            const struct node_report_command *report)
{
	struct node *node = cluster_node(&sched->cluster, report->name);
	struct node_record record = {
		.id = node ? node->r.id : sched->meta.last_node_id + 1,
		.name = report->name,
		.boot = report->boot,
		.zone = report->zone,
		.rack = report->rack,
		.labels = report->labels,
		.cpu_milli = report->cpu_milli,
		.host_bytes = report->host_bytes,
		.state = NODE_ONLINE,
		.draining = node ? node->r.draining : false,
		.reported =
		    !node || node->r.reported || report->snapshot || node->reservation_count == 0,
		.resources = node ? node->r.resources : "",
		.taken = node ? node->r.taken : "",
		.taken_cpu_milli = node ? node->r.taken_cpu_milli : 0,
		.taken_host_bytes = node ? node->r.taken_host_bytes : 0,
		.drain_reason = node ? node->r.drain_reason : "",
	};

	if (node && record_equal(RECORD_NODE, &record, &node->r))
		return node;
	if (node) {
		node_rename(node, &record);
	} else {
		node = cluster_add_node(&sched->cluster, &record);
		sched->meta.last_node_id++;
	}
	sched_cluster_changed(sched, true);
	backoff_clear(sched);
	sched_dirty_node(sched, node);
	sched_event(sched, (struct event){ .kind = EVENT_NODE_CHANGED,
	                                   .node_id = node->r.id,
	                                   .value = NODE_ONLINE });
	return node;
}

static bool check_moved_gpus(const struct sched *sched, const struct node_report_command *report,
                             struct error *error)
{
	for (int64_t i = 0; i < report->device_count; i++) {
		const struct gpu *gpu = cluster_gpu(&sched->cluster, report->devices[i].uuid);
		if (gpu && strcmp(gpu->node->r.name, report->name) != 0 &&
		    (gpu_is_reserved(gpu) || gpu->promised_ms != INT64_MAX))
			return error_set(
			    error, ERROR_CONFLICT,
			    "GPU %s is known on node %s, which is silent and has work on it: "
			    "declare that node dead first",
			    gpu->r.uuid, gpu->node->r.name);
	}
	return true;
}

/* What its orchestrator says of a node may come late, after its agent has. */
static bool check_reporter(const struct sched *sched, const struct node_report_command *report,
                           struct error *error)
{
	const struct node *node = cluster_node(&sched->cluster, report->name);

	if (node && strcmp(report->boot, NODE_BOOT_KUBERNETES) == 0 &&
	    strcmp(node->r.boot, NODE_BOOT_KUBERNETES) != 0)
		return error_set(error, ERROR_CONFLICT, "node %.90s has an agent that reports it",
		                 report->name);
	return true;
}

static void report_gpus(struct sched *sched, struct node *node,
                        const struct node_report_command *report)
{
	for (int64_t i = 0; i < report->device_count; i++) {
		int64_t aliases;
		if (!is_first(report, i))
			continue;
		struct device device = merged(report, i, &aliases);
		device.foreign_mib += stray_mib(sched, node, device.uuid, report->measurements,
		                                report->measurement_count);
		report_gpu(sched, node, &device, aliases, slowdown_of(report, i));
	}
}

bool node_report_apply(struct sched *sched, const struct node_report_command *report,
                       struct error *error)
{
	INVARIANT(!sched->plan.open && sched->effects != NULL);
	if (!cluster_check_report(&sched->cluster, report, error) ||
	    !check_reporter(sched, report, error) || !check_moved_gpus(sched, report, error))
		return false;
	struct node *node = node_report_report_node(sched, report);
	note_others(sched, node, report);
	report_gpus(sched, node, report);
	if (take_slots(sched, node, report))
		report_gpus(sched, node, report);
	node_report_measure(sched, node, report->measurements, report->measurement_count);
	if (report->snapshot)
		compare_running(sched, node, report);
	drop_absent_gpus(sched, node, report);
	slot_node_changed(sched, node);
	return true;
}

bool node_report_gpu(struct sched *sched, const struct gpu_report_command *report,
                     struct error *error)
{
	struct gpu *gpu = report->uuid ? cluster_gpu(&sched->cluster, report->uuid) : NULL;

	INVARIANT(!sched->plan.open && sched->effects != NULL);
	if (!gpu)
		return error_set(error, ERROR_NOT_FOUND, "GPU %s is not known",
		                 report->uuid ? report->uuid : "(none)");
	if (report->node && *report->node && strcmp(gpu->node->r.name, report->node) != 0)
		return error_set(error, ERROR_FORBIDDEN,
		                 "node %.90s reports on GPU %.90s, which is on node %.90s",
		                 report->node, gpu->r.uuid, gpu->node->r.name);
	if (!cluster_check_gpu_report(gpu, report, error))
		return false;
	struct gpu_record record = gpu->r;
	record.foreign_mib =
	    report->foreign_mib + stray_mib(sched, gpu->node, gpu->r.uuid, report->measurements,
	                                    report->measurement_count);
	record.unexplained_mib = min64(report->unexplained_mib, report->foreign_mib);
	record.temperature_c = report->temperature_c;
	record.healthy = report->healthy;
	record.hot = hot_after(sched, gpu->r.hot, report->temperature_c, gpu->r.slowdown_c);
	node_report_measure(sched, gpu->node, report->measurements, report->measurement_count);
	if (record_equal(RECORD_GPU, &record, &gpu->r))
		return true;
	gpu->r.unexplained_mib = record.unexplained_mib;
	gpu->r.temperature_c = record.temperature_c;
	gpu->r.healthy = record.healthy;
	gpu->r.hot = record.hot;
	ledger_facts(&sched->ledger, gpu, gpu->r.capacity_mib, gpu->r.overhead_mib,
	             record.foreign_mib);
	sched_dirty_gpu(sched, gpu);
	node_report_over(sched, gpu);
	return true;
}

static struct node *node_report_find(const struct sched *sched, const char *name,
                                     struct error *error)
{
	struct node *node = name ? cluster_node(&sched->cluster, name) : NULL;

	if (!node)
		error_set(error, ERROR_NOT_FOUND, "node %s is not known", name ? name : "(none)");
	return node;
}

static void node_changed(struct sched *sched, struct node *node)
{
	sched_cluster_changed(sched, false);
	if (sched->index.built)
		index_touch(&sched->index, node, &sched->config);
	sched_dirty_node(sched, node);
	sched_event(sched, (struct event){ .kind = EVENT_NODE_CHANGED,
	                                   .node_id = node->r.id,
	                                   .value = node->r.state });
	slot_node_changed(sched, node);
}

/* Gives up what is on the node: all of it, or what said that it may be. */
static void node_report_give_up(struct sched *sched, struct node *node, bool all)
{
	int count = node->reservation_count;
	int64_t *ids = memory_alloc((size_t)(count + 1) * sizeof(*ids));

	for (int i = 0; i < count; i++)
		ids[i] = node->reservations[i]->id;
	for (int i = 0; i < count; i++) {
		struct reservation *reservation = map_get(&sched->reservations, ids[i]);
		if (reservation && reservation->slot) /* it can be loaded elsewhere meanwhile */
			slot_vanished(sched, reservation->slot);
		else if (reservation && (all || reservation->phase == PHASE_CLAIM ||
		                         reservation->job->r.lease_loss == LEASE_STOP))
			task_vanished(sched, reservation);
	}
	free(ids);
}

bool node_report_state(struct sched *sched, const char *name, enum node_state state,
                       struct error *error)
{
	struct node *node = node_report_find(sched, name, error);

	INVARIANT(!sched->plan.open && sched->effects != NULL);
	if (!node)
		return false;
	if (state != NODE_ONLINE && state != NODE_UNKNOWN && state != NODE_LOST)
		return error_set(error, ERROR_INVALID, "unknown state %d of node %s", (int)state,
		                 name);
	if ((enum node_state)node->r.state == state)
		return true;
	node->r.state = (int32_t)state;
	node_changed(sched, node);
	if (state == NODE_LOST)
		node_report_give_up(sched, node, false);
	return true;
}

bool node_report_drain(struct sched *sched, const char *name, bool draining, const char *reason,
                       struct error *error)
{
	struct node *node = node_report_find(sched, name, error);

	INVARIANT(!sched->plan.open && sched->effects != NULL);
	if (!node)
		return false;
	bool changes = node->r.draining != draining;
	if (changes || reason || !draining) {
		struct node_record record = node->r;
		record.draining = draining;
		record.drain_reason = draining && reason ? reason : "";
		changes = changes || strcmp(record.drain_reason, node->r.drain_reason) != 0;
		node_rename(node, &record);
	}
	if (changes)
		node_changed(sched, node);
	return true;
}

bool node_report_dead(struct sched *sched, const char *name, struct error *error)
{
	struct node *node = node_report_find(sched, name, error);

	INVARIANT(!sched->plan.open && sched->effects != NULL);
	if (!node)
		return false;
	node->r.state = NODE_LOST;
	node->r.reported = false;
	node_changed(sched, node);
	node_report_give_up(sched, node, true);
	return true;
}

bool node_report_remove(struct sched *sched, const char *name, struct error *error)
{
	struct node *node = node_report_find(sched, name, error);

	INVARIANT(!sched->plan.open && sched->effects != NULL);
	if (!node)
		return false;
	if (node->reservation_count > 0 || node->promised > 0)
		return error_set(error, ERROR_CONFLICT,
		                 "node %s has work on it: drain it and wait, or declare it dead",
		                 name);
	while (node->gpu_count > 0)
		sched_forget_gpu(sched, node->gpus[node->gpu_count - 1]);
	sched_forget_node(sched, node);
	return true;
}
