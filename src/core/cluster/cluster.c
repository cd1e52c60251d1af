/* cluster.c - nodes and GPUs as they were last reported */
#include "core/cluster/cluster.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "core/cluster/node_facts.h"
#include "core/cluster/reservation.h"
#include "core/record/heat.h"

/* What text_map keeps for the name of a model. */
struct model {
	int number;
};

struct node *cluster_node(const struct cluster *cluster, const char *name)
{
	return text_map_get(&cluster->node_by_name, name);
}

struct gpu *cluster_gpu(const struct cluster *cluster, const char *uuid)
{
	return text_map_get(&cluster->gpu_by_uuid, uuid);
}

int cluster_gpu_type(const struct cluster *cluster, const char *name)
{
	const struct model *model = text_map_get(&cluster->gpu_type_by_name, name);
	return model ? model->number : -1;
}

/* One line of a text of lines. */
struct line {
	const char *at;
	size_t size;
};

/* Takes the next line off `*text`, which is NULL after the last. An empty text
 * has no lines. */
static bool next_line(const char **text, struct line *line)
{
	if (!*text || **text == '\0')
		return false;
	const char *end = strchr(*text, '\n');
	line->at = *text;
	line->size = end ? (size_t)(end - *text) : strlen(*text);
	*text = end ? end + 1 : NULL;
	return true;
}

static int line_compare(const struct line *a, const struct line *b)
{
	int order = memcmp(a->at, b->at, a->size < b->size ? a->size : b->size);
	return order ? order : (a->size > b->size) - (a->size < b->size);
}

bool node_has_labels(const struct node *node, const char *required)
{
	const char *labels = node->r.labels;
	struct line wanted, label;
	bool have = next_line(&labels, &label);

	while (next_line(&required, &wanted)) {
		while (have && line_compare(&label, &wanted) < 0)
			have = next_line(&labels, &label);
		if (!have || line_compare(&label, &wanted) != 0)
			return false;
	}
	return true;
}

static bool check_labels(const struct node_report_command *report, struct error *error)
{
	const char *labels = report->labels;
	size_t size = strlen(labels);
	struct line line, last = { "", 0 };

	if (size > 0 && labels[size - 1] == '\n')
		return error_set(error, ERROR_INVALID, "node %s: its labels end in an empty line",
		                 report->name);
	while (next_line(&labels, &line)) {
		if (!memchr(line.at, '=', line.size))
			return error_set(error, ERROR_INVALID,
			                 "node %s: label '%.*s' is not key=value", report->name,
			                 (int)min64((int64_t)line.size, 80), line.at);
		if (line_compare(&last, &line) >= 0)
			return error_set(error, ERROR_INVALID,
			                 "node %s: label '%.*s' is there twice or not in order",
			                 report->name, (int)min64((int64_t)line.size, 80), line.at);
		last = line;
	}
	return true;
}

/* Whether an amount is one that a machine can have. */
static bool check_amount(const struct node_report_command *report, const char *whose,
                         const char *what, int64_t amount, int64_t most, struct error *error)
{
	if (amount >= 0 && amount <= most)
		return true;
	return error_set(error, ERROR_INVALID,
	                 "node %s: %s of %s is %" PRId64 ", which is not between 0 and %" PRId64,
	                 report->name, what, whose, amount, most);
}

static bool check_slowdowns(const struct node_report_command *report, struct error *error)
{
	if (report->slowdowns_c.count > report->device_count)
		return error_set(error, ERROR_INVALID,
		                 "node %s: more slowdown temperatures than devices", report->name);
	for (int64_t i = 0; i < report->slowdowns_c.count; i++)
		if (!check_amount(report, "a GPU", "slowdown temperature (degrees)",
		                  report->slowdowns_c.at[i], HEAT_MOST_C, error))
			return false;
	return true;
}

