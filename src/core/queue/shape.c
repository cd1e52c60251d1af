/* shape.c - jobs that ask for the same thing in the same way */
#include "core/queue/shape.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "core/queue/demand.h"
#include "core/queue/group.h"
#include "core/queue/job.h"
#include "core/record/orchestrator.h"

#define LENGTH_MAX 40
#define SECOND_MS 1000

/* Filters, shapes and classes are interned: each is in a map under its hash or,
 * where that is taken by another, under the next number that is not. */
typedef bool same_kind(const void *item, const void *wanted);

static int64_t next_key(int64_t key)
{
	return key < INT64_MAX ? key + 1 : 0;
}

bool shape_never_preempts(const struct shape *shape)
{
	return shape->filter->demand && shape->filter->demand->never_preempts;
}

/* The item that is the same as `wanted`, or NULL; `*key` is where it is, or
 * where it would go. */
static void *shape_find(const struct map *map, uint64_t hash, same_kind *same, const void *wanted,
                        int64_t *key)
{
	void *item;
	*key = (int64_t)(hash >> 1);
	while ((item = map_get(map, *key)) && !same(item, wanted))
		*key = next_key(*key);
	return item;
}

static bool same_filter(const void *item, const void *wanted)
{
	const struct filter *a = item, *b = wanted;
	return strcmp(a->gpu_types, b->gpu_types) == 0 && strcmp(a->labels, b->labels) == 0 &&
	       strcmp(a->resources, b->resources) == 0 && strcmp(a->rules, b->rules) == 0 &&
	       strcmp(a->marks, b->marks) == 0 && strcmp(a->node_class, b->node_class) == 0 &&
	       strcmp(a->window, b->window) == 0;
}

/* A filter like the wanted one, with copies of its texts behind it. */
static struct filter *make_filter(int64_t number, const struct filter *wanted)
{
	const char *const texts[] = { wanted->gpu_types, wanted->labels, wanted->resources,
		                      wanted->rules,     wanted->marks,  wanted->node_class,
		                      wanted->window };
	const char *copies[7];
	size_t size = 0;
	for (int i = 0; i < 7; i++)
		size += strlen(texts[i]) + 1;
	struct filter *filter = memory_zero(1, sizeof(*filter) + size);
	char *at = (char *)(filter + 1);
	for (int i = 0; i < 7; i++) {
		size_t bytes = strlen(texts[i]) + 1;
		copies[i] = memcpy(at, texts[i], bytes);
		at += bytes;
	}
	filter->number = number;
	filter->gpu_types = copies[0];
	filter->labels = copies[1];
	filter->resources = copies[2];
	filter->rules = copies[3];
	filter->marks = copies[4];
	filter->node_class = copies[5];
	filter->window = copies[6];
	filter->demand =
	    demand_new(filter->resources, filter->rules, filter->marks, filter->node_class);
	filter->refreshed = UINT64_MAX; /* no version of a cluster */
	return filter;
}

/* Most jobs may go anywhere. */
static bool filter_is_empty(const struct filter *filter)
{
	return !*filter->gpu_types && !*filter->labels && !*filter->resources && !*filter->rules &&
	       !*filter->marks && !*filter->node_class && !*filter->window;
}

static uint64_t hash_filter(const struct filter *filter)
{
	uint64_t hash = hash_combine(hash_text(filter->gpu_types), hash_text(filter->labels));
	if (*filter->window)
		hash = hash_combine(hash, hash_text(filter->window));
	if (!*filter->resources && !*filter->rules && !*filter->marks && !*filter->node_class)
		return hash;
	hash = hash_combine(hash, hash_text(filter->resources));
	hash = hash_combine(hash, hash_text(filter->rules));
	hash = hash_combine(hash, hash_text(filter->marks));
	return hash_combine(hash, hash_text(filter->node_class));
}

static struct filter *intern_filter(struct shapes *shapes, const struct filter *wanted)
{
	bool empty = filter_is_empty(wanted);
	int64_t key;

