/* slot.c - one loaded instance of a model, from its reservation to the end */
#include "core/model/slot.h"

#include <stdlib.h>
#include <string.h>

#include "core/model/launch.h"
#include "core/state.h"

#define OVERDUE_TIMES 2        /* as long as loads of the model usually take */
#define OVERDUE_LEAST_MS 30000 /* the first load of a model, or a short one, may take that long */

struct slot *slot_new(struct model *model, struct reservation *reservation)
{
	struct slot *slot = NEW(struct slot);

	slot->r.id = reservation->id;
	slot->r.model_id = model->r.id;
	slot->r.state = reservation->phase == PHASE_CLAIM ? SLOT_WAITING : SLOT_PLACED;
	slot->r.concurrency = model->r.concurrency;
	slot->r.fixed = model->r.pinned;
	slot->address = memory_text("");
	slot->r.address = slot->address;
	slot->model = model;
	slot->reservation = reservation;
	slot->open_index = slot->timer_index = slot->rival_index = -1;
	slot->timer_ms = INT64_MAX;
	return slot;
}

void slot_free(struct slot *slot)
{
	free(slot->address);
	free(slot);
}

static int32_t *slot_count_of(struct slot *slot)
{
	struct model_counts *counts = &slot->model->counts;

	switch ((enum slot_state)slot->r.state) {
	case SLOT_READY:
		return &counts->ready;
	case SLOT_STOPPING:
		return &counts->stopping;
	case SLOT_SLEEPING:
	case SLOT_ASLEEP:
		return &counts->asleep;
	default:
		return &counts->coming;
	}
}

/* What others on its GPUs wait for. */
static void count_loading(struct slot *slot, int sign)
{
	for (int i = 0; i < slot->reservation->part_count; i++)
		slot->reservation->parts[i].gpu->loading += sign;
}

/* Out of the list of those that are closed. */
static void end_closing(struct sched *sched, struct slot *slot)
{
	if (slot->r.closing_for == 0)
		return;
	slot->r.closing_for = 0;
	slot->model->counts.closing--;
	ranktree_remove(&sched->models.closing, slot->r.id, 0);
	sched_dirty_slot(sched, slot);
}

/* Puts it into the lists of those that have a claim and of those that are asleep, or takes it out.
 */
static void list_state(struct sched *sched, struct slot *slot)
{
	struct models *models = &sched->models;
	bool claims = slot->linked &&
	              (slot->r.state == SLOT_WAITING || slot->reservation->phase == PHASE_WAKING);
	bool sleeps = slot->linked && slot->r.state == SLOT_ASLEEP;

	if (slot->claims && !claims)
		ranktree_remove(&models->claimants, slot->r.id, 0);
	if (!slot->claims && claims)
		ranktree_insert(&models->claimants, slot->r.id, 0, slot);
	slot->claims = claims;
	if (slot->sleeps && !sleeps)
		ranktree_remove(&models->asleep, slot->slept_key, slot->r.id);
	if (!slot->sleeps && sleeps) {
		slot->slept_key = slot->r.used_ms;
		ranktree_insert(&models->asleep, slot->slept_key, slot->r.id, slot);
	}
	slot->sleeps = sleeps;
}

static void set_state(struct sched *sched, struct slot *slot, enum slot_state state)
{
	enum slot_state before = (enum slot_state)slot->r.state;

	if (slot_holds_up(slot))
		count_loading(slot, -1);
	--*slot_count_of(slot);
	slot->r.state = (int32_t)state;
	++*slot_count_of(slot);
	list_state(sched, slot);
	if (slot_holds_up(slot))
		count_loading(slot, 1);
	if (before == SLOT_LOADING)
		rotation_loaded(sched, slot, sched_now(sched) - slot->r.ordered_ms);
	end_closing(sched, slot);
	sched_dirty_slot(sched, slot);
}