static bool cluster_check_node(const struct node_report_command *report, struct error *error)
{
	if (!report->name || !*report->name)
		return error_set(error, ERROR_INVALID, "a node reports without a name");
	if (!report->boot || !report->zone || !report->rack || !report->labels)
		return error_set(error, ERROR_INVALID,
		                 "node %s: boot, zone, rack or labels are missing", report->name);
	if (report->device_count < 0 || (report->device_count > 0 && !report->devices))
		return error_set(error, ERROR_INVALID,
		                 "node %s: %" PRId64 " devices without a list", report->name,
		                 report->device_count);
	if (report->running_count < 0 || (report->running_count > 0 && !report->running))
		return error_set(error, ERROR_INVALID,
		                 "node %s: %" PRId64 " running without a list", report->name,
		                 report->running_count);
	if (report->coming_count < 0 || (report->coming_count > 0 && !report->coming))
		return error_set(error, ERROR_INVALID,
		                 "node %s: %" PRId64 " orders on their way without a list",
		                 report->name, report->coming_count);
	return check_labels(report, error) && check_slowdowns(report, error) &&
	       check_amount(report, "the host", "CPU (thousandths)", report->cpu_milli,
	                    CPU_MILLI_MAX, error) &&
	       check_amount(report, "the host", "memory (bytes)", report->host_bytes,
	                    HOST_BYTES_MAX, error);
}

static bool check_device(const struct node_report_command *report, const struct device *device,
                         struct error *error)
{
	if (!device->uuid || !*device->uuid)
		return error_set(error, ERROR_INVALID, "node %s: a device has no UUID",
		                 report->name);
	if (!device->model || !device->mig_parent)
		return error_set(error, ERROR_INVALID,
		                 "node %s: model or MIG parent of %s is missing", report->name,
		                 device->uuid);
	if (!check_amount(report, device->uuid, "place", device->place, INT32_MAX, error) ||
	    !check_amount(report, device->uuid, "capacity (MiB)", device->capacity_mib, MIB_MAX,
	                  error) ||
	    !check_amount(report, device->uuid, "overhead (MiB)", device->overhead_mib, MIB_MAX,
	                  error) ||
	    !check_amount(report, device->uuid, "foreign memory (MiB)", device->foreign_mib,
	                  MIB_MAX, error))
		return false;
	if (device->overhead_mib > device->capacity_mib)
		return error_set(
		    error, ERROR_INVALID,
		    "node %s: overhead of %s is %" PRId64 " MiB, its capacity only %" PRId64 " MiB",
		    report->name, device->uuid, device->overhead_mib, device->capacity_mib);
	return true;
}

static bool contradiction(const struct node_report_command *report, const struct device *device,
                          const char *what, int64_t one, int64_t other, struct error *error)
{
	return error_set(error, ERROR_INVALID,
	                 "node %s: %s is there twice, with %" PRId64 " and %" PRId64 " MiB of %s",
	                 report->name, device->uuid, one, other, what);
}

/* Two devices with one UUID are one GPU, so what is measured on it is the same. */
static bool check_replica(const struct node_report_command *report, const struct device *first,
                          const struct device *device, struct error *error)
{
	if (device->capacity_mib != first->capacity_mib)
		return contradiction(report, device, "capacity", first->capacity_mib,
		                     device->capacity_mib, error);
	if (device->overhead_mib != first->overhead_mib)
		return contradiction(report, device, "overhead", first->overhead_mib,
		                     device->overhead_mib, error);
	if (device->foreign_mib != first->foreign_mib)
		return contradiction(report, device, "foreign memory", first->foreign_mib,
		                     device->foreign_mib, error);
	if (strcmp(device->model, first->model) != 0)
		return error_set(error, ERROR_INVALID,
		                 "node %s: %s is there twice, as '%s' and as '%s'", report->name,
		                 device->uuid, first->model, device->model);
	if (strcmp(device->mig_parent, first->mig_parent) != 0)
		return error_set(
		    error, ERROR_INVALID,
		    "node %s: %s is there twice, with '%s' and with '%s' as MIG parent",
		    report->name, device->uuid, first->mig_parent, device->mig_parent);
	if (device->mig_mode != first->mig_mode)
		return error_set(error, ERROR_INVALID,
		                 "node %s: %s is there twice, in MIG mode and not in MIG mode",
		                 report->name, device->uuid);
	return true;
}

bool gpu_is_reserved(const struct gpu *gpu)
{
	const struct node *node = gpu->node;
	bool reserved = gpu->books.owners > 0 || gpu->books.claims > 0;

	for (int i = 0; !reserved && i < node->reservation_count; i++)
		for (int p = 0; p < node->reservations[i]->part_count; p++)
			reserved = reserved || node->reservations[i]->parts[p].gpu == gpu;
	return reserved;
}

/* A GPU that its node has stopped reporting and that nothing is on may turn up
 * elsewhere. */
