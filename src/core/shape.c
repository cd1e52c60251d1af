/* shape.c - jobs that ask for the same thing in the same way */
#include "core/shape.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "core/job.h"

#define LENGTH_MAX 40
#define SECOND_MS 1000

/* Filters, shapes and classes are interned: each is in a map under its hash or,
 * where that is taken by another, under the next number that is not. */
typedef bool same_kind(const void *item, const void *wanted);

static int64_t next_key(int64_t key)
{
	return key < INT64_MAX ? key + 1 : 0;
}

/* The item that is the same as `wanted`, or NULL; `*key` is where it is, or
 * where it would go. */
static void *find(const struct map *map, uint64_t hash, same_kind *same, const void *wanted,
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
	return strcmp(a->models, b->models) == 0 && strcmp(a->labels, b->labels) == 0;
}

static struct filter *make_filter(int64_t number, const char *models, const char *labels)
{
	size_t models_size = strlen(models) + 1, labels_size = strlen(labels) + 1;
	struct filter *filter = memory_zero(1, sizeof(*filter) + models_size + labels_size);
	char *texts = (char *)(filter + 1);
	filter->number = number;
	filter->models = memcpy(texts, models, models_size);
	filter->labels = memcpy(texts + models_size, labels, labels_size);
	filter->refreshed = UINT64_MAX; /* no version of a cluster */
	return filter;
}

struct filter *shapes_filter(struct shapes *shapes, const char *models, const char *labels)
{
	const struct filter wanted = { .models = models, .labels = labels };
	uint64_t hash = hash_combine(hash_text(models), hash_text(labels));
	int64_t key;
	struct filter *filter = find(&shapes->filters, hash, same_filter, &wanted, &key);
	if (!filter) {
		filter = make_filter((int64_t)shapes->filters.count + 1, models, labels);
		map_put(&shapes->filters, key, filter);
	}
	return filter;
}

bool filter_allows(const struct filter *filter, const struct gpu *gpu)
{
	return filter->models[0] == '\0' || bitset_has(&filter->model, (size_t)gpu->model);
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
		size_t model = (size_t)gpu->model;
		if (!bitset_has(known, model)) {
			bitset_grow(known, model + 1);
			bitset_grow(&filter->model, model + 1);
			bitset_add(known, model);
			bitset_assign(&filter->model, model,
			              lists_model(filter->models, gpu->r.model));
		}
		allowed |= bitset_has(&filter->model, model);
	}
	return allowed;
}

void filter_refresh(struct filter *filter, const struct cluster *cluster, uint64_t version)
{
	if (filter->refreshed == version)
		return;
	INVARIANT(cluster->ordered);
	struct bitset known = { 0 };
	bitset_free(&filter->model);
	bitset_free(&filter->nodes);
	bitset_grow(&filter->nodes, cluster->node_count);
	for (size_t slot = 0; slot < cluster->node_count; slot++) {
		const struct node *node = cluster->by_slot[slot];
		bool modelled = filter->models[0] == '\0' || has_model(filter, &known, node);
		if (modelled && node_has_labels(node, filter->labels))
			bitset_add(&filter->nodes, slot);
	}
	bitset_free(&known);
	filter->refreshed = version;
}

static void free_filter(struct filter *filter)
{
	bitset_free(&filter->model);
	bitset_free(&filter->nodes);
	free(filter);
}

static uint64_t hash_request(const struct request *request)
{
	uint64_t hash = (uint64_t)request->gpu_kind;
	hash = hash_combine(hash, (uint64_t)request->gpu_count);
	hash = hash_combine(hash, (uint64_t)request->fraction);
	hash = hash_combine(hash, (uint64_t)request->memory_mib);
	hash = hash_combine(hash, (uint64_t)request->cpu_milli);
	hash = hash_combine(hash, (uint64_t)request->host_bytes);
	if (request->gpu_kind == GPU_UNEVEN)
		hash = hash_combine(hash,
		                    hash_bytes(request->uneven_mib, sizeof(request->uneven_mib)));
	return hash;
}