static void slot_event(struct sched *sched, const struct slot *slot, enum event_kind kind)
{
	sched_event(sched, (struct event){ .kind = kind,
	                                   .model_id = slot->r.model_id,
	                                   .tenant_id = slot->model->r.tenant_id,
	                                   .node_id = slot->reservation->node->r.id,
	                                   .value = slot->r.id });
}

void slot_link(struct sched *sched, struct slot *slot)
{
	struct model *model = slot->model;

	array_reserve(model->slots, model->slot_capacity, model->slot_count + 1);
	size_t at = model->slot_count++;
	for (; at > 0 && model->slots[at - 1]->r.id > slot->r.id; at--)
		model->slots[at] = model->slots[at - 1];
	model->slots[at] = slot;
	map_put(&sched->models.slots, slot->r.id, slot);
	slot->linked = true;
	++*slot_count_of(slot);
	if (slot_holds_up(slot))
		count_loading(slot, 1);
	list_state(sched, slot);
	if (slot->r.closing_for != 0) {
		model->counts.closing++;
		ranktree_insert(&sched->models.closing, slot->r.id, 0, slot);
	}
}

static void unlink_slot(struct sched *sched, struct slot *slot)
{
	struct model *model = slot->model;
	size_t at = 0;

	end_closing(sched, slot);
	--*slot_count_of(slot);
	if (slot_holds_up(slot))
		count_loading(slot, -1);
	while (model->slots[at] != slot)
		at++;
	model->slot_count--;
	memmove(model->slots + at, model->slots + at + 1,
	        (model->slot_count - at) * sizeof(struct slot *));
	map_remove(&sched->models.slots, slot->r.id);
	slot->linked = false;
	list_state(sched, slot);
}

void slot_order_load(struct sched *sched, const struct slot *slot)
{
	const struct reservation *reservation = slot->reservation;
	const struct model_record *model = &slot->model->r;
	struct launch launch = launch_of(model, reservation);
	int64_t rows[PARTS_MAX * PART_WIDTH];

	INVARIANT(sched->effects != NULL);
	reservation_rows(reservation, rows);
	effects_load(
	    sched->effects,
	    &(struct load_order){ .term = sched->meta.term,
	                          .reservation_id = reservation->id,
	                          .model_id = model->id,
	                          .node_id = reservation->node->r.id,
	                          .tenant_id = model->tenant_id,
	                          .runtime = launch.runtime,
	                          .parts = { rows, reservation->part_count },
	                          .utilisation = { launch.utilisation, reservation->part_count },
	                          .tensor_parallel = launch.tensor_parallel,
	                          .context = launch.context,
	                          .parallel = launch.parallel,
	                          .kv_cache = model->kv_cache,
	                          .command = model->command,
	                          .cpu_milli = reservation->cpu_milli,
	                          .host_bytes = reservation->host_bytes,
	                          .load_timeout_ms = model->load_timeout_ms,
	                          .sleep = model->sleep });
}

void slot_expect_load(struct sched *sched, struct slot *slot)
{
	int64_t memory_mib = 0;

	INVARIANT(slot->r.state != SLOT_LOADING || !slot->linked);
	for (int i = 0; i < slot->reservation->part_count; i++)
		memory_mib += slot->reservation->parts[i].mib;
	int64_t usual_ms = model_reload_ms(slot->model, memory_mib);
	slot->r.ordered_ms = sched_now(sched);
	slot->r.overdue_ms =
	    max64(sched_now(sched) + max64(OVERDUE_TIMES * usual_ms, OVERDUE_LEAST_MS), 1);
}

static bool may_load(const struct sched *sched, const struct slot *slot)
{
	for (int i = 0; i < slot->reservation->part_count; i++)
		if (slot->reservation->parts[i].gpu->loading >= sched->config.loads_per_gpu)
			return false;
	return true;
}

/* Those that wait for a GPU are passed only by what does not touch it. */
void slot_load_next(struct sched *sched, struct node *node)
{
	for (int i = 0; i < node->reservation_count && node_is_open(node); i++) {
		struct slot *slot = node->reservations[i]->slot;
		if (!slot || slot->r.state != SLOT_PLACED || !slot->linked ||
		    !may_load(sched, slot))
			continue;
		slot_expect_load(sched, slot);
		set_state(sched, slot, SLOT_LOADING);
		slot_order_load(sched, slot);
		slot_event(sched, slot, EVENT_SLOT_LOADING);
		slot_settle(sched, slot);
	}
}