static bool check_elsewhere(const struct cluster *cluster, const struct node_report_command *report,
                            const struct device *device, struct error *error)
{
	const struct gpu *gpu = cluster_gpu(cluster, device->uuid);

	if (!gpu || strcmp(gpu->node->r.name, report->name) == 0 ||
	    gpu->node->r.state != NODE_ONLINE || (!gpu->r.present && !gpu_is_reserved(gpu)))
		return true;
	return error_set(error, ERROR_CONFLICT,
	                 "node %s reports %s, which is on node %s, and that is online",
	                 report->name, device->uuid, gpu->node->r.name);
}

static const struct device *find_device(const struct device *const *devices, int count,
                                        const char *uuid)
{
	for (int i = 0; i < count; i++) {
		if (strcmp(devices[i]->uuid, uuid) == 0)
			return devices[i];
	}
	return NULL;
}

/* GPUs of the node that the report has not, and that stay while they are in use. */
static int count_missing(const struct cluster *cluster, const struct node_report_command *report,
                         const struct device *const *devices, int count)
{
	const struct node *node = cluster_node(cluster, report->name);
	int missing = 0;

	for (int i = 0; node && i < node->gpu_count; i++) {
		const struct gpu *gpu = node->gpus[i];
		missing += gpu_is_reserved(gpu) && !find_device(devices, count, gpu->r.uuid);
	}
	return missing;
}

static bool check_devices(const struct cluster *cluster, const struct node_report_command *report,
                          struct error *error)
{
	const struct device *known[GPUS_PER_NODE_MAX];
	int count = 0;

	for (int64_t i = 0; i < report->device_count; i++) {
		const struct device *device = &report->devices[i];
		if (!check_device(report, device, error))
			return false;
		const struct device *first = find_device(known, count, device->uuid);
		if (first && !check_replica(report, first, device, error))
			return false;
		if (first)
			continue;
		if (count == GPUS_PER_NODE_MAX)
			return error_set(error, ERROR_INVALID,
			                 "node %s reports more than %d GPUs: %s is one too many",
			                 report->name, GPUS_PER_NODE_MAX, device->uuid);
		if (!check_elsewhere(cluster, report, device, error))
			return false;
		known[count++] = device;
	}
	int missing = count_missing(cluster, report, known, count);
	if (count + missing > GPUS_PER_NODE_MAX)
		return error_set(error, ERROR_INVALID,
		                 "node %s reports %d GPUs, with %d more still in use: at most %d",
		                 report->name, count, missing, GPUS_PER_NODE_MAX);
	return true;
}

static bool check_measurements(const struct node_report_command *report, struct error *error)
{
	if (report->measurement_count < 0 ||
	    (report->measurement_count > 0 && !report->measurements))
		return error_set(error, ERROR_INVALID,
		                 "node %s: %" PRId64 " measurements without a list", report->name,
		                 report->measurement_count);
	for (int64_t i = 0; i < report->measurement_count; i++) {
		const struct measurement *measurement = &report->measurements[i];
		if (!measurement->uuid || !*measurement->uuid)
			return error_set(error, ERROR_INVALID,
			                 "node %s: a measurement of reservation %" PRId64
			                 " has no UUID",
			                 report->name, measurement->reservation_id);
		if (!check_amount(report, measurement->uuid, "memory used (MiB)",
		                  measurement->memory_mib, MIB_MAX, error))
			return false;
	}
	return true;
}

bool cluster_check_report(const struct cluster *cluster, const struct node_report_command *report,
                          struct error *error)
{
	return cluster_check_node(report, error) && check_devices(cluster, report, error) &&
	       check_measurements(report, error);
}

bool cluster_check_gpu_report(const struct gpu *gpu, const struct gpu_report_command *report,
                              struct error *error)
{
	const struct node_report_command node = {
		.name = gpu->node->r.name,
		.measurements = report->measurements,
		.measurement_count = report->measurement_count,
	};
	return check_amount(&node, gpu->r.uuid, "foreign memory (MiB)", report->foreign_mib,
	                    MIB_MAX, error) &&
	       check_amount(&node, gpu->r.uuid, "unexplained memory (MiB)", report->unexplained_mib,
	                    MIB_MAX, error) &&
	       check_measurements(&node, error);
}

static const char *text_copy(const char *text)
{
	if (!text)
		text = "";
	size_t size = strlen(text) + 1;
	return memcpy(memory_alloc(size), text, size);
}