static bool same_request(const struct request *a, const struct request *b)
{
	return a->gpu_kind == b->gpu_kind && a->gpu_count == b->gpu_count &&
	       a->fraction == b->fraction && a->memory_mib == b->memory_mib &&
	       a->cpu_milli == b->cpu_milli && a->host_bytes == b->host_bytes &&
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
	struct shape *shape = find(&shapes->shapes, hash_shape(wanted), same_shape, wanted, &key);
	if (shape)
		return shape;
	shape = NEW(struct shape);
	*shape = *wanted;
	shape->number = ++shapes->last_number;
	shape->active_place = -1;
	map_put(&shapes->shapes, key, shape);
	array_reserve(shapes->all, shapes->capacity, shapes->count + 1);
	shapes->all[shapes->count++] = shape;
	return shape;
}

static void free_shape(struct shape *shape)
{
	free(shape->classes);
	free(shape);
}

static uint64_t hash_class(const struct job_class *class)
{
	uint64_t hash = hash_number((uint64_t) class->tenant->r.id);
	hash = hash_combine(hash, (uint64_t) class->shape->number);
	hash = hash_combine(hash, (uint64_t) class->priority);
	return hash_combine(hash, (uint64_t) class->length * 2 + class->preemptible);
}

static bool same_class(const void *item, const void *wanted)
{
	const struct job_class *a = item, *b = wanted;
	return a->tenant == b->tenant && a->shape == b->shape && a->priority == b->priority &&
	       a->length == b->length && a->preemptible == b->preemptible;
}

static struct job_class *find_class(const struct shapes *shapes, const struct job_class *wanted,
                                    int64_t *key)
{
	return find(&shapes->classes, hash_class(wanted), same_class, wanted, key);
}

/* Unlike hash_class, without numbers that depend on what came first. */
static uint64_t stable_key(const struct job_class *class)
{
	const struct shape *shape = class->shape;
	uint64_t hash = hash_combine(hash_request(&shape->request), (uint64_t)shape->tasks);
	hash = hash_combine(hash, (uint64_t)shape->split_gpus);
	hash = hash_combine(hash, (uint64_t)shape->closeness * 2 + shape->closeness_required);
	hash = hash_combine(hash, hash_text(shape->filter->models));
	hash = hash_combine(hash, hash_text(shape->filter->labels));
	hash = hash_combine(hash, (uint64_t) class->tenant->r.id);
	hash = hash_combine(hash, (uint64_t) class->priority);
	return hash_combine(hash, (uint64_t) class->length * 2 + class->preemptible);
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
	const struct job_class wanted = {
		.tenant = job->tenant,
		.shape = intern_shape(shapes, &shape),
		.priority = job->r.priority,
		.length = length_of(job->s.expected_ms),
		.preemptible = job->r.preemptible,
		.shape_place = -1,
		.tenant_place = -1,
		.pass_place = -1,
	};
	int64_t key;
	struct job_class *class = find_class(shapes, &wanted, &key);
	if (!class) {
		class = NEW(struct job_class);
		*class = wanted;
		class->key = stable_key(&wanted);
		queue_init(&class->queue, rule);
		map_put(&shapes->classes, key, class);
	}
	return class;
}

static void free_class(struct job_class *class)
{
	queue_free(&class->queue);
	free(class);
}

/* Those behind it in its chain may be where they are because of it, so they
 * are put in anew. */
static void forget_class(struct shapes *shapes, struct job_class *class)
{
	int64_t key, other_key;
	struct job_class *behind;
	class->shape->opened[0] = class->shape->opened[1] = NULL;
	INVARIANT(queue_count(&class->queue) == 0);
	INVARIANT(find_class(shapes, class, &key) == class);
	map_remove(&shapes->classes, key);
	while ((behind = map_remove(&shapes->classes, key = next_key(key)))) {
		find_class(shapes, behind, &other_key);
		map_put(&shapes->classes, other_key, behind);
	}
	free_class(class);
}

void shapes_forget_tenant(struct shapes *shapes, struct tenant *tenant)
{
	struct job_class **found = NULL;
	size_t count = 0, capacity = 0;
	for (size_t i = 0; i < shapes->classes.capacity; i++) {
		struct job_class *class = shapes->classes.entries[i].value;
		if (class && class->tenant == tenant) {
			array_reserve(found, capacity, count + 1);
			found[count++] = class;
		}
	}
	for (size_t i = 0; i < count; i++)
		forget_class(shapes, found[i]);
	free(found);
}

