/* windows.c - windows are made, open, close and go */
#include <stdlib.h>
#include <string.h>

#include "core/place/window_rules.h"
#include "core/state.h"

/* What was refused or not found may be possible now, and the other way round. */
static void windows_moved(struct sched *sched)
{
	sched_cluster_changed(sched, true);
	backoff_clear(sched);
	sched->pass.change_seq++;
}

static void windows_event(struct sched *sched, const struct window *window)
{
	sched_event(sched, (struct event){ .kind = EVENT_WINDOW_CHANGED,
	                                   .tenant_id = window->r.tenant_id,
	                                   .value = window->r.id });
}

/* Whether each line of the list is known. */
static bool check_lines(const struct sched *sched, const char *list, bool gpus, struct error *error)
{
	char name[JOB_NAME_BYTES_MAX + 1];

	while (list && *list) {
		size_t size = strcspn(list, "\n");
		INVARIANT(size < sizeof(name));
		memcpy(name, list, size);
		name[size] = '\0';
		bool known = gpus ? cluster_gpu(&sched->cluster, name) != NULL
		                  : cluster_node(&sched->cluster, name) != NULL;
		if (!known)
			return error_set(error, ERROR_NOT_FOUND, "%s %.200s is not known",
			                 gpus ? "GPU" : "node", name);
		list += size + (list[size] == '\n');
	}
	return true;
}

static int reserved_on(const struct node *node)
{
	int count = 0;

	for (int i = 0; i < node->gpu_count; i++)
		count += gpu_is_reserved(node->gpus[i]);
	return count;
}

static int by_free(const void *a, const void *b)
{
	const struct node *x = *(struct node *const *)a, *y = *(struct node *const *)b;
	int reserved_x = reserved_on(x), reserved_y = reserved_on(y);

	return reserved_x != reserved_y ? reserved_x - reserved_y : x->rank - y->rank;
}

static int64_t list_free_gpus(const struct node *node, const char *model, int64_t left,
                              struct buffer *list)
{
	int64_t added = 0;

	for (int i = 0; i < node->gpu_count && added < left && !node->r.draining; i++) {
		const struct gpu *gpu = node->gpus[i];
		if (!gpu->r.present || gpu->r.mig_mode || gpu->r.capacity_mib == 0 ||
		    gpu->windows != 0 || (*model && strcmp(gpu->r.model, model) != 0))
			continue;
		buffer_print(list, "%s\n", gpu->r.uuid);
		added++;
	}
	return added;
}

/* That many GPUs which are in no other window, where the fewest are in use. */
static bool choose_gpus(struct sched *sched, const struct window_command *command,
                        struct buffer *list, struct error *error)
{
	const char *model = command->gpu_model ? command->gpu_model : "";
	size_t count = sched->cluster.node_count;
	int64_t left = command->gpu_count;

	sched_prepare(sched);
	struct node **nodes = memory_alloc((count + 1) * sizeof(struct node *));
	if (count > 0) {
		memcpy(nodes, sched->cluster.nodes, count * sizeof(struct node *));
		qsort(nodes, count, sizeof(struct node *), by_free);
	}
	for (size_t i = 0; i < count && left > 0; i++)
		left -= list_free_gpus(nodes[i], model, left, list);
	free(nodes);
	if (left == 0)
		return true;
	return error_set(error, ERROR_IMPOSSIBLE,
	                 "GPUs%s%.60s that are in no other window: %lld wanted, %lld there",
	                 *model ? " of model " : "", model, (long long)command->gpu_count,
	                 (long long)(command->gpu_count - left));
}

static bool check_new(const struct sched *sched, const struct window_record *record,
                      struct error *error)
{
	if (windows_named(&sched->cluster.windows, record->name))
		return error_set(error, ERROR_CONFLICT, "there is a window %s already",
		                 record->name);
	if (sched->cluster.windows.count == WINDOWS_MAX)
		return error_set(error, ERROR_FULL, "there are %d windows already, the limit",
		                 WINDOWS_MAX);
	if (record->tenant_id != 0 && !tenants_find(&sched->tenants, record->tenant_id))
		return error_set(error, ERROR_NOT_FOUND, "tenant-%lld is not known",
		                 (long long)record->tenant_id);
	if (window_time(record, sched_now(sched)).begin_ms == INT64_MAX)
		return error_set(error, ERROR_INVALID, "the window is in the past");
	return check_lines(sched, record->nodes, false, error) &&
	       check_lines(sched, record->gpus, true, error);
}

static void windows_make(struct sched *sched, struct window_record *record)
{
	record->id = ++sched->meta.last_window_id;
	record->made_ms = sched_now(sched);
	record->open = false;
	struct window *window = windows_add(&sched->cluster.windows, record);
	effects_put(sched->effects, RECORD_WINDOW, &window->r);
	sched->effects->reply_id = record->id;
	windows_event(sched, window);
	windows_moved(sched);
}