/* The reservation, too, is written at the end of the command. */
static void set_phase(struct sched *sched, struct slot *slot, enum phase phase)
{
	struct reservation *reservation = slot->reservation;

	if (reservation->phase != phase) {
		ledger_phase(&sched->ledger, reservation, phase, false);
		reservation->since_ms = sched_now(sched);
	}
	sched_dirty_reservation(sched, reservation);
	reservation_watch(sched, reservation);
}

void slot_begins(struct sched *sched, struct slot *slot)
{
	INVARIANT(!sched->plan.open);
	slot_link(sched, slot);
	sched_dirty_slot(sched, slot);
	slot_settle(sched, slot);
	replica_list(sched, slot->model);
	slot_load_next(sched, slot->reservation->node);
}

void slot_granted(struct sched *sched, struct slot *slot)
{
	INVARIANT(slot->reservation->phase == PHASE_GRANTED && !sched->plan.open);
	set_state(sched, slot, SLOT_PLACED);
	slot_settle(sched, slot);
	slot_load_next(sched, slot->reservation->node);
}

/* Removes it from the ledger and from every list. */
static void slot_leave(struct sched *sched, struct slot *slot)
{
	struct reservation *reservation = slot->reservation;
	struct node *node = reservation->node;
	struct model *model = slot->model;

	slot_event(sched, slot, EVENT_SLOT_GONE);
	unlink_slot(sched, slot);
	slot_settle(sched, slot);
	if (heap_has(&sched->releases, reservation))
		heap_remove(&sched->releases, reservation);
	ledger_leave(&sched->ledger, reservation);
	for (int i = 0; i < reservation->part_count; i++)
		node_report_over(sched, reservation->parts[i].gpu);
	sched_gone_reservation(sched, reservation);
	slot->gone = true;
	sched_dirty_slot(sched, slot);
	evict_list_model(sched, model);
	slot_load_next(sched, node);
	model_settle(sched, model);
}

/* It serves no more and frees its memory, which counts until it is back. */
static void retire(struct sched *sched, struct slot *slot, const char *reason)
{
	struct node *node = slot->reservation->node;

	set_phase(sched, slot, PHASE_RELEASING);
	set_state(sched, slot, SLOT_STOPPING);
	slot_event(sched, slot, EVENT_SLOT_STOPPING);
	slot_settle(sched, slot);
	route_evacuate(sched, slot, reason);
	evict_list_model(sched, slot->model);
	replica_list(sched, slot->model);
	slot_load_next(sched, node);
}

void slot_stop(struct sched *sched, struct slot *slot, bool released)
{
	INVARIANT(!sched->plan.open);
	switch ((enum slot_state)slot->r.state) {
	case SLOT_WAITING:
	case SLOT_PLACED:
		slot_leave(sched, slot);
		return;
	case SLOT_STOPPING:
		return;
	default:
		break;
	}
	INVARIANT(released == (slot->reservation->phase == PHASE_RELEASING));
	retire(sched, slot, "its slot was stopped");
	order_stop_unknown(sched, slot->reservation->node, slot->r.id);
}

void slot_drop(struct sched *sched, struct slot *slot)
{
	INVARIANT(slot->reservation->phase == PHASE_CLAIM);
	INVARIANT(slot->r.state == SLOT_WAITING);
	slot_leave(sched, slot);
}

void slot_close(struct sched *sched, struct slot *slot, const struct model *model)
{
	INVARIANT(slot->r.state == SLOT_READY && slot->r.closing_for == 0);
	INVARIANT(slot->model != model && slot->linked);
	slot->r.closing_for = model->r.id;
	slot->model->counts.closing++;
	ranktree_insert(&sched->models.closing, slot->r.id, 0, slot);
	sched_dirty_slot(sched, slot);
	slot_settle(sched, slot);
	replica_list(sched, slot->model);
}