/* Records own their texts, but structs of constant texts do not say so. */
static void text_free(const char *text)
{
	free((char *)text);
}

static struct node_record node_record_copy(const struct node_record *record)
{
	struct node_record copy = *record;
	copy.name = text_copy(record->name);
	copy.boot = text_copy(record->boot);
	copy.zone = text_copy(record->zone);
	copy.rack = text_copy(record->rack);
	copy.labels = text_copy(record->labels);
	copy.resources = text_copy(record->resources);
	copy.taken = text_copy(record->taken);
	copy.drain_reason = text_copy(record->drain_reason);
	return copy;
}

static void node_record_free(const struct node_record *record)
{
	text_free(record->name);
	text_free(record->boot);
	text_free(record->zone);
	text_free(record->rack);
	text_free(record->labels);
	text_free(record->resources);
	text_free(record->taken);
	text_free(record->drain_reason);
}

static struct gpu_record gpu_record_copy(const struct gpu_record *record)
{
	struct gpu_record copy = *record;
	copy.uuid = text_copy(record->uuid);
	copy.model = text_copy(record->model);
	copy.mig_parent = text_copy(record->mig_parent);
	return copy;
}

static void gpu_record_free(const struct gpu_record *record)
{
	text_free(record->uuid);
	text_free(record->model);
	text_free(record->mig_parent);
}

/* The number of a model, which gets the next one when it is new. */
static int number_model(struct cluster *cluster, const char *name)
{
	int number = cluster_gpu_type(cluster, name);
	if (number >= 0)
		return number;
	struct model *model = NEW(struct model);
	model->number = cluster->gpu_type_count++;
	text_map_put(&cluster->gpu_type_by_name, name, model);
	return model->number;
}

struct node *cluster_add_node(struct cluster *cluster, const struct node_record *record)
{
	INVARIANT(!cluster_node(cluster, record->name));
	INVARIANT(!map_get(&cluster->node_by_id, record->id));
	struct node *node = NEW(struct node);
	node->r = node_record_copy(record);
	node->mps = node_has_labels(node, NODE_COMPUTE_SHARES "=mps");
	node_read_counts(node);
	map_put(&cluster->node_by_id, record->id, node);
	text_map_put(&cluster->node_by_name, node->r.name, node);

	/* Ids grow, so the place is at the end but for records loaded in another order. */
	array_reserve(cluster->nodes, cluster->node_capacity, cluster->node_count + 1);
	size_t at = cluster->node_count++;
	for (; at > 0 && cluster->nodes[at - 1]->r.id > record->id; at--)
		cluster->nodes[at] = cluster->nodes[at - 1];
	cluster->nodes[at] = node;
	cluster->ordered = false;
	return node;
}

static bool gpu_goes_before(const struct gpu *a, const struct gpu *b)
{
	if (a->r.place != b->r.place)
		return a->r.place < b->r.place;
	return strcmp(a->r.uuid, b->r.uuid) < 0;
}

static void node_list_gpu(struct node *node, struct gpu *gpu)
{
	if (node->gpu_count == node->gpu_capacity) {
		node->gpu_capacity = node->gpu_capacity ? 2 * node->gpu_capacity : 8;
		node->gpus =
		    memory_resize(node->gpus, (size_t)node->gpu_capacity * sizeof(*node->gpus));
	}
	int at = node->gpu_count++;
	for (; at > 0 && gpu_goes_before(gpu, node->gpus[at - 1]); at--)
		node->gpus[at] = node->gpus[at - 1];
	node->gpus[at] = gpu;
}

static void node_unlist_gpu(struct node *node, const struct gpu *gpu)
{
	int at = 0;
	while (at < node->gpu_count && node->gpus[at] != gpu)
		at++;
	INVARIANT(at < node->gpu_count);
	node->gpu_count--;
	for (; at < node->gpu_count; at++)
		node->gpus[at] = node->gpus[at + 1];
}

struct gpu *cluster_add_gpu(struct cluster *cluster, struct node *node,
                            const struct gpu_record *record)
{
	INVARIANT(record->node_id == node->r.id && node->gpu_count < GPUS_PER_NODE_MAX);
	INVARIANT(!cluster_gpu(cluster, record->uuid));
	INVARIANT(!map_get(&cluster->gpu_by_id, record->id));
	struct gpu *gpu = NEW(struct gpu);
	gpu->r = gpu_record_copy(record);
	gpu->node = node;
	gpu->gpu_type = number_model(cluster, gpu->r.model);
	gpu->promised_ms = INT64_MAX;
	map_put(&cluster->gpu_by_id, record->id, gpu);
	text_map_put(&cluster->gpu_by_uuid, gpu->r.uuid, gpu);
	node_list_gpu(node, gpu);
	cluster->ordered = false;
	return gpu;
}