bool windows_put(struct sched *sched, const struct window_command *command, struct error *error)
{
	struct window_record record = command->window;
	struct buffer list = { 0 };

	INVARIANT(!sched->plan.open && sched->effects != NULL);
	record.nodes = record.nodes ? record.nodes : "";
	record.gpus = record.gpus ? record.gpus : "";
	record.reason = record.reason ? record.reason : "";
	record.user = record.user ? record.user : "";
	if (command->gpu_count > 0) {
		if (*record.nodes || *record.gpus)
			return error_set(error, ERROR_INVALID,
			                 "a number of GPUs, and nodes or GPUs by name, exclude "
			                 "each other");
		if (!choose_gpus(sched, command, &list, error)) {
			buffer_free(&list);
			return false;
		}
		record.gpus = list.data;
	}
	bool good = window_check(&record, error) && check_new(sched, &record, error);
	if (good)
		windows_make(sched, &record);
	buffer_free(&list);
	return good;
}

static void windows_drop(struct sched *sched, struct window *window)
{
	windows_event(sched, window);
	effects_delete(sched->effects, RECORD_WINDOW, window->r.id, 0);
	windows_remove(&sched->cluster.windows, window);
	windows_moved(sched);
}

bool windows_delete(struct sched *sched, int64_t id, struct error *error)
{
	struct windows *windows = &sched->cluster.windows;

	INVARIANT(!sched->plan.open && sched->effects != NULL);
	for (int i = 0; i < windows->count; i++)
		if (windows->at[i]->r.id == id) {
			windows_drop(sched, windows->at[i]);
			return true;
		}
	return error_set(error, ERROR_NOT_FOUND, "window %lld is not known", (long long)id);
}

/* Work that does not belong to the open window, and has to go now: a slot without requests, and
 * with `evict` what has outlived its grace. */
static bool has_to_go(struct sched *sched, const struct reservation *reservation)
{
	int64_t now_ms = sched_now(sched);
	const struct window *window = window_against(&sched->cluster, reservation, now_ms);

	if (!window)
		return false;
	bool over = window->r.evict &&
	            now_ms - window_time(&window->r, now_ms).begin_ms >= window->r.grace_ms;
	return reservation->slot ? over || reservation->slot->active == 0 : over;
}

static void close_slot(struct sched *sched, struct slot *slot)
{
	if (slot->r.state != SLOT_READY || slot->r.evicted)
		return;
	slot_evict(sched, slot);
	sched->pass.change_seq++;
}

/* True if it stopped something, so that the node's reservations are others now. */
static bool clear_one(struct sched *sched, struct reservation *reservation)
{
	struct error error;

	if (reservation->slot) {
		struct slot *slot = reservation->slot;
		if (slot->r.state == SLOT_STOPPING || reservation->phase == PHASE_CLAIM ||
		    !window_against(&sched->cluster, reservation, sched_now(sched)))
			return false;
		if (!has_to_go(sched, reservation)) {
			close_slot(sched, slot);
			return false;
		}
		slot_stop(sched, slot, false);
		return true;
	}
	bool runs = reservation->phase == PHASE_GRANTED || reservation->phase == PHASE_LIVE;
	return runs && has_to_go(sched, reservation) &&
	       job_requeue(sched, reservation->job, &error);
}

static void clear_node(struct sched *sched, struct node *node)
{
	for (int i = 0; i < node->reservation_count;) {
		int before = node->reservation_count;
		bool stopped = clear_one(sched, node->reservations[i]);
		if (stopped)
			sched->pass.change_seq++;
		i = stopped && node->reservation_count != before ? 0 : i + 1;
	}
}

void windows_time_passed(struct sched *sched)
{
	struct windows *windows = &sched->cluster.windows;
	bool any = false;

	for (int i = windows->count - 1; i >= 0; i--) {
		struct window *window = windows->at[i];
		struct window_time time = window_time(&window->r, sched_now(sched));
		bool open = time.begin_ms <= sched_now(sched);
		if (time.begin_ms == INT64_MAX) {
			windows_drop(sched, window);
			continue;
		}
		any |= open;
		if (window->r.open == open)
			continue;
		window->r.open = open;
		effects_put(sched->effects, RECORD_WINDOW, &window->r);
		windows_event(sched, window);
		windows_moved(sched);
	}
	if (!any)
		return;
	sched_prepare(sched);
	for (size_t i = 0; i < sched->cluster.node_count; i++)
		if (sched->cluster.by_rank[i]->in_windows)
			clear_node(sched, sched->cluster.by_rank[i]);
}

bool windows_load(struct sched *sched, const struct window_record *record)
{
	windows_add(&sched->cluster.windows, record);
	return true;
}