void slot_evict(struct sched *sched, struct slot *slot)
{
	INVARIANT(slot->r.state == SLOT_READY && slot->linked);
	end_closing(sched, slot);
	slot->r.evicted = true;
	sched_dirty_slot(sched, slot);
	slot_settle(sched, slot);
	replica_list(sched, slot->model);
	slot_stop_drained(sched, slot->reservation->node);
}

void slot_open(struct sched *sched, struct slot *slot)
{
	INVARIANT(slot->r.state == SLOT_READY && slot->r.closing_for != 0);
	end_closing(sched, slot);
	slot_settle(sched, slot);
	route_serve(sched, slot->model);
	replica_list(sched, slot->model);
}

void slot_vanished(struct sched *sched, struct slot *slot)
{
	INVARIANT(!sched->plan.open);
	if (slot->r.state == SLOT_READY || slot->r.state == SLOT_LOADING) {
		set_state(sched, slot, SLOT_STOPPING);
		slot_settle(sched, slot);
		route_evacuate(sched, slot, "its slot is gone");
	}
	if (slot->reservation->run_id == 0)
		slot->reservation->ending = RUN_NODE_LOST;
	slot_leave(sched, slot);
}

bool slot_loading(struct sched *sched, struct slot *slot, struct error *error)
{
	if (slot->r.state != SLOT_LOADING)
		return error_set(error, ERROR_CONFLICT, "slot %lld is %s, not loading",
		                 (long long)slot->r.id, word_of(&slot_state_words, slot->r.state));
	if (slot->reservation->phase == PHASE_GRANTED)
		set_phase(sched, slot, PHASE_LIVE);
	return true;
}

static void set_address(struct sched *sched, struct slot *slot, const char *address)
{
	if (!address || strcmp(slot->address, address) == 0)
		return;
	free(slot->address);
	slot->address = memory_text(address);
	slot->r.address = slot->address;
	sched_dirty_slot(sched, slot);
}

bool slot_ready(struct sched *sched, struct slot *slot, const char *address, struct error *error)
{
	if (slot->r.state != SLOT_LOADING && slot->r.state != SLOT_READY)
		return error_set(error, ERROR_CONFLICT, "slot %lld is %s: it cannot be ready",
		                 (long long)slot->r.id, word_of(&slot_state_words, slot->r.state));
	set_address(sched, slot, address);
	if (slot->r.state == SLOT_READY)
		return true;
	set_phase(sched, slot, PHASE_LIVE);
	set_state(sched, slot, SLOT_READY);
	slot->r.ready_ms = slot->r.used_ms = sched_now(sched);
	model_loaded(sched, slot->model, slot->r.ready_ms - slot->r.ordered_ms);
	slot_event(sched, slot, EVENT_SLOT_READY);
	slot_settle(sched, slot);
	evict_list_model(sched, slot->model);
	route_serve(sched, slot->model);
	replica_list(sched, slot->model);
	slot_load_next(sched, slot->reservation->node);
	return true;
}

int64_t slot_residue_mib(const struct slot *slot)
{
	return model_residue_mib(slot->model);
}

/* Of one whose residue is large, sleeping would give back too little. */
bool slot_may_sleep(const struct slot *slot)
{
	const struct reservation *reservation = slot->reservation;

	if (slot->model->r.sleep == SLEEP_OFF || slot->model->r.removed || slot->r.sleepless ||
	    slot->r.evicted || slot->r.state != SLOT_READY || slot->active > 0 ||
	    reservation->phase != PHASE_LIVE || !node_is_open(reservation->node))
		return false;
	for (int i = 0; i < reservation->part_count; i++)
		if (2 * slot_residue_mib(slot) > reservation->parts[i].mib)
			return false;
	return true;
}

