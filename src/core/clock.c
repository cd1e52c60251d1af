/* clock.c - the clock was wrong: every time in the ledger moves, and no duration changes */
#include <stdlib.h>
#include <string.h>

#include "core/state.h"

/* Nothing here knows what is kept for speed: queues, heaps, promised starts. All records are
 * written out, their times moved, and a core that is loaded from them takes over. */

/* From where the clock was to where it is. */
struct move {
	int64_t from_ms, to_ms;
	bool clamp; /* times that have passed stay, but for those that have not by now */
	struct sched *fresh;
	struct effects *out;
};

static int64_t moved(const struct move *move, int64_t time_ms)
{
	if (time_ms == 0 || time_ms == INT64_MAX)
		return time_ms; /* none, or never */
	if (move->clamp && time_ms <= move->from_ms)
		return min64(time_ms, move->to_ms);
	return max64(time_ms + move->to_ms - move->from_ms, 1);
}

static void move_time(const struct move *move, int64_t *time_ms)
{
	*time_ms = moved(move, *time_ms);
}

/* What was used is billed up to `metered_ms`, so the runs behind it must agree with that. */
static int64_t run_moved(const struct move *move, const struct tenant *tenant, int64_t time_ms)
{
	int64_t by_ms = moved(move, tenant->r.metered_ms) - tenant->r.metered_ms;

	return time_ms == 0 ? 0 : min64(max64(time_ms + by_ms, 1), move->to_ms);
}

static void move_tenant(const struct move *move, struct tenant_record *tenant)
{
	move_time(move, &tenant->metered_ms);
	if (tenant->month >= month_of(move->from_ms))
		tenant->month = month_of(move->to_ms);
}

static void move_state(const struct move *move, struct job_state_record *state)
{
	move_time(move, &state->queued_ms);
	move_time(move, &state->not_before_ms);
	move_time(move, &state->started_ms);
	move_time(move, &state->checkpoint_ms);
	move_time(move, &state->completed_ms);
	move_time(move, &state->short_since_ms);
	move_time(move, &state->suspended_ms);
	move_time(move, &state->promised_ms);
	move_time(move, &state->likely_ms);
	move_time(move, &state->promise_made_ms);
	move_time(move, &state->look_ms);
	move_time(move, &state->urgent_ms);
}

static void move_reservation(const struct move *move, const struct sched *sched,
                             struct reservation_record *record)
{
	const struct reservation *reservation = map_get(&sched->reservations, record->id);
	const struct tenant *tenant = reservation_tenant(reservation);

	move_time(move, &record->since_ms);
	record->counted_ms = run_moved(move, tenant, record->counted_ms);
	record->started_ms = run_moved(move, tenant, record->started_ms);
	record->saved_ms = run_moved(move, tenant, record->saved_ms);
	record->ended_ms = run_moved(move, tenant, record->ended_ms);
}

/* The times of a record. A job's deadline is its owner's, and stays. */
static void move_record(const struct move *move, const struct sched *sched, enum record_kind kind,
                        void *record)
{
	struct task_record *task = record;
	struct model_record *model = record;
	struct slot_record *slot = record;

	switch (kind) {
	case RECORD_TENANT:
		move_tenant(move, record);
		break;
	case RECORD_JOB:
		move_time(move, &((struct job_record *)record)->submitted_ms);
		break;
	case RECORD_JOB_STATE:
		move_state(move, record);
		break;
	case RECORD_TASK:
		move_time(move, &task->started_ms);
		move_time(move, &task->ended_ms);
		break;
	case RECORD_MODEL:
		move_time(move, &model->failed_ms);
		move_time(move, &model->not_before_ms);
		break;
	case RECORD_SLOT:
		move_time(move, &slot->ordered_ms);
		move_time(move, &slot->overdue_ms);
		move_time(move, &slot->ready_ms);
		move_time(move, &slot->used_ms);
		move_time(move, &slot->held_ms);
		break;
	case RECORD_GPU:
		move_time(move, &((struct gpu_record *)record)->paid_ms);
		break;
	case RECORD_RESERVATION:
		move_reservation(move, sched, record);
		break;
	default: /* it has none */
		break;
	}
}

static int clock_by_id(const void *a, const void *b)
{
	const struct job *x = *(struct job *const *)a, *y = *(struct job *const *)b;

	return x->r.id < y->r.id ? -1 : x->r.id > y->r.id;
}