void shapes_rerule(struct shapes *shapes, struct queue_rule rule, int64_t now_ms)
{
	for (size_t i = 0; i < shapes->classes.capacity; i++) {
		struct job_class *class = shapes->classes.entries[i].value;
		if (class)
			queue_rerule(&class->queue, rule, now_ms);
	}
}

static void list_active(struct shapes *shapes, struct shape *shape)
{
	array_reserve(shapes->active, shapes->active_capacity, shapes->active_count + 1);
	shape->active_place = (int64_t)shapes->active_count;
	shapes->active[shapes->active_count++] = shape;
}

static void unlist_active(struct shapes *shapes, struct shape *shape)
{
	struct shape *last = shapes->active[--shapes->active_count];
	shapes->active[shape->active_place] = last;
	last->active_place = shape->active_place;
	shape->active_place = -1;
}

static void list_class(struct shapes *shapes, struct job_class *class)
{
	struct shape *shape = class->shape;
	struct tenant *tenant = class->tenant;
	if (shape->class_count == 0)
		list_active(shapes, shape);
	array_reserve(shape->classes, shape->class_capacity, shape->class_count + 1);
	class->shape_place = (int64_t)shape->class_count;
	shape->classes[shape->class_count++] = class;
	array_reserve(tenant->classes, tenant->class_capacity, tenant->class_count + 1);
	class->tenant_place = (int64_t)tenant->class_count;
	tenant->classes[tenant->class_count++] = class;
}

/* The last one of each list takes its place there. */
static void unlist_class(struct shapes *shapes, struct job_class *class)
{
	struct shape *shape = class->shape;
	struct tenant *tenant = class->tenant;
	struct job_class *last = shape->classes[--shape->class_count];
	shape->classes[class->shape_place] = last;
	last->shape_place = class->shape_place;
	last = tenant->classes[--tenant->class_count];
	tenant->classes[class->tenant_place] = last;
	last->tenant_place = class->tenant_place;
	class->shape_place = class->tenant_place = -1;
	if (shape->class_count == 0)
		unlist_active(shapes, shape);
}

int64_t job_urgent_from(const struct job *job)
{
	if (job->r.deadline_ms <= 0)
		return 0;
	int64_t expected_ms = min64(job->s.expected_ms, job->r.deadline_ms / 2);
	return max64(job->r.deadline_ms - 2 * expected_ms, 1);
}

void class_push(struct shapes *shapes, struct job_class *class, struct job *job, int64_t now_ms)
{
	INVARIANT(!job->class && job->tenant == class->tenant);
	INVARIANT(job->r.priority == class->priority);
	job->entry = (struct queue_entry){
		.priority = job->r.priority,
		.queued_ms = job_age_from(job),
		.number = job_turn(job),
		.urgent_ms = job_urgent_from(job),
		.place = -1,
	};
	if (queue_count(&class->queue) == 0)
		list_class(shapes, class);
	queue_push(&class->queue, &job->entry, now_ms);
	job->class = class;
	class->tenant->queued++;
}

void class_remove(struct shapes *shapes, struct job_class *class, struct job *job)
{
	INVARIANT(job->class == class);
	queue_remove(&class->queue, &job->entry);
	job->class = NULL;
	class->tenant->queued--;
	if (queue_count(&class->queue) == 0)
		unlist_class(shapes, class);
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
			free_class(shapes->classes.entries[i].value);
	}
	for (size_t i = 0; i < shapes->filters.capacity; i++) {
		if (shapes->filters.entries[i].value)
			free_filter(shapes->filters.entries[i].value);
	}
	for (size_t i = 0; i < shapes->count; i++)
		free_shape(shapes->all[i]);
	map_free(&shapes->shapes);
	map_free(&shapes->classes);
	map_free(&shapes->filters);
	free(shapes->all);
	free(shapes->active);
	*shapes = (struct shapes){ 0 };
}