void slot_order_move(struct sched *sched, const struct slot *slot)
{
	const struct reservation *reservation = slot->reservation;
	bool back = reservation->phase == PHASE_RESUMING;

	INVARIANT(back || reservation->phase == PHASE_SUSPENDING);
	effects_order(sched->effects, back ? EFFECT_RESUME : EFFECT_SUSPEND,
	              &(struct task_order){ .term = sched->meta.term,
	                                    .reservation_id = slot->r.id,
	                                    .node_id = reservation->node->r.id,
	                                    .tenant_id = slot->model->r.tenant_id,
	                                    .grace_ms = sched->config.grace_ms,
	                                    .copy_bytes = reservation->copy_bytes,
	                                    .sleep = slot->r.sleep });
}

/* What its model has, and what may be evicted, is other than before. */
static void slot_moves(struct sched *sched, struct slot *slot)
{
	slot_settle(sched, slot);
	evict_list_model(sched, slot->model);
	replica_list(sched, slot->model);
}

void slot_sleeps(struct sched *sched, struct slot *slot)
{
	INVARIANT(slot->reservation->phase == PHASE_SUSPENDING && !sched->plan.open);
	INVARIANT(slot->active == 0);
	slot->r.sleep = slot->model->r.sleep;
	slot->r.ordered_ms = sched_now(sched);
	set_phase(sched, slot, PHASE_SUSPENDING);
	set_state(sched, slot, SLOT_SLEEPING);
	slot_moves(sched, slot);
	slot_order_move(sched, slot);
}

void slot_wakes(struct sched *sched, struct slot *slot)
{
	enum phase phase = slot->reservation->phase;

	INVARIANT((phase == PHASE_WAKING || phase == PHASE_RESUMING) && !sched->plan.open);
	slot->r.ordered_ms = sched_now(sched);
	set_state(sched, slot, SLOT_WAKING);
	sched_dirty_reservation(sched, slot->reservation);
	slot_moves(sched, slot);
	if (phase != PHASE_RESUMING)
		return;
	slot_event(sched, slot, EVENT_SLOT_WAKING);
	slot_order_move(sched, slot);
}

void slot_sleeps_on(struct sched *sched, struct slot *slot)
{
	INVARIANT(slot->r.state == SLOT_WAKING);
	set_phase(sched, slot, PHASE_SUSPENDED);
	set_state(sched, slot, SLOT_ASLEEP);
	slot_moves(sched, slot);
}

/* It has its GPU memory, and serves. */
static void slot_is_back(struct sched *sched, struct slot *slot)
{
	struct reservation *reservation = slot->reservation;

	ledger_copy(&sched->ledger, reservation, PHASE_LIVE, 0);
	ledger_residue(&sched->ledger, reservation, 0);
	reservation->since_ms = sched_now(sched);
	set_phase(sched, slot, PHASE_LIVE);
	set_state(sched, slot, SLOT_READY);
	slot->r.used_ms = sched_now(sched);
	slot->r.sleep = SLEEP_OFF;
	for (int i = 0; i < reservation->part_count; i++)
		node_report_over(sched, reservation->parts[i].gpu);
	slot_moves(sched, slot);
	route_serve(sched, slot->model);
	replica_list(sched, slot->model);
}

/* What it has from here on, as measured: no more on a GPU than its part there. */
static void slot_book(struct sched *sched, struct slot *slot, const struct slot_moved *moved)
{
	struct reservation *reservation = slot->reservation;
	int64_t residue_mib =
	    moved->residue_mib >= 0 ? moved->residue_mib : reservation->residue_mib;
	int64_t host_bytes = moved->host_bytes > 0 ? min64(moved->host_bytes, HOST_BYTES_MAX)
	                                           : reservation->copy_bytes;

	for (int i = 0; i < reservation->part_count; i++)
		residue_mib = min64(residue_mib, reservation->parts[i].mib);
	for (int i = 0; i < reservation->part_count; i++)
		ledger_measure(&sched->ledger, reservation, reservation->parts[i].gpu, residue_mib);
	ledger_residue(&sched->ledger, reservation, residue_mib);
	ledger_copy(&sched->ledger, reservation, PHASE_SUSPENDED, host_bytes);
	if (moved->residue_mib >= 0 && moved->host_bytes > 0)
		model_slept(sched, slot->model, residue_mib, host_bytes);
}