static void mark_jobs(struct sched *sched)
{
	struct job **jobs = memory_alloc((sched->jobs.count + 1) * sizeof(*jobs));
	size_t count = 0;

	for (size_t i = 0; i < sched->jobs.capacity; i++)
		if (sched->jobs.entries[i].value)
			jobs[count++] = sched->jobs.entries[i].value;
	qsort(jobs, count, sizeof(struct job *), clock_by_id);
	for (size_t i = 0; i < count; i++) {
		jobs[i]->spec_dirty = true;
		sched_dirty_job(sched, jobs[i]);
		for (int t = 0; t < jobs[i]->r.tasks; t++)
			if (jobs[i]->tasks[t].recorded)
				sched_dirty_task(sched, jobs[i], t);
	}
	free(jobs);
}

static void mark_all(struct sched *sched)
{
	for (size_t i = 0; i < sched->tenants.count; i++)
		sched_dirty_tenant(sched, sched->tenants.all[i]);
	for (size_t i = 0; i < sched->models.count; i++) {
		struct model *model = sched->models.all[i];
		sched_dirty_model(sched, model);
		for (size_t s = 0; s < model->slot_count; s++)
			sched_dirty_slot(sched, model->slots[s]);
	}
	for (size_t i = 0; i < sched->cluster.node_count; i++) {
		struct node *node = sched->cluster.nodes[i];
		sched_dirty_node(sched, node);
		for (int g = 0; g < node->gpu_count; g++)
			sched_dirty_gpu(sched, node->gpus[g]);
		for (int r = 0; r < node->reservation_count; r++)
			sched_dirty_reservation(sched, node->reservations[r]);
	}
	mark_jobs(sched);
	sched->config_dirty = true;
}

/* A meter is not brought forward while its tenant holds what it held before, so it may be behind
 * a run that took the place of another. Runs move as their meter does: it goes to where they
 * began first. */
static void meter_runs(struct sched *sched)
{
	for (size_t i = 0; i < sched->cluster.node_count; i++) {
		const struct node *node = sched->cluster.nodes[i];
		for (int r = 0; r < node->reservation_count; r++) {
			const struct reservation *reservation = node->reservations[r];
			struct tenant *tenant = reservation_tenant(reservation);
			if (!reservation_is_billed(reservation) || tenant->r.metered_ms == 0 ||
			    reservation->counted_ms <= tenant->r.metered_ms)
				continue;
			tenant_settle_now(&sched->tenants, tenant, reservation->counted_ms,
			                  &sched->config);
			sched_dirty_tenant(sched, tenant);
		}
	}
}

/* Expected starts are recomputed, and failed searches repeated. */
static void drop_expectations(struct sched *sched)
{
	while (sched->promise_count > 0)
		promise_drop(sched, map_get(&sched->jobs, sched->promises[0]->r.job_id));
	backoff_clear(sched);
}

/* Every record of this kind, moved, goes to the new core and, where it changed, to the
 * effects. */
static void load_kind(const struct move *move, const struct sched *sched, const struct effects *all,
                      enum record_kind kind, struct arena *arena)
{
	struct error error;

	for (size_t i = 0; i < all->count; i++) {
		const struct effect *effect = &all->at[i];
		if (effect->kind != EFFECT_PUT || effect->record_kind != kind)
			continue;
		void *record = record_copy(arena, kind, effect->record);
		move_record(move, sched, kind, record);
		if (!sched_load(move->fresh, kind, record, &error))
			panic("a record that was moved in time is refused: %s", error.text);
		if (!record_equal(kind, record, effect->record))
			effects_put(move->out, kind, record);
	}
}

static int compare_classes(const void *a, const void *b)
{
	const struct node_class *x = *(struct node_class *const *)a;
	const struct node_class *y = *(struct node_class *const *)b;

	return x->r.id < y->r.id ? -1 : x->r.id > y->r.id;
}

static int compare_guests(const void *a, const void *b)
{
	const struct guest *x = *(struct guest *const *)a, *y = *(struct guest *const *)b;

	return x->r.id < y->r.id ? -1 : x->r.id > y->r.id;
}

/* All values of the map, in that order; to be freed. */
static void **clock_values(const struct text_map *map, int (*compare)(const void *, const void *))
{
	void **values = memory_alloc((map->count + 1) * sizeof(*values));
	size_t count = 0;

	for (size_t i = 0; i < map->capacity; i++)
		if (map->entries[i].value)
			values[count++] = map->entries[i].value;
	INVARIANT(count == map->count);
	qsort(values, count, sizeof(*values), compare);
	return values;
}