void node_rename(struct node *node, const struct node_record *record)
{
	struct node_record old = node->r;

	INVARIANT(record->id == old.id && strcmp(record->name, old.name) == 0);
	node->r = node_record_copy(record);
	if (strcmp(node->r.labels, old.labels) != 0 || strcmp(node->r.rack, old.rack) != 0 ||
	    strcmp(node->r.zone, old.zone) != 0)
		node->offer.redescribed = true;
	node->mps = node_has_labels(node, NODE_COMPUTE_SHARES "=mps");
	if (strcmp(node->r.resources, old.resources) != 0 ||
	    strcmp(node->r.taken, old.taken) != 0 || strcmp(node->r.labels, old.labels) != 0)
		node_read_counts(node);
	node_record_free(&old);
}

void gpu_redescribe(struct cluster *cluster, struct gpu *gpu, const struct gpu_record *record)
{
	struct gpu_record old = gpu->r;
	struct node *node = gpu->node;

	INVARIANT(record->id == old.id && record->node_id == old.node_id);
	INVARIANT(strcmp(record->uuid, old.uuid) == 0);
	gpu->r = gpu_record_copy(record);
	gpu->r.capacity_mib = old.capacity_mib;
	gpu->r.overhead_mib = old.overhead_mib;
	gpu->r.foreign_mib = old.foreign_mib;
	if (strcmp(gpu->r.model, old.model) != 0) {
		gpu->gpu_type = number_model(cluster, gpu->r.model);
		node->offer.redescribed = true;
	}
	if (gpu->r.nvlink_group != old.nvlink_group)
		node->offer.redescribed = true;
	if (gpu->r.place != old.place) {
		node_unlist_gpu(node, gpu);
		node_list_gpu(node, gpu);
	}
	gpu_record_free(&old);
}

static void gpu_free(struct gpu *gpu)
{
	gpu_record_free(&gpu->r);
	free(gpu);
}

/* Reservations are not the node's: they are gone already or freed by their owner. */
static void node_free(struct node *node)
{
	node_record_free(&node->r);
	free(node->rivals);
	free(node->gpus);
	free(node->reservations);
	free(node->guests);
	for (int i = 0; i < node->count_count; i++)
		free(node->counts[i].name);
	free(node->counts);
	free(node);
}

void cluster_remove_node(struct cluster *cluster, struct node *node)
{
	INVARIANT(node->gpu_count == 0 && node->reservation_count == 0 && node->guest_count == 0);
	INVARIANT(node->cpu.used == 0 && node->cpu.claimed == 0);
	INVARIANT(node->host.used == 0 && node->host.claimed == 0);
	size_t at = 0, end = cluster->node_count;
	while (at < end) {
		size_t middle = at + (end - at) / 2;
		if (cluster->nodes[middle]->r.id < node->r.id)
			at = middle + 1;
		else
			end = middle;
	}
	INVARIANT(at < cluster->node_count && cluster->nodes[at] == node);
	cluster->node_count--;
	memmove(&cluster->nodes[at], &cluster->nodes[at + 1],
	        (cluster->node_count - at) * sizeof(*cluster->nodes));
	map_remove(&cluster->node_by_id, node->r.id);
	text_map_remove(&cluster->node_by_name, node->r.name);
	node_free(node);
	cluster->ordered = false;
}

void cluster_remove_gpu(struct cluster *cluster, struct gpu *gpu)
{
	INVARIANT(!gpu_is_reserved(gpu));
	INVARIANT(gpu->books.used_mib == 0 && gpu->books.owners == 0);
	INVARIANT(gpu->books.claimed_mib == 0 && gpu->books.claims == 0);
	node_unlist_gpu(gpu->node, gpu);
	map_remove(&cluster->gpu_by_id, gpu->r.id);
	text_map_remove(&cluster->gpu_by_uuid, gpu->r.uuid);
	gpu_free(gpu);
	cluster->ordered = false;
}

static int compare_names(const void *a, const void *b)
{
	const struct node *const *one = a, *const *other = b;
	return strcmp((*one)->r.name, (*other)->r.name);
}