bool slot_slept(struct sched *sched, struct slot *slot, const struct slot_moved *moved,
                struct error *error)
{
	struct reservation *reservation = slot->reservation;

	if (slot->r.state == SLOT_ASLEEP || slot->r.state == SLOT_WAKING)
		return true;
	if (slot->r.state != SLOT_SLEEPING)
		return error_set(error, ERROR_CONFLICT, "slot %lld is not being put to sleep",
		                 (long long)slot->r.id);
	if (!moved->done) {
		slot->r.sleepless = true;
		slot_is_back(sched, slot);
		return true;
	}
	slot_book(sched, slot, moved);
	reservation->since_ms = sched_now(sched);
	set_phase(sched, slot, PHASE_SUSPENDED);
	set_state(sched, slot, SLOT_ASLEEP);
	for (int i = 0; i < reservation->part_count; i++)
		node_report_over(sched, reservation->parts[i].gpu);
	slot_event(sched, slot, EVENT_SLOT_ASLEEP);
	slot_moves(sched, slot);
	return true;
}

bool slot_woke(struct sched *sched, struct slot *slot, const struct slot_moved *moved,
               struct error *error)
{
	if (slot->r.state == SLOT_READY)
		return true;
	if (slot->r.state != SLOT_WAKING || slot->reservation->phase != PHASE_RESUMING)
		return error_set(error, ERROR_CONFLICT, "slot %lld is not being woken",
		                 (long long)slot->r.id);
	if (!moved->done)
		return slot_exited(sched, slot, moved->message, false, error) &&
		       (order_stop_unknown(sched, slot->reservation->node, slot->r.id), true);
	int64_t took_ms = sched_now(sched) - slot->r.ordered_ms;
	model_woke(sched, slot->model, took_ms);
	rotation_loaded(sched, slot, took_ms);
	slot->r.ready_ms = sched_now(sched);
	slot_is_back(sched, slot);
	slot_event(sched, slot, EVENT_SLOT_READY);
	return true;
}

static void decide_failure(struct sched *sched, const struct slot *slot, const char *message)
{
	struct decision_record decision = { .kind = DECISION_FAIL,
		                            .tenant_id = slot->model->r.tenant_id,
		                            .model_id = slot->r.model_id,
		                            .slot_id = slot->r.id,
		                            .until_ms = slot->model->r.not_before_ms,
		                            .message = message };

	sched_decide(sched, &decision);
}

bool slot_exited(struct sched *sched, struct slot *slot, const char *message, bool released,
                 struct error *error)
{
	enum slot_state state = (enum slot_state)slot->r.state;

	if (state == SLOT_WAITING || state == SLOT_PLACED)
		return error_set(error, ERROR_CONFLICT, "slot %lld was never started",
		                 (long long)slot->r.id);
	if (state != SLOT_STOPPING) {
		const char *reason = message && *message ? message : "its server ended";
		model_failed(sched, slot->model, reason);
		decide_failure(sched, slot, reason);
		slot->reservation->ending = RUN_FAILED;
		retire(sched, slot, "its slot ended");
	}
	return !released || slot_released(sched, slot, error);
}

bool slot_released(struct sched *sched, struct slot *slot, struct error *error)
{
	if (slot->r.state != SLOT_STOPPING)
		return error_set(error, ERROR_CONFLICT, "slot %lld has not been told to stop",
		                 (long long)slot->r.id);
	slot_leave(sched, slot);
	return true;
}

void slot_node_changed(struct sched *sched, struct node *node)
{
	for (int i = node->reservation_count; i-- > 0;) {
		struct slot *slot = node->reservations[i]->slot;
		if (!slot)
			continue;
		slot_settle(sched, slot);
		route_serve(sched, slot->model);
		replica_list(sched, slot->model);
	}
	slot_stop_drained(sched, node);
	slot_load_next(sched, node);
}