/* Classes of nodes and guests have no times, and those of windows are the calendar's: they go
 * over as they are. */
static void load_facts(const struct move *move, const struct sched *sched)
{
	const struct cluster *cluster = &sched->cluster;
	void **classes = clock_values(&cluster->class_by_name, compare_classes);
	void **guests = clock_values(&cluster->guest_by_name, compare_guests);
	struct error error = { 0 };
	bool good = true;

	for (size_t i = 0; good && i < cluster->class_by_name.count; i++)
		good = sched_load(move->fresh, RECORD_NODE_CLASS,
		                  &((struct node_class *)classes[i])->r, &error);
	for (size_t i = 0; good && i < cluster->guest_by_name.count; i++)
		good =
		    sched_load(move->fresh, RECORD_GUEST, &((struct guest *)guests[i])->r, &error);
	for (int i = 0; good && i < cluster->windows.count; i++)
		good = sched_load(move->fresh, RECORD_WINDOW, &cluster->windows.at[i]->r, &error);
	if (!good)
		panic("a class of nodes, a guest or a window is refused: %s", error.text);
	free(classes);
	free(guests);
}

/* The times in the predictor and the mix decide nothing: they go over as they are. */
static void load_fresh(const struct move *move, struct sched *sched, const struct effects *all)
{
	struct meta_record meta = sched->meta;
	struct arena arena = { 0 };
	struct error error;

	meta.now_ms = move->to_ms;
	move_time(move, &meta.timed_ms);
	move_time(move, &meta.quotas_ms);
	meta.promise_after_ms = 0;
	if (!sched_load(move->fresh, RECORD_META, &meta, &error))
		panic("the counters are refused: %s", error.text);
	workload_mix_free(&move->fresh->placement.workload_mix);
	move->fresh->placement.workload_mix = sched->placement.workload_mix;
	workload_mix_init(&sched->placement.workload_mix);
	predict_move(&move->fresh->predictor, &sched->predictor);
	move->fresh->margins = sched->margins;
	move->fresh->trials = sched->trials;
	sched->trials = (struct map){ 0 };
	for (enum record_kind kind = RECORD_CONFIG; kind < RECORD_PROMISE; kind++)
		load_kind(move, sched, all, kind, &arena);
	load_facts(move, sched);
	if (!sched_load_end(move->fresh, &error))
		panic("a core that was moved in time contradicts itself: %s", error.text);
	arena_free(&arena);
}

/* What a tenant pays is looked up by time: the price that holds now holds from now on. */
static void put_prices(struct sched *sched)
{
	for (size_t i = 0; i < sched->tenants.count; i++)
		effects_put(sched->effects, RECORD_PRICE,
		            &(struct price_record){
				.tenant_id = sched->tenants.all[i]->r.id,
				.since_ms = sched_now(sched),
				.cost_per_gpu_hour = sched->tenants.all[i]->r.cost_per_gpu_hour });
}

static void replace(struct sched *sched, struct sched *fresh)
{
	struct sched old = *sched;

	fresh->effects = sched->effects;
	fresh->cluster.version = sched->cluster.version + 1;
	/* So that the counters are written. */
	fresh->written_meta = sched->written_meta;
	*sched = *fresh;
	*fresh = old;
	sched_connect(sched);
	sched_connect(fresh);
	fresh->effects = NULL;
	sched_free(fresh);
}

bool clock_move(struct sched *sched, int64_t to_ms, bool clamp, struct error *error)
{
	struct effects all = { 0 }, *out = sched->effects;
	int64_t from_ms = sched_now(sched);

	INVARIANT(!sched->plan.open && sched->effects != NULL);
	if (to_ms < 1 || to_ms > TIME_MS_MAX || (clamp && to_ms > from_ms))
		return error_set(error, ERROR_INVALID, "the clock cannot go from %lld to %lld ms",
		                 (long long)from_ms, (long long)to_ms);
	route_reset(sched);
	drop_expectations(sched);
	meter_runs(sched);
	sched_flush(sched);
	sched->effects = &all;
	mark_all(sched);
	sched_flush(sched);
	sched->effects = out;
	struct move move = { from_ms, to_ms, clamp, sched_new(), out };
	load_fresh(&move, sched, &all);
	replace(sched, move.fresh);
	effects_free(&all);
	put_prices(sched);
	sched_event(sched, (struct event){ .kind = EVENT_CLOCK_MOVED, .value = to_ms - from_ms });
	return true;
}