	if (empty && shapes->empty_filter)
		return shapes->empty_filter;
	struct filter *filter =
	    shape_find(&shapes->filters, hash_filter(wanted), same_filter, wanted, &key);
	if (filter)
		return filter;
	filter = make_filter((int64_t)shapes->filters.count + 1, wanted);
	map_put(&shapes->filters, key, filter);
	if (empty)
		shapes->empty_filter = filter;
	if (filter->demand && filter->demand->keeps_apart) {
		array_reserve(shapes->ruled, shapes->ruled_capacity, shapes->ruled_count + 1);
		shapes->ruled[shapes->ruled_count++] = filter;
	}
	return filter;
}

struct filter *shapes_filter(struct shapes *shapes, const char *models, const char *labels)
{
	const struct filter wanted = { .gpu_types = models,
		                       .labels = labels,
		                       .resources = "",
		                       .rules = "",
		                       .marks = "",
		                       .node_class = "",
		                       .window = "" };
	return intern_filter(shapes, &wanted);
}

/* Records that were not completed have no empty texts where nothing was given. */
static const char *given(const char *text)
{
	return text ? text : "";
}

struct filter *shapes_job_filter(struct shapes *shapes, const struct job_record *job)
{
	const struct filter wanted = { .gpu_types = given(job->gpu_models),
		                       .labels = given(job->node_labels),
		                       .resources = given(job->resources),
		                       .rules = given(job->rules),
		                       .marks = given(job->marks),
		                       .node_class = given(job->node_class),
		                       .window = given(job->window) };
	return intern_filter(shapes, &wanted);
}

struct filter *shapes_guest_filter(struct shapes *shapes, const char *marks, const char *rules)
{
	const struct filter wanted = { .gpu_types = "",
		                       .labels = "",
		                       .resources = "",
		                       .rules = rules,
		                       .marks = marks,
		                       .node_class = "",
		                       .window = "" };
	return intern_filter(shapes, &wanted);
}

bool filter_allows(const struct filter *filter, const struct gpu *gpu)
{
	if (filter->window[0] != '\0' && (gpu->windows & filter->window_bit) == 0)
		return false;
	return filter->gpu_types[0] == '\0' || bitset_has(&filter->gpu_type, (size_t)gpu->gpu_type);
}

/* Whether `name` is among the models, which are separated by '|'. */
static bool lists_model(const char *models, const char *name)
{
	size_t size = strlen(name);
	for (;;) {
		size_t listed = strcspn(models, "|");
		if (listed == size && memcmp(models, name, size) == 0)
			return true;
		if (models[listed] == '\0')
			return false;
		models += listed + 1;
	}
}

/* Whether the node has a GPU of an allowed model. All its GPUs are looked at,
 * since each may bring a model that is not `known` yet. */
static bool has_model(struct filter *filter, struct bitset *known, const struct node *node)
{
	bool allowed = false;
	for (int i = 0; i < node->gpu_count; i++) {
		const struct gpu *gpu = node->gpus[i];
		size_t model = (size_t)gpu->gpu_type;
		if (!bitset_has(known, model)) {
			bitset_grow(known, model + 1);
			bitset_grow(&filter->gpu_type, model + 1);
			bitset_add(known, model);
			bitset_assign(&filter->gpu_type, model,
			              lists_model(filter->gpu_types, gpu->r.model));
		}
		allowed |= bitset_has(&filter->gpu_type, model);
	}
	return allowed;
}

static void refresh_demand(struct filter *filter, const struct cluster *cluster)
{
	demand_refresh(filter->demand, cluster);
	for (size_t w = 0; *filter->node_class && w < filter->nodes.words; w++)
		filter->nodes.word[w] &= filter->demand->allowed.word[w];
}

/* Whether the node, or a GPU of it, is in the window that the filter names. */
static bool is_in_window(const struct filter *filter, const struct node *node)
{
	bool is_in = filter->window[0] == '\0' || (node->windows & filter->window_bit) != 0;

	for (int i = 0; i < node->gpu_count && !is_in; i++)
		is_in = (node->gpus[i]->windows & filter->window_bit) != 0;
	return is_in;
}

/* No bit: there is no such window. */
static uint64_t window_bit(const struct cluster *cluster, const char *name)
{
	INVARIANT(!*name || cluster->windows.linked);
	for (int i = 0; i < cluster->windows.count && *name; i++)
		if (strcmp(cluster->windows.at[i]->r.name, name) == 0)
			return UINT64_C(1) << i;
	return 0;
}