/* It stops as soon as it has no requests. */
static bool slot_is_to_go(const struct slot *slot)
{
	return slot->reservation->node->r.draining || slot->r.evicted;
}

/* Routers may have requests there that they have not told since they were reset. */
static bool slot_is_held(const struct sched *sched, const struct slot *slot)
{
	return slot->r.state == SLOT_READY && slot->r.held_ms > sched_now(sched);
}

/* Stopping one may end others' wait, so the walk starts over. */
void slot_stop_drained(struct sched *sched, struct node *node)
{
	int at = 0;

	while (at < node->reservation_count) {
		struct slot *slot = node->reservations[at]->slot;
		at++;
		if (!slot || !slot_is_to_go(slot) || slot->active > 0 ||
		    slot->r.state == SLOT_STOPPING || slot_is_held(sched, slot))
			continue;
		slot_stop(sched, slot, false);
		at = 0;
	}
}

static void time_out(struct sched *sched, struct slot *slot, const char *what)
{
	struct buffer message = { 0 };

	buffer_print(&message, "%s took longer than %lld s", what,
	             (long long)(slot->model->r.load_timeout_ms / 1000));
	model_failed(sched, slot->model, message.data);
	decide_failure(sched, slot, message.data);
	slot->reservation->ending = RUN_FAILED;
	slot_stop(sched, slot, false);
	buffer_free(&message);
}

/* Others need not wait for it any longer; it continues to load. */
static void slot_overdue(struct sched *sched, struct slot *slot)
{
	count_loading(slot, -1);
	slot->r.overdue_ms = 0;
	sched_dirty_slot(sched, slot);
	slot_settle(sched, slot);
	slot_load_next(sched, slot->reservation->node);
}

/* Told to sleep or to wake, and it is not known to have done so. */
static bool slot_is_moving(const struct slot *slot)
{
	return slot->linked &&
	       (slot->r.state == SLOT_SLEEPING ||
	        (slot->r.state == SLOT_WAKING && slot->reservation->phase == PHASE_RESUMING));
}

static int64_t load_ends_ms(const struct slot *slot)
{
	return slot->r.ordered_ms + slot->model->r.load_timeout_ms;
}

/* When it may be cold if it is not used until then. */
static int64_t cold_at_ms(const struct slot *slot)
{
	return max64(slot->r.used_ms + slot->model->r.idle_ttl_ms, slot->r.held_ms);
}

/* When it is to be looked at again. One that is to go stops when it is held no more. */
static int64_t ready_timer_ms(const struct sched *sched, const struct slot *slot)
{
	int64_t now_ms = sched_now(sched);

	if (slot->active == 0 && slot_is_to_go(slot))
		return slot->r.held_ms;
	/* One that is busy cannot be cold before it was idle for that long. */
	return slot->active > 0 ? now_ms + slot->model->r.idle_ttl_ms
	                        : max64(cold_at_ms(slot), now_ms);
}

void slot_timer(struct sched *sched, struct slot *slot)
{
	int64_t now_ms = sched_now(sched);

	INVARIANT(slot->linked && !sched->plan.open);
	if (slot->r.state == SLOT_LOADING) {
		if (load_ends_ms(slot) <= now_ms)
			time_out(sched, slot, "loading");
		else
			slot_overdue(sched, slot);
		return;
	}
	if (slot_is_moving(slot)) {
		time_out(sched, slot, slot->r.state == SLOT_WAKING ? "waking" : "going to sleep");
		return;
	}
	INVARIANT(slot->r.state == SLOT_READY && !slot->cold);
	if (slot->active == 0 && slot_is_to_go(slot) && !slot_is_held(sched, slot)) {
		slot_stop(sched, slot, false);
		return;
	}
	if (slot->active == 0 && cold_at_ms(slot) <= now_ms) {
		slot->cold = true;
		evict_list(sched, slot);
		return;
	}
	slot->timer_ms = ready_timer_ms(sched, slot);
	heap_push(&sched->slot_timers, slot);
}

