/* catalogue.c - the durable records, as readers see them */
#include "api/read/catalogue.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/read/job_sets.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/ranktree.h"

/* A job with all that is about it. `job` and `state` are both there as soon as the batch
 * that brought it is applied. */
struct entry {
	struct job_record *job;
	struct job_state_record *state;
	struct task_record **tasks; /* by place */
	size_t task_count, task_capacity;
	int64_t version;
	struct job_place place; /* as it stands in the sets; its id is 0 where it does not */
};

/* Pointers to records that belong to one node, or have names of the same hash. */
struct list {
	const void **at;
	size_t count, capacity;
};

struct catalogue {
	pthread_rwlock_t lock;
	int64_t version;
	struct map jobs; /* id -> struct entry */
	struct job_sets sets;
	struct ranktree others[RECORD_KINDS]; /* clones by key; jobs, states and tasks are not here
	                                       */
	struct text_map tenants, nodes, gpus; /* by name, or UUID */
	struct map node_gpus, node_reservations; /* node's id -> struct list */
	struct map models;                       /* hash of a name -> struct list */
};

struct catalogue *catalogue_new(void)
{
	struct catalogue *catalogue = NEW(struct catalogue);
	pthread_rwlock_init(&catalogue->lock, NULL);
	return catalogue;
}

static void entry_free(struct entry *entry)
{
	for (size_t i = 0; i < entry->task_count; i++)
		free(entry->tasks[i]);
	free(entry->tasks);
	free(entry->job);
	free(entry->state);
	free(entry);
}

static void lists_free(struct map *lists)
{
	for (size_t i = 0; i < lists->capacity; i++) {
		struct list *list = lists->entries[i].value;
		if (list)
			free(list->at);
		free(list);
	}
	map_free(lists);
}

void catalogue_free(struct catalogue *catalogue)
{
	if (!catalogue)
		return;
	for (size_t i = 0; i < catalogue->jobs.capacity; i++)
		if (catalogue->jobs.entries[i].value)
			entry_free(catalogue->jobs.entries[i].value);
	map_free(&catalogue->jobs);
	job_sets_free(&catalogue->sets);
	for (int kind = 0; kind < RECORD_KINDS; kind++) {
		struct rank_cursor cursor =
		    ranktree_seek(&catalogue->others[kind], INT64_MIN, INT64_MIN);
		const struct rank_entry *entry;
		while ((entry = rank_cursor_next(&cursor)))
			free(entry->value);
		ranktree_free(&catalogue->others[kind]);
	}
	text_map_free(&catalogue->tenants);
	text_map_free(&catalogue->nodes);
	text_map_free(&catalogue->gpus);
	lists_free(&catalogue->node_gpus);
	lists_free(&catalogue->node_reservations);
	lists_free(&catalogue->models);
	pthread_rwlock_destroy(&catalogue->lock);
	free(catalogue);
}

/* Where a record can be found beside its key. */

static struct text_map *names_of(struct catalogue *catalogue, enum record_kind kind,
                                 const void *record, const char **name)
{
	switch (kind) {
	case RECORD_TENANT:
		*name = ((const struct tenant_record *)record)->name;
		return &catalogue->tenants;
	case RECORD_NODE:
		*name = ((const struct node_record *)record)->name;
		return &catalogue->nodes;
	case RECORD_GPU:
		*name = ((const struct gpu_record *)record)->uuid;
		return &catalogue->gpus;
	default:
		return NULL;
	}
}

static struct map *lists_of(struct catalogue *catalogue, enum record_kind kind, const void *record,
                            int64_t *group, int64_t *order)
{
	if (kind == RECORD_GPU) {
		*group = ((const struct gpu_record *)record)->node_id;
		*order = ((const struct gpu_record *)record)->place;
		return &catalogue->node_gpus;
	}
	if (kind == RECORD_RESERVATION) {
		*group = ((const struct reservation_record *)record)->node_id;
		*order = ((const struct reservation_record *)record)->id;
		return &catalogue->node_reservations;
	}
	if (kind == RECORD_MODEL) {
		*group = (int64_t)hash_text(((const struct model_record *)record)->name);
		*order = ((const struct model_record *)record)->id;
		return &catalogue->models;
	}
	return NULL;
}