/* Somebody else starts the tasks there, and not those of just any job. */
static bool is_orchestrated(const struct node *node)
{
	const char *at = strstr(node->r.labels, NODE_ORCHESTRATOR "=");

	return at && (at == node->r.labels || at[-1] == '\n');
}

void filter_refresh(struct filter *filter, const struct cluster *cluster, uint64_t version)
{
	if (filter->refreshed == version)
		return;
	INVARIANT(cluster->ordered);
	struct bitset known = { 0 };
	bool classed = filter->demand && *filter->demand->node_class;
	filter->window_bit = window_bit(cluster, filter->window);
	bitset_free(&filter->gpu_type);
	bitset_free(&filter->nodes);
	bitset_grow(&filter->nodes, cluster->node_count);
	for (size_t rank = 0; rank < cluster->node_count; rank++) {
		const struct node *node = cluster->by_rank[rank];
		bool modelled = filter->gpu_types[0] == '\0' || has_model(filter, &known, node);
		if (modelled && node_has_labels(node, filter->labels) &&
		    (classed || !is_orchestrated(node)) && is_in_window(filter, node))
			bitset_add(&filter->nodes, rank);
	}
	if (filter->demand)
		refresh_demand(filter, cluster);
	bitset_free(&known);
	filter->refreshed = version;
}

bool shape_is_plain(const struct shape *shape)
{
	const struct shape_request *request = &shape->request;
	bool linked = shape->closeness == CLOSE_NVLINK && shape->closeness_required;

	if (shape->filter->demand || *shape->filter->window || request->compute > 0)
		return false;
	switch (request->gpu_kind) {
	case GPU_NONE:
		return true;
	case GPU_WHOLE:
		return request->memory_mib == 0 && (request->gpu_count == 1 || !linked);
	case GPU_FRACTION:
		return request->gpu_count == 1;
	default:
		return false;
	}
}

static void free_filter(struct filter *filter)
{
	bitset_free(&filter->gpu_type);
	bitset_free(&filter->nodes);
	demand_free(filter->demand);
	free(filter);
}

static uint64_t hash_request(const struct shape_request *request)
{
	uint64_t hash = (uint64_t)request->gpu_kind;
	hash = hash_combine(hash, (uint64_t)request->gpu_count);
	hash = hash_combine(hash, (uint64_t)request->fraction);
	hash = hash_combine(hash, (uint64_t)request->memory_mib);
	hash = hash_combine(hash, (uint64_t)request->cpu_milli);
	hash = hash_combine(hash, (uint64_t)request->host_bytes);
	if (request->compute > 0)
		hash = hash_combine(hash_combine(hash, (uint64_t)request->compute),
		                    (uint64_t)request->sharer);
	if (request->gpu_kind == GPU_UNEVEN)
		hash = hash_combine(hash,
		                    hash_bytes(request->uneven_mib, sizeof(request->uneven_mib)));
	return hash;
}

static bool same_request(const struct shape_request *a, const struct shape_request *b)
{
	return a->gpu_kind == b->gpu_kind && a->gpu_count == b->gpu_count &&
	       a->fraction == b->fraction && a->memory_mib == b->memory_mib &&
	       a->cpu_milli == b->cpu_milli && a->host_bytes == b->host_bytes &&
	       a->compute == b->compute && a->sharer == b->sharer &&
	       memcmp(a->uneven_mib, b->uneven_mib, sizeof(a->uneven_mib)) == 0;
}

static uint64_t hash_shape(const struct shape *shape)
{
	uint64_t hash = hash_request(&shape->request);
	hash = hash_combine(hash, (uint64_t)shape->tasks);
	hash = hash_combine(hash, (uint64_t)shape->split_gpus);
	hash = hash_combine(hash, (uint64_t)shape->closeness * 2 + shape->closeness_required);
	return hash_combine(hash, (uint64_t)shape->filter->number);
}