static void set_timer(struct sched *sched, struct slot *slot)
{
	if (heap_has(&sched->slot_timers, slot))
		heap_remove(&sched->slot_timers, slot);
	slot->timer_ms = INT64_MAX;
	slot->cold = false;
	if (slot->linked && slot->r.state == SLOT_LOADING)
		slot->timer_ms = slot_holds_up(slot) ? min64(slot->r.overdue_ms, load_ends_ms(slot))
		                                     : load_ends_ms(slot);
	if (slot_is_moving(slot))
		slot->timer_ms = load_ends_ms(slot);
	if (slot->linked && slot->r.state == SLOT_READY) {
		slot->cold = slot->active == 0 && !slot_is_to_go(slot) &&
		             cold_at_ms(slot) <= sched_now(sched);
		if (!slot->cold)
			slot->timer_ms = ready_timer_ms(sched, slot);
	}
	if (slot->timer_ms != INT64_MAX)
		heap_push(&sched->slot_timers, slot);
}

static void set_rival(struct slot *slot, bool rival)
{
	struct node *node = slot->reservation->node;

	if (rival == (slot->rival_index >= 0))
		return;
	if (rival) {
		size_t capacity = (size_t)node->rival_capacity;
		array_reserve(node->rivals, capacity, (size_t)node->rival_count + 1);
		node->rival_capacity = (int)capacity;
		slot->rival_index = node->rival_count;
		node->rivals[node->rival_count++] = slot;
		return;
	}
	struct slot *last = node->rivals[--node->rival_count];
	node->rivals[slot->rival_index] = last;
	last->rival_index = slot->rival_index;
	slot->rival_index = -1;
}

/* Puts the slots of a model that has come to have many in order. */
static void order_open(struct model *model)
{
	heap_clear(&model->open);
	for (size_t i = 0; i < model->slot_count; i++) {
		struct slot *slot = model->slots[i];
		if (slot->routable && slot->active < slot->r.concurrency)
			heap_push(&model->open, slot);
	}
}

/* The order of a model's slots depends on their nodes, once it has to be kept. */
static void set_rivals(struct slot *slot, int32_t before)
{
	struct model *model = slot->model;
	bool rivals = model->counts.routable > ROUTE_SCAN;

	set_rival(slot, slot->routable && rivals);
	if ((before > ROUTE_SCAN) == rivals)
		return;
	for (size_t i = 0; i < model->slot_count; i++)
		set_rival(model->slots[i], model->slots[i]->routable && rivals);
	order_open(model);
}

static void set_routable(struct slot *slot)
{
	struct model *model = slot->model;
	const struct node *node = slot->reservation->node;
	bool routable = slot->linked && slot->r.state == SLOT_READY && slot->r.closing_for == 0 &&
	                !slot->r.evicted && node_is_open(node);
	bool leaving = slot->linked && slot_counts(slot) && (node->r.draining || slot->r.evicted);
	int32_t before = model->counts.routable;

	if (slot->routable != routable) {
		model->counts.routable += routable ? 1 : -1;
		model->capacity += routable ? slot->r.concurrency : -slot->r.concurrency;
		slot->routable = routable;
	}
	model->counts.leaving += (int)leaving - (int)slot->leaving;
	slot->leaving = leaving;
	set_rivals(slot, before);
}

void slot_settle(struct sched *sched, struct slot *slot)
{
	struct heap *open = &slot->model->open;
	bool was_leaving = slot->leaving;

	set_routable(slot);
	bool has_place = slot->routable && slot->active < slot->r.concurrency;
	if (heap_has(open, slot) && !has_place)
		heap_remove(open, slot);
	else if (heap_has(open, slot))
		heap_update(open, slot);
	else if (has_place)
		heap_push(open, slot);
	set_timer(sched, slot);
	evict_list(sched, slot);
	if (slot->leaving != was_leaving) /* it no longer counts for the minimum, or does again */
		evict_list_model(sched, slot->model);
}