static void list_add(struct catalogue *catalogue, enum record_kind kind, const void *record)
{
	int64_t group = 0, order = 0, other_group = 0, other = 0;
	struct map *lists = lists_of(catalogue, kind, record, &group, &order);
	if (!lists)
		return;
	struct list *list = map_get(lists, group);
	if (!list) {
		list = NEW(struct list);
		map_put(lists, group, list);
	}
	array_reserve(list->at, list->capacity, list->count + 1);
	size_t at = list->count++;
	for (; at > 0; at--) {
		lists_of(catalogue, kind, list->at[at - 1], &other_group, &other);
		if (other <= order)
			break;
		list->at[at] = list->at[at - 1];
	}
	list->at[at] = record;
}

static void list_remove(struct catalogue *catalogue, enum record_kind kind, const void *record)
{
	int64_t group = 0, order = 0;
	struct map *lists = lists_of(catalogue, kind, record, &group, &order);
	struct list *list = lists ? map_get(lists, group) : NULL;
	if (!list)
		return;
	size_t at = 0;
	while (at < list->count && list->at[at] != record)
		at++;
	INVARIANT(at < list->count);
	for (list->count--; at < list->count; at++)
		list->at[at] = list->at[at + 1];
}

static void other_remove(struct catalogue *catalogue, enum record_kind kind, struct record_key key)
{
	void *old = ranktree_remove(&catalogue->others[kind], key.first, key.second);
	if (!old)
		return;
	const char *name = "";
	struct text_map *names = names_of(catalogue, kind, old, &name);
	/* Another may have the name by now. */
	if (names && text_map_get(names, name) == old)
		text_map_remove(names, name);
	list_remove(catalogue, kind, old);
	free(old);
}

static void other_put(struct catalogue *catalogue, enum record_kind kind, const void *record)
{
	struct record_key key = record_key(kind, record);
	other_remove(catalogue, kind, key);
	void *copy = record_clone(kind, record);
	ranktree_insert(&catalogue->others[kind], key.first, key.second, copy);
	const char *name = "";
	struct text_map *names = names_of(catalogue, kind, copy, &name);
	if (names)
		text_map_put(names, name, copy);
	list_add(catalogue, kind, copy);
}

/* Jobs. */

static struct entry *entry_of(struct catalogue *catalogue, int64_t id)
{
	struct entry *entry = map_get(&catalogue->jobs, id);
	if (!entry) {
		entry = NEW(struct entry);
		map_put(&catalogue->jobs, id, entry);
	}
	entry->version = catalogue->version;
	return entry;
}

/* Stands it in the sets as its records say. */
static void catalogue_settle(struct catalogue *catalogue, struct entry *entry)
{
	if (!entry->job || !entry->state)
		return;
	struct job_place place = { .id = entry->job->id,
		                   .tenant_id = entry->job->tenant_id,
		                   .priority = entry->job->priority,
		                   .state = entry->state->state };
	if (entry->place.id == 0)
		job_sets_add(&catalogue->sets, &place);
	else
		job_sets_move(&catalogue->sets, &entry->place, &place);
	entry->place = place;
}

static void task_put(struct entry *entry, const struct task_record *task)
{
	size_t at = entry->task_count;
	while (at > 0 && entry->tasks[at - 1]->place >= task->place)
		at--;
	if (at == entry->task_count || entry->tasks[at]->place != task->place) {
		array_reserve(entry->tasks, entry->task_capacity, entry->task_count + 1);
		for (size_t i = entry->task_count++; i > at; i--)
			entry->tasks[i] = entry->tasks[i - 1];
	} else {
		free(entry->tasks[at]);
	}
	entry->tasks[at] = record_clone(RECORD_TASK, task);
}