static bool same_shape(const void *item, const void *wanted)
{
	const struct shape *a = item, *b = wanted;
	return a->tasks == b->tasks && a->split_gpus == b->split_gpus &&
	       a->closeness == b->closeness && a->closeness_required == b->closeness_required &&
	       a->filter == b->filter && same_request(&a->request, &b->request);
}

static struct shape *intern_shape(struct shapes *shapes, const struct shape *wanted)
{
	int64_t key;
	struct shape *shape =
	    shape_find(&shapes->shapes, hash_shape(wanted), same_shape, wanted, &key);
	if (shape)
		return shape;
	shape = NEW(struct shape);
	*shape = *wanted;
	shape->number = ++shapes->last_number;
	shape->active_index = -1;
	map_put(&shapes->shapes, key, shape);
	array_reserve(shapes->all, shapes->capacity, shapes->count + 1);
	shapes->all[shapes->count++] = shape;
	return shape;
}

static void free_shape(struct shape *shape)
{
	free(shape->groups);
	free(shape);
}

static uint64_t hash_group(const struct job_group *group)
{
	uint64_t hash = hash_number((uint64_t)group->tenant->r.id);
	hash = hash_combine(hash, (uint64_t)group->shape->number);
	return hash_combine(hash, (uint64_t)group->anchor * 2 + group->preemptible);
}

static bool same_group(const void *item, const void *wanted)
{
	const struct job_group *a = item, *b = wanted;
	return a->tenant == b->tenant && a->shape == b->shape && a->preemptible == b->preemptible &&
	       a->anchor == b->anchor;
}

/* Unlike hash_group, without numbers that depend on what came first. */
static uint64_t stable_key(const struct job_group *group)
{
	const struct shape *shape = group->shape;
	uint64_t hash = hash_combine(hash_request(&shape->request), (uint64_t)shape->tasks);
	hash = hash_combine(hash, (uint64_t)shape->split_gpus);
	hash = hash_combine(hash, (uint64_t)shape->closeness * 2 + shape->closeness_required);
	hash = hash_combine(hash, hash_text(shape->filter->gpu_types));
	hash = hash_combine(hash, hash_text(shape->filter->labels));
	if (shape->filter->demand || *shape->filter->window)
		hash = hash_combine(hash, hash_filter(shape->filter));
	hash = hash_combine(hash, (uint64_t)group->tenant->r.id);
	return hash_combine(hash, (uint64_t)group->anchor * 2 + group->preemptible);
}

static struct job_group *intern_group(struct shapes *shapes, const struct job_group *wanted)
{
	int64_t key;
	struct job_group *group =
	    shape_find(&shapes->groups, hash_group(wanted), same_group, wanted, &key);
	if (!group) {
		group = NEW(struct job_group);
		*group = *wanted;
		group->key = stable_key(wanted);
		group_init(group);
		map_put(&shapes->groups, key, group);
	}
	return group;
}

static uint64_t hash_class(const struct job_class *class)
{
	uint64_t hash = hash_group(class->group);
	hash = hash_combine(hash, (uint64_t) class->priority);
	return hash_combine(hash, (uint64_t) class->length);
}

static bool same_class(const void *item, const void *wanted)
{
	const struct job_class *a = item, *b = wanted;
	return same_group(a->group, b->group) && a->priority == b->priority &&
	       a->length == b->length;
}

/* Where the job has to grow beside what it has. */
static int64_t anchor_of(const struct job *job)
{
	return job->r.closeness_required && job_active(job) > 0 ? job->r.id : 0;
}

struct job_class *shapes_class(struct shapes *shapes, struct job *job, struct queue_rule rule)
{
	const struct shape shape = {
		.request = job->request,
		.tasks = job_need(job),
		.split_gpus = job->r.split_gpus,
		.closeness = (enum closeness)job->r.closeness,
		.closeness_required = job->r.closeness_required,
		.filter = job->filter,
	};
	struct job_group group = {
		.tenant = job->tenant,
		.shape = intern_shape(shapes, &shape),
		.preemptible = job->r.preemptible,
		.anchor = anchor_of(job),
	};
	struct job_class wanted = {
		.group = &group,
		.tenant = group.tenant,
		.shape = group.shape,
		.priority = job->r.priority,
		.length = length_of(job->s.expected_ms),
	};
	int64_t key;
	struct job_class *class =
	    shape_find(&shapes->classes, hash_class(&wanted), same_class, &wanted, &key);
	if (!class) {
		class = NEW(struct job_class);
		wanted.group = intern_group(shapes, &group);
		*class = wanted;
		class_init(class, rule);
		class->next = class->group->made;
		class->group->made = class;
		map_put(&shapes->classes, key, class);
	}
	return class;
}