static int compare_racks(const void *a, const void *b)
{
	const struct node *x = *(struct node *const *)a, *y = *(struct node *const *)b;
	int order = strcmp(x->r.rack, y->r.rack);

	return order != 0 ? order : x->rank - y->rank;
}

static void number_racks(struct cluster *cluster)
{
	size_t count = cluster->node_count;
	struct node **nodes = memory_resize(cluster->by_rack, count * sizeof(struct node *));

	memcpy(nodes, cluster->nodes, count * sizeof(struct node *));
	qsort(nodes, count, sizeof(struct node *), compare_racks);
	cluster->by_rack = nodes;
	cluster->rack_first =
	    memory_resize(cluster->rack_first, (count + 2) * sizeof(*cluster->rack_first));
	cluster->rack_first[0] = 0;
	cluster->rack_count = 0;
	for (size_t i = 0; i < count; i++) {
		const char *before = i > 0 ? nodes[i - 1]->r.rack : "";
		if (strcmp(nodes[i]->r.rack, before) != 0)
			cluster->rack_first[++cluster->rack_count] = (int)i;
		nodes[i]->rack = cluster->rack_count;
	}
	cluster->rack_first[cluster->rack_count + 1] = (int)count;
}

void cluster_order(struct cluster *cluster)
{
	size_t size = cluster->node_count * sizeof(struct node *);

	cluster->by_rank = memory_resize(cluster->by_rank, size);
	cluster->ordered = true;
	if (size == 0)
		return;
	memcpy(cluster->by_rank, cluster->nodes, size);
	qsort(cluster->by_rank, cluster->node_count, sizeof(struct node *), compare_names);
	for (size_t i = 0; i < cluster->node_count; i++)
		cluster->by_rank[i]->rank = (int)i;
	number_racks(cluster);
}

static void count_gpu(struct cluster *cluster, const struct gpu *gpu)
{
	int64_t usable = gpu_usable_mib(gpu);

	if (!gpu->r.present || gpu->r.mig_mode || gpu->r.capacity_mib <= 0)
		return;
	cluster->total.of[AMOUNT_GPU] += WHOLE_GPU;
	cluster->gpu_total++;
	if (usable > 0 && (cluster->smallest_mib == 0 || usable < cluster->smallest_mib))
		cluster->smallest_mib = usable;
}

void cluster_count(struct cluster *cluster)
{
	cluster->counted = true;
	cluster->total = (struct amounts){ { 0 } };
	cluster->gpu_total = 0;
	cluster->smallest_mib = 0;
	for (size_t i = 0; i < cluster->node_count; i++) {
		const struct node *node = cluster->nodes[i];
		if (node->r.state != NODE_ONLINE)
			continue;
		cluster->total.of[AMOUNT_CPU] += node_cpu_milli(node);
		cluster->total.of[AMOUNT_HOST] += node_host_bytes(node);
		for (int j = 0; j < node->gpu_count; j++)
			count_gpu(cluster, node->gpus[j]);
	}
}

void cluster_free(struct cluster *cluster)
{
	windows_free(&cluster->windows);
	for (size_t i = 0; i < cluster->node_count; i++) {
		struct node *node = cluster->nodes[i];
		while (node->guest_count > 0)
			cluster_remove_guest(cluster, node->guests[node->guest_count - 1]);
		for (int j = 0; j < node->gpu_count; j++)
			gpu_free(node->gpus[j]);
		node_free(node);
	}
	for (size_t i = 0; i < cluster->gpu_type_by_name.capacity; i++)
		free(cluster->gpu_type_by_name.entries[i].value);
	for (size_t i = 0; i < cluster->class_by_name.capacity; i++)
		if (cluster->class_by_name.entries[i].value)
			node_class_free(cluster->class_by_name.entries[i].value);
	text_map_free(&cluster->class_by_name);
	text_map_free(&cluster->guest_by_name);
	free(cluster->nodes);
	free(cluster->by_rank);
	free(cluster->by_rack);
	free(cluster->rack_first);
	map_free(&cluster->node_by_id);
	map_free(&cluster->gpu_by_id);
	text_map_free(&cluster->node_by_name);
	text_map_free(&cluster->gpu_by_uuid);
	text_map_free(&cluster->gpu_type_by_name);
	*cluster = (struct cluster){ 0 };
}