static void job_put(struct catalogue *catalogue, enum record_kind kind, const void *record)
{
	struct entry *entry = entry_of(catalogue, record_key(kind, record).first);
	if (kind == RECORD_TASK) {
		task_put(entry, record);
		return;
	}
	if (kind == RECORD_JOB) {
		free(entry->job);
		entry->job = record_clone(kind, record);
	} else {
		free(entry->state);
		entry->state = record_clone(kind, record);
	}
	catalogue_settle(catalogue, entry);
}

static void job_remove(struct catalogue *catalogue, int64_t id, bool archived)
{
	struct entry *entry = map_remove(&catalogue->jobs, id);
	if (!entry)
		return;
	if (entry->place.id != 0) {
		job_sets_remove(&catalogue->sets, &entry->place);
		if (archived)
			job_sets_archive(&catalogue->sets, entry->place.tenant_id,
			                 entry->place.state, 1);
	}
	entry_free(entry);
}

static bool is_of_job(enum record_kind kind)
{
	return kind == RECORD_JOB || kind == RECORD_JOB_STATE || kind == RECORD_TASK;
}

void catalogue_load(struct catalogue *catalogue, enum record_kind kind, const void *record)
{
	if (record_is_history(kind))
		return;
	if (is_of_job(kind))
		job_put(catalogue, kind, record);
	else
		other_put(catalogue, kind, record);
}

void catalogue_load_archived(struct catalogue *catalogue, int64_t tenant_id, enum job_state state,
                             int64_t count)
{
	job_sets_archive(&catalogue->sets, tenant_id, (int)state, count);
}

/* The kinds of records in the rows of a table. */
static void table_kinds(const struct schema *schema, const struct table *table,
                        enum record_kind kinds[TABLE_TYPES_MAX])
{
	for (enum record_kind kind = 0; kind < RECORD_KINDS; kind++)
		if (schema->kinds[kind].table == table)
			kinds[schema->kinds[kind].of] = kind;
}

static void apply_row(struct catalogue *catalogue, const enum record_kind *kinds, int kind_count,
                      const struct batch_row *row)
{
	for (int of = 0; of < kind_count; of++)
		if (row->records[of])
			catalogue_load(catalogue, kinds[of], row->records[of]);
	if (!row->deleted && !row->archived)
		return;
	/* Tasks go when their job does. */
	if (kinds[0] == RECORD_JOB)
		job_remove(catalogue, row->key.first, row->archived);
	else if (!is_of_job(kinds[0]))
		other_remove(catalogue, kinds[0], row->key);
}

void catalogue_apply(struct catalogue *catalogue, const struct batch *batch)
{
	const struct schema *schema = batch->schema;
	pthread_rwlock_wrlock(&catalogue->lock);
	catalogue->version++;
	for (int i = 0; i < schema->count; i++) {
		const struct table *table = &schema->tables[i];
		const struct batch_table *rows = &batch->tables[i];
		enum record_kind kinds[TABLE_TYPES_MAX] = { 0 };
		if (table->is_log || rows->count == 0)
			continue;
		table_kinds(schema, table, kinds);
		for (size_t row = 0; row < rows->count; row++)
			apply_row(catalogue, kinds, table->type_count, &rows->rows[row]);
	}
	pthread_rwlock_unlock(&catalogue->lock);
}

void catalogue_lock(struct catalogue *catalogue)
{
	pthread_rwlock_rdlock(&catalogue->lock);
}
void catalogue_unlock(struct catalogue *catalogue)
{
	pthread_rwlock_unlock(&catalogue->lock);
}
int64_t catalogue_version(const struct catalogue *catalogue)
{
	return catalogue->version;
}

bool catalogue_job(const struct catalogue *catalogue, int64_t id, struct catalogue_job *job)
{
	const struct entry *entry = map_get(&catalogue->jobs, id);
	if (!entry || !entry->job || !entry->state)
		return false;
	*job = (struct catalogue_job){
		.job = entry->job,
		.state = entry->state,
		.tasks = (const struct task_record *const *)entry->tasks,
		.task_count = entry->task_count,
		.promise = catalogue_get(catalogue, RECORD_PROMISE, id, 0),
		.version = entry->version,
	};
	return true;
}