/* Takes the item, which is in the map, out. Items behind it in its chain may be there because of
 * it, so they are inserted again. */
static void shape_forget(struct map *map, uint64_t (*hash)(const void *), same_kind *same,
                         void *item)
{
	int64_t key, other_key;
	void *behind;
	INVARIANT(shape_find(map, hash(item), same, item, &key) == item);
	map_remove(map, key);
	while ((behind = map_remove(map, key = next_key(key)))) {
		shape_find(map, hash(behind), same, behind, &other_key);
		map_put(map, other_key, behind);
	}
}

static uint64_t hash_any_class(const void *class)
{
	return hash_class(class);
}

static uint64_t hash_any_group(const void *group)
{
	return hash_group(group);
}

/* Frees the group, for which nobody waits, and its classes. */
static void forget_group(struct shapes *shapes, struct job_group *group)
{
	INVARIANT(group->class_count == 0);
	for (struct job_class *class = group->made, *next; class; class = next) {
		next = class->next;
		shape_forget(&shapes->classes, hash_any_class, same_class, class);
		class_free(class);
	}
	shape_forget(&shapes->groups, hash_any_group, same_group, group);
	group_free(group);
}

void shapes_sweep(struct shapes *shapes)
{
	for (size_t i = 0; i < shapes->spent_count; i++) {
		shapes->spent[i]->spent = false;
		if (shapes->spent[i]->class_count == 0)
			forget_group(shapes, shapes->spent[i]);
	}
	shapes->spent_count = 0;
}

void shapes_forget_tenant(struct shapes *shapes, struct tenant *tenant)
{
	struct job_group **found = NULL;
	size_t count = 0, capacity = 0;

	shapes_sweep(shapes);
	for (size_t i = 0; i < shapes->groups.capacity; i++) {
		struct job_group *group = shapes->groups.entries[i].value;
		if (group && group->tenant == tenant) {
			array_reserve(found, capacity, count + 1);
			found[count++] = group;
		}
	}
	for (size_t i = 0; i < count; i++)
		forget_group(shapes, found[i]);
	free(found);
}

void shapes_rerule(struct shapes *shapes, struct queue_rule rule, int64_t now_ms)
{
	for (size_t i = 0; i < shapes->classes.capacity; i++) {
		struct job_class *class = shapes->classes.entries[i].value;
		if (class)
			class_rerule(class, rule, now_ms);
	}
}

int length_of(int64_t expected_ms)
{
	if (expected_ms <= 0)
		return LENGTH_UNKNOWN;
	int length = 0;
	while (length < LENGTH_MAX && length_ms(length) < expected_ms)
		length++;
	return length;
}

int64_t length_ms(int length)
{
	return length == LENGTH_UNKNOWN ? INT64_MAX : (INT64_C(1) << length) * SECOND_MS;
}

void shapes_free(struct shapes *shapes)
{
	for (size_t i = 0; i < shapes->classes.capacity; i++) {
		if (shapes->classes.entries[i].value)
			class_free(shapes->classes.entries[i].value);
	}
	for (size_t i = 0; i < shapes->groups.capacity; i++) {
		if (shapes->groups.entries[i].value)
			group_free(shapes->groups.entries[i].value);
	}
	for (size_t i = 0; i < shapes->filters.capacity; i++) {
		if (shapes->filters.entries[i].value)
			free_filter(shapes->filters.entries[i].value);
	}
	for (size_t i = 0; i < shapes->count; i++)
		free_shape(shapes->all[i]);
	map_free(&shapes->shapes);
	map_free(&shapes->groups);
	map_free(&shapes->classes);
	map_free(&shapes->filters);
	free(shapes->all);
	free(shapes->active);
	free(shapes->spent);
	free(shapes->ruled);
	*shapes = (struct shapes){ 0 };
}