const void *catalogue_get(const struct catalogue *catalogue, enum record_kind kind, int64_t first,
                          int64_t second)
{
	struct rank_cursor cursor = ranktree_seek(&catalogue->others[kind], first, second);
	const struct rank_entry *entry = rank_cursor_next(&cursor);
	return entry && entry->major == first && entry->minor == second ? entry->value : NULL;
}

const void *catalogue_next(const struct catalogue *catalogue, struct catalogue_cursor *cursor)
{
	const struct rank_entry *entry =
	    ranktree_select(&catalogue->others[cursor->kind], cursor->at);
	cursor->at++;
	return entry ? entry->value : NULL;
}

const struct tenant_record *catalogue_tenant_named(const struct catalogue *catalogue,
                                                   const char *name)
{
	return text_map_get(&catalogue->tenants, name);
}

const struct node_record *catalogue_node_named(const struct catalogue *catalogue, const char *name)
{
	return text_map_get(&catalogue->nodes, name);
}

const struct model_record *catalogue_model_named(const struct catalogue *catalogue,
                                                 const char *name, int64_t after_id)
{
	const struct list *list = map_get(&catalogue->models, (int64_t)hash_text(name));

	for (size_t i = 0; list && i < list->count; i++) {
		const struct model_record *model = list->at[i];
		if (model->id > after_id && strcmp(model->name, name) == 0)
			return model;
	}
	return NULL;
}

const struct gpu_record *catalogue_gpu_named(const struct catalogue *catalogue, const char *uuid)
{
	return text_map_get(&catalogue->gpus, uuid);
}

static size_t list_get(const struct map *lists, int64_t node_id, const void *const **at)
{
	const struct list *list = map_get(lists, node_id);
	*at = list ? list->at : NULL;
	return list ? list->count : 0;
}

size_t catalogue_node_gpus(const struct catalogue *catalogue, int64_t node_id,
                           const struct gpu_record *const **gpus)
{
	const void *const *at;
	size_t count = list_get(&catalogue->node_gpus, node_id, &at);
	*gpus = (const struct gpu_record *const *)at;
	return count;
}

size_t catalogue_node_reservations(const struct catalogue *catalogue, int64_t node_id,
                                   const struct reservation_record *const **reservations)
{
	const void *const *at;
	size_t count = list_get(&catalogue->node_reservations, node_id, &at);
	*reservations = (const struct reservation_record *const *)at;
	return count;
}

int64_t catalogue_count(const struct catalogue *catalogue, const struct catalogue_filter *filter,
                        int64_t *archived)
{
	const struct job_set *set =
	    job_sets_get(&catalogue->sets, filter->tenant_id, filter->state);
	*archived = set ? set->archived : 0;
	return set ? (int64_t)set->by_id.count : 0;
}

static int64_t listed_id(const struct job_set *set, enum catalogue_order order, size_t at)
{
	if (order == ORDER_PRIORITY)
		return ranktree_select(&set->by_priority, at)->minor;
	size_t rank = order == ORDER_OLDEST ? at : set->by_id.count - 1 - at;
	return ranktree_select(&set->by_id, rank)->major;
}

size_t catalogue_list(const struct catalogue *catalogue, const struct catalogue_filter *filter,
                      int64_t offset, size_t limit, int64_t *ids)
{
	const struct job_set *set =
	    job_sets_get(&catalogue->sets, filter->tenant_id, filter->state);
	size_t count = 0;
	if (!set || offset < 0)
		return 0;
	for (size_t at = (size_t)offset; count < limit && at < set->by_id.count; at++)
		ids[count++] = listed_id(set, filter->order, at);
	return count;
}

int64_t catalogue_rank(const struct catalogue *catalogue, const struct catalogue_filter *filter,
                       int64_t id)
{
	const struct job_set *set =
	    job_sets_get(&catalogue->sets, filter->tenant_id, filter->state);
	if (!set)
		return 0;
	if (filter->order == ORDER_OLDEST)
		return (int64_t)ranktree_rank(&set->by_id, id, 0);
	return (int64_t)(set->by_id.count - ranktree_rank(&set->by_id, id, INT64_MAX));
}
