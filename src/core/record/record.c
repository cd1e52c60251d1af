/* record.c - the descriptions of all kinds of records, and the settings to start with */
#include "core/record/record.h"
#include "core/record/heat.h"

#include <string.h>

#include "core/record/config_range.h"

/* The members of each struct in their order, keys first. */
/* clang-format off */
#define META_FIELDS(F, T)                                                                          \
	F(T, id) F(T, now_ms) F(T, term) F(T, last_tenant_id) F(T, last_node_id) F(T, last_gpu_id) \
	F(T, last_job_id) F(T, last_reservation_id) F(T, last_decision_id) F(T, last_model_id)     \
	F(T, last_start) F(T, last_event) F(T, timed_ms) F(T, promise_after_ms) F(T, last_run_id) \
	F(T, last_class_id) F(T, last_guest_id) F(T, last_window_id) F(T, quotas_ms)

#define CONFIG_FIELDS(F, T)                                                                        \
	F(T, id) F(T, policy, .words = &policy_words) F(T, enable_preemption) F(T, enable_gangs)   \
	F(T, enable_thermal) F(T, enable_consolidation) F(T, enable_backfill) F(T, move_any_job)   \
	F(T, queue_max) F(T, tenant_queue_max) F(T, default_priority) F(T, ageing_per_minute)      \
	F(T, ageing_cap) F(T, thermal_threshold_c) F(T, thermal_resume_c)                          \
	F(T, usage_half_life_ms) F(T, usage_influence) F(T, min_runtime_ms)                        \
	F(T, release_timeout_ms) F(T, gang_grace_ms) F(T, refuse_backoff_ms) F(T, grace_ms)        \
	F(T, retention_ms) F(T, predict_jobs) F(T, predict_experts) F(T, promise_jobs) F(T, promise_gpus) F(T, foreign_tolerance_mib)       \
	F(T, search_pause_us) F(T, search_width)                                                   \
	F(T, time_sharing, .words = &time_sharing_words) F(T, sharing_wait_ms)                     \
	F(T, sharing_turn_ms) F(T, sharing_delay_ms) F(T, lease_ms) F(T, foreign_requeues)         \
	F(T, loads_per_gpu) F(T, request_goal_ms) F(T, turn_wait_ms) F(T, slot_stay_ms) F(T, loading)                    \
	F(T, suspend, .words = &suspend_words) F(T, suspend_host) F(T, suspend_wait_ms) \
	F(T, deadline_risk) F(T, deadline_first) \
	F(T, sharing_compute, .words = &sharing_compute_words) F(T, sharing_mixed) \
	F(T, quota_follow_ms)

#define TENANT_FIELDS(F, T)                                                                        \
	F(T, id) F(T, parent_id) F(T, name) F(T, payload) F(T, limit_gpu) F(T, limit_cpu)          \
	F(T, limit_host)                                                                           \
	F(T, limit_gpu_memory) F(T, limit_jobs) F(T, quota_gpu) F(T, quota_cpu) F(T, quota_host)   \
	F(T, quota_gpu_least) F(T, quota_gpu_most) F(T, weight) F(T, priority) F(T, allow_preemption) F(T, can_preempt_others)                \
	F(T, max_preemptions) F(T, queue_max) F(T, cost_per_gpu_hour) F(T, budget_per_month)  \
	F(T, requests_per_minute) F(T, tokens_per_minute) F(T, max_streams)       \
	F(T, metered_ms) F(T, usage_gpu) F(T, usage_cpu) F(T, usage_host) F(T, gpu_ms) F(T, cost)  \
	F(T, month) F(T, month_cost) F(T, token_cost) F(T, token_credit) \
	F(T, jobs_completed) F(T, jobs_failed) F(T, jobs_cancelled)

#define NODE_FIELDS(F, T)                                                                          \
	F(T, id) F(T, name) F(T, boot) F(T, zone) F(T, rack) F(T, labels) F(T, cpu_milli)          \
	F(T, host_bytes) F(T, state, .words = &node_state_words) F(T, draining) F(T, reported)  \
	F(T, resources) F(T, taken) F(T, taken_cpu_milli) F(T, taken_host_bytes)                   \
	F(T, suspend_ms) F(T, resume_ms) F(T, drain_reason)

#define GPU_FIELDS(F, T)                                                                           \
	F(T, id) F(T, node_id) F(T, uuid) F(T, model) F(T, mig_parent) F(T, place)                 \
	F(T, capacity_mib) F(T, overhead_mib) F(T, foreign_mib) F(T, temperature_c)                \
	F(T, slowdown_c) F(T, nvlink_group) F(T, aliases) F(T, hot) F(T, healthy) F(T, mig_mode) F(T, present) \
	F(T, loading_ms) F(T, paid_ms) F(T, unexplained_mib)

#define JOB_FIELDS(F, T)                                                                           \
	F(T, id) F(T, tenant_id) F(T, name) F(T, payload) F(T, priority)                           \
	F(T, gpu_kind, .words = &gpu_kind_words) F(T, gpu_count) F(T, fraction) F(T, memory_mib)   \
	F(T, cpu_milli) F(T, host_bytes) F(T, uneven, .width = 1) F(T, tasks) F(T, min_available)  \
	F(T, split_gpus) F(T, preemptible) F(T, movable) F(T, gpu_models) F(T, node_labels)        \
	F(T, resources) F(T, rules) F(T, marks) F(T, node_class) F(T, window)                      \
	F(T, closeness, .words = &closeness_words) F(T, closeness_required)                        \
	F(T, lease_loss, .words = &lease_loss_words) F(T, max_runtime_ms) F(T, deadline_ms)        \
	F(T, estimate_ms)                                                                          \
	F(T, depends, .width = 2) F(T, depends_arrays, .width = 3) F(T, begin_ms)                  \
	F(T, array_id) F(T, array_index) F(T, array_limit)               \
	F(T, array_first) F(T, array_last) F(T, array_count)                                       \
	F(T, idempotency_key) F(T, user) F(T, submitted_ms) F(T, request_hash)          \
	F(T, suspend, .words = &suspend_words) F(T, program) F(T, compute) F(T, compute_processes)

#define JOB_STATE_FIELDS(F, T)                                                                     \
	F(T, id) F(T, state, .words = &job_state_words) F(T, held) F(T, queued_ms)                 \
	F(T, not_before_ms) F(T, refusals) F(T, expected_ms) F(T, expected_p90_ms) F(T, confidence)   \
	F(T, guess) F(T, start)                                                                    \
	F(T, started_ms) F(T, checkpoint_ms) F(T, completed_ms) F(T, short_since_ms)               \
	F(T, preempted_count) F(T, served_ms) F(T, exit_code) F(T, message)                        \
	F(T, foreign_requeues) F(T, suspended_ms) F(T, paused_ms) F(T, suspends) F(T, parked)   \
	F(T, promised_ms) F(T, likely_ms) F(T, promise_made_ms) F(T, deadline_risk) F(T, look_ms) F(T, urgent_ms)

#define TASK_FIELDS(F, T)                                                                          \
	F(T, job_id) F(T, place) F(T, state, .words = &task_state_words) F(T, reservation_id)      \
	F(T, claim_id) F(T, started_ms) F(T, ended_ms) F(T, exit_code) F(T, peak_mib)              \
	F(T, gpu_ms) F(T, energy_mj) F(T, host_peak_bytes) F(T, cpu_ms) F(T, limit_mib)            \
	F(T, guard_peak_mib) F(T, refusals) F(T, refused_mib) F(T, unguarded)

#define MODEL_FIELDS(F, T)                                                                         \
	F(T, id) F(T, tenant_id) F(T, name) F(T, runtime, .words = &runtime_words) F(T, command)   \
	F(T, payload) F(T, memory_mib) F(T, splits, .width = MODEL_SPLIT_WIDTH) F(T, uneven)       \
	F(T, cpu_milli) F(T, host_bytes) F(T, context) F(T, parallel) F(T, kv_cache)               \
	F(T, concurrency) F(T, min_replicas) F(T, max_replicas) F(T, prewarm) F(T, pinned)         \
	F(T, idle_ttl_ms) F(T, load_timeout_ms) F(T, priority) F(T, shared) F(T, users, .width = 1) \
	F(T, policy, .words = &slot_policy_words) F(T, sleep, .words = &model_sleep_words) F(T, gpu_models) F(T, node_labels) \
	F(T, price_input) F(T, price_cached) F(T, price_output) F(T, queue_timeout_ms)  \
	F(T, keep_alive, .words = &keep_alive_words) F(T, removed)  \
	F(T, load_ms) F(T, wake_ms) F(T, sleep_residue_mib) F(T, sleep_host_bytes) F(T, failures) F(T, failed_ms) F(T, not_before_ms) F(T, message)

#define SLOT_FIELDS(F, T)                                                                          \
	F(T, id) F(T, model_id) F(T, state, .words = &slot_state_words) F(T, address)              \
	F(T, concurrency) F(T, fixed) F(T, adopted) F(T, ordered_ms) F(T, ready_ms) F(T, used_ms)     \
	F(T, held_ms) F(T, overdue_ms) F(T, closing_for) F(T, evicted)         \
	F(T, sleep, .words = &model_sleep_words) F(T, sleepless)

#define RESERVATION_FIELDS(F, T)                                                                   \
	F(T, id) F(T, job_id) F(T, task) F(T, model_id) F(T, node_id) F(T, phase, .words = &phase_words)          \
	F(T, late) F(T, requeue) F(T, cpu_milli) F(T, host_bytes) F(T, since_ms)                   \
	F(T, parts, .width = PART_WIDTH) F(T, counted_ms) F(T, started_ms)                         \
	F(T, ending, .words = &run_ending_words) F(T, run_id) F(T, saved_ms) F(T, away)            \
	F(T, copy_bytes) F(T, ended_ms) F(T, residue_mib)

#define RUN_FIELDS(F, T)                                                                           \
	F(T, id) F(T, tenant_id) F(T, job_id) F(T, task) F(T, model_id) F(T, reservation_id)       \
	F(T, node_id) F(T, share) F(T, memory_mib) F(T, cpu_milli) F(T, began_ms) F(T, started_ms) \
	F(T, ended_ms) F(T, ending, .words = &run_ending_words) F(T, exit_code) F(T, peak_mib)     \
	F(T, energy_mj) F(T, saved_ms)

#define PRICE_FIELDS(F, T) F(T, tenant_id) F(T, since_ms) F(T, cost_per_gpu_hour)

#define PROMISE_FIELDS(F, T)                                                                       \
	F(T, job_id) F(T, start_ms) F(T, made_ms) F(T, instead) F(T, wait_gpu_ms)                  \
	F(T, lost_gpu_ms) F(T, parts, .width = PROMISE_WIDTH)

#define GUESS_FIELDS(F, T)                                                                         \
	F(T, id) F(T, key) F(T, voices) F(T, after) F(T, p50_ms) F(T, p90_ms) F(T, confidence)     \
	F(T, samples) F(T, basis)

#define OUTCOME_FIELDS(F, T)                                                                       \
	F(T, id) F(T, segment) F(T, closes) F(T, tenant_id) F(T, user) F(T, tenant) F(T, name)     \
	F(T, pattern) F(T, size) F(T, limit_ms) F(T, took_ms) F(T, ended_ms) F(T, peers)           \
	F(T, experts) F(T, basis) F(T, p50_ms) F(T, p90_ms) F(T, voices)

#define BACKOFF_FIELDS(F, T) F(T, id) F(T, until_ms) F(T, victims) F(T, priority)

#define MIX_FIELDS(F, T)                                                                           \
	F(T, id) F(T, fixed) F(T, arrivals) F(T, derived_at) F(T, seen, .width = MIX_WIDTH)        \
	F(T, classes, .width = MIX_WIDTH) F(T, asked_milli) F(T, insisted)                         \
	F(T, insisted_milli, .width = 1)

#define NODE_CLASS_FIELDS(F, T) F(T, id) F(T, name) F(T, nodes)

#define GUEST_FIELDS(F, T) F(T, id) F(T, node_id) F(T, name) F(T, marks) F(T, rules) F(T, ending)

#define TRIAL_FIELDS(F, T) F(T, id) F(T, program) F(T, gpu_model) F(T, done) F(T, lost)

#define ACCURACY_FIELDS(F, T) F(T, id) F(T, jobs) F(T, within_p90) F(T, within_twice)

#define MARGIN_FIELDS(F, T) F(T, id) F(T, margin) F(T, promised) F(T, kept) F(T, likely)

#define WINDOW_FIELDS(F, T)                                                                        \
	F(T, id) F(T, name) F(T, reason) F(T, user) F(T, maintenance) F(T, tenant_id)              \
	F(T, start_ms) F(T, length_ms) F(T, repeat, .words = &window_repeat_words) F(T, nodes)     \
	F(T, gpus) F(T, lead_ms) F(T, evict) F(T, grace_ms) F(T, made_ms) F(T, open)

#define DECISION_FIELDS(F, T)                                                                      \
	F(T, id) F(T, time_ms) F(T, kind, .words = &decision_words) F(T, job_id) F(T, tenant_id)   \
	F(T, tasks) F(T, for_job_id) F(T, model_id) F(T, slot_id) F(T, for_model_id) F(T, score) F(T, premium_milli) F(T, candidates) F(T, until_ms)                   \
	F(T, wait_gpu_ms) F(T, lost_gpu_ms) F(T, gpus, .width = LINE_WIDTH) F(T, unexplained, .width = 1) \
	F(T, victims, .width = VICTIM_WIDTH) F(T, refusals, .width = REFUSAL_WIDTH)          \
	F(T, evicted, .width = EVICTED_WIDTH) F(T, message)
/* clang-format on */

const struct record_type record_types[RECORD_KINDS] = {
	[RECORD_META] = RECORD_TYPE("meta", 1, struct meta_record, META_FIELDS),
	[RECORD_CONFIG] = RECORD_TYPE("config", 1, struct config_record, CONFIG_FIELDS),
	[RECORD_TENANT] = RECORD_TYPE("tenant", 1, struct tenant_record, TENANT_FIELDS),
	[RECORD_NODE] = RECORD_TYPE("node", 1, struct node_record, NODE_FIELDS),
	[RECORD_GPU] = RECORD_TYPE("gpu", 1, struct gpu_record, GPU_FIELDS),
	[RECORD_JOB] = RECORD_TYPE("job", 1, struct job_record, JOB_FIELDS),
	[RECORD_JOB_STATE] = RECORD_TYPE("job_state", 1, struct job_state_record, JOB_STATE_FIELDS),
	[RECORD_TASK] = RECORD_TYPE("task", 2, struct task_record, TASK_FIELDS),
	[RECORD_MODEL] = RECORD_TYPE("model", 1, struct model_record, MODEL_FIELDS),
	[RECORD_SLOT] = RECORD_TYPE("slot", 1, struct slot_record, SLOT_FIELDS),
	[RECORD_RESERVATION] =
	    RECORD_TYPE("reservation", 1, struct reservation_record, RESERVATION_FIELDS),
	[RECORD_PROMISE] = RECORD_TYPE("promise", 1, struct promise_record, PROMISE_FIELDS),
	[RECORD_GUESS] = RECORD_TYPE("guess", 1, struct guess_record, GUESS_FIELDS),
	[RECORD_OUTCOME] = RECORD_TYPE("outcome", 1, struct outcome_record, OUTCOME_FIELDS),
	[RECORD_MIX] = RECORD_TYPE("mix", 1, struct mix_record, MIX_FIELDS),
	[RECORD_BACKOFF] = RECORD_TYPE("backoff", 1, struct backoff_record, BACKOFF_FIELDS),
	[RECORD_NODE_CLASS] =
	    RECORD_TYPE("node_class", 1, struct node_class_record, NODE_CLASS_FIELDS),
	[RECORD_GUEST] = RECORD_TYPE("guest", 1, struct guest_record, GUEST_FIELDS),
	[RECORD_TRIAL] = RECORD_TYPE("trial", 1, struct trial_record, TRIAL_FIELDS),
	[RECORD_MARGIN] = RECORD_TYPE("margin", 1, struct margin_record, MARGIN_FIELDS),
	[RECORD_ACCURACY] = RECORD_TYPE("accuracy", 1, struct accuracy_record, ACCURACY_FIELDS),
	[RECORD_WINDOW] = RECORD_TYPE("window", 1, struct window_record, WINDOW_FIELDS),
	[RECORD_DECISION] = RECORD_TYPE("decision", 1, struct decision_record, DECISION_FIELDS),
	[RECORD_RUN] = RECORD_TYPE("run", 1, struct run_record, RUN_FIELDS),
	[RECORD_PRICE] = RECORD_TYPE("price", 2, struct price_record, PRICE_FIELDS),
};

const struct record_type *record_type(enum record_kind kind)
{
	INVARIANT((unsigned)kind < RECORD_KINDS);
	return &record_types[kind];
}

struct record_key record_key(enum record_kind kind, const void *record)
{
	const struct record_type *type = record_type(kind);
	struct record_key key = { .first = field_number(&type->fields[0], record) };
	if (type->keys > 1)
		key.second = field_number(&type->fields[1], record);
	return key;
}

void *record_clone(enum record_kind kind, const void *record)
{
	return fields_clone(record_type(kind), record);
}

void *record_copy(struct arena *arena, enum record_kind kind, const void *record)
{
	return fields_copy(arena, record_type(kind), record);
}

void record_encode(struct buffer *buffer, enum record_kind kind, const void *record)
{
	fields_encode(buffer, record_type(kind), record);
}

void *record_decode(struct arena *arena, enum record_kind kind, const uint8_t **data,
                    const uint8_t *end, struct error *error)
{
	const struct record_type *type = record_type(kind);
	void *record = arena_alloc(arena, type->size);
	memset(record, 0, type->size);
	return fields_decode(arena, type, record, data, end, error) ? record : NULL;
}

bool record_equal(enum record_kind kind, const void *a, const void *b)
{
	return fields_equal(record_type(kind), a, b);
}

void record_print(struct buffer *buffer, enum record_kind kind, const void *record)
{
	buffer_text(buffer, record_type(kind)->name);
	fields_print(buffer, record_type(kind), record);
}

#define SECOND_MS INT64_C(1000)
#define HOUR_MS (3600 * SECOND_MS)

struct config_record config_default(void)
{
	return (struct config_record){
		.id = 1,
		.policy = POLICY_DEFAULT,
		.enable_preemption = true,
		.enable_gangs = true,
		.enable_thermal = true,
		.enable_consolidation = true,
		.enable_backfill = true,
		.move_any_job = false,
		.queue_max = 2000000,
		.tenant_queue_max = UNLIMITED,
		.default_priority = RANGE_DEFAULT(RANGE_DEFAULT_PRIORITY),
		.ageing_per_minute = RANGE_DEFAULT(RANGE_AGEING_PER_MINUTE),
		.ageing_cap = RANGE_DEFAULT(RANGE_AGEING_CAP),
		.usage_half_life_ms = RANGE_DEFAULT(RANGE_USAGE_HALF_LIFE_HOURS) * HOUR_MS,
		.usage_influence = 500,
		.min_runtime_ms = RANGE_DEFAULT(RANGE_MIN_RUNTIME_MS),
		.release_timeout_ms = RANGE_DEFAULT(RANGE_RELEASE_TIMEOUT_MS),
		.gang_grace_ms = RANGE_DEFAULT(RANGE_GANG_GRACE_MS),
		.refuse_backoff_ms = RANGE_DEFAULT(RANGE_REFUSE_BACKOFF_MS),
		.grace_ms = RANGE_DEFAULT(RANGE_GRACE_MS),
		.retention_ms = RANGE_DEFAULT(RANGE_RETENTION_MS),
		.predict_jobs = RANGE_DEFAULT(RANGE_PREDICT_JOBS),
		.predict_experts = RANGE_DEFAULT(RANGE_PREDICT_EXPERTS),
		.promise_jobs = RANGE_DEFAULT(RANGE_PROMISE_JOBS),
		.promise_gpus = RANGE_DEFAULT(RANGE_PROMISE_GPUS) * WHOLE_GPU,
		.foreign_tolerance_mib = RANGE_DEFAULT(RANGE_FOREIGN_TOLERANCE_MIB),
		.search_pause_us = RANGE_DEFAULT(RANGE_SEARCH_PAUSE_US),
		.search_width = RANGE_DEFAULT(RANGE_SEARCH_WIDTH),
		.time_sharing = SHARING_OFF,
		.sharing_wait_ms = RANGE_DEFAULT(RANGE_SHARING_WAIT_MS),
		.sharing_turn_ms = RANGE_DEFAULT(RANGE_SHARING_TURN_MS),
		.sharing_delay_ms = RANGE_DEFAULT(RANGE_SHARING_DELAY_MS),
		.lease_ms = RANGE_DEFAULT(RANGE_LEASE_MS),
		.loads_per_gpu = RANGE_DEFAULT(RANGE_LOADS_PER_GPU),
		.request_goal_ms = RANGE_DEFAULT(RANGE_REQUEST_GOAL_MS),
		.turn_wait_ms = RANGE_DEFAULT(RANGE_TURN_WAIT_MS),
		.slot_stay_ms = RANGE_DEFAULT(RANGE_SLOT_STAY_MS),
		.loading = 10 * RANGE_DEFAULT(RANGE_LOADING_PERCENT),
		.foreign_requeues = RANGE_DEFAULT(RANGE_FOREIGN_REQUEUES),
		.suspend = SUSPEND_AUTO,
		.suspend_host = 10 * RANGE_DEFAULT(RANGE_SUSPEND_HOST_PERCENT),
		.suspend_wait_ms = RANGE_DEFAULT(RANGE_SUSPEND_WAIT_MS),
		.deadline_risk = 10 * RANGE_DEFAULT(RANGE_DEADLINE_RISK_PERCENT),
	};
}

struct tenant_record tenant_default(const char *name)
{
	return (struct tenant_record){
		.name = name,
		.limit_gpu = UNLIMITED,
		.limit_cpu = UNLIMITED,
		.limit_host = UNLIMITED,
		.limit_gpu_memory = UNLIMITED,
		.limit_jobs = UNLIMITED,
		.quota_gpu = UNLIMITED,
		.quota_cpu = UNLIMITED,
		.quota_host = UNLIMITED,
		.weight = 1000,
		.max_preemptions = UNLIMITED,
		.queue_max = UNLIMITED,
		.budget_per_month = UNLIMITED,
	};
}

/* What a setting may be; no upper bound where `most` is UNLIMITED. */
struct range {
	const char *name;
	int64_t value, least, most;
};

static bool range_check(const struct range *range, struct error *error)
{
	if (range->value >= range->least && range->value <= range->most)
		return true;
	if (range->most == UNLIMITED)
		return error_set(error, ERROR_INVALID, "%s is %lld: set it to %lld or more",
		                 range->name, (long long)range->value, (long long)range->least);
	return error_set(error, ERROR_INVALID, "%s is %lld: set it to something from %lld to %lld",
	                 range->name, (long long)range->value, (long long)range->least,
	                 (long long)range->most);
}

#define RANGE(member, low, high)                                                                   \
	{                                                                                          \
		.name = #member, .value = config->member, .least = (low), .most = (high)           \
	}

#define RANGED_OF(member, low, high, otherwise) RANGE(member, low, high)
#define RANGED(member, range) RANGED_OF(member, range)

static bool ranges_check(const struct config_record *config, struct error *error)
{
	const struct range ranges[] = {
		RANGE(queue_max, 0, UNLIMITED),
		RANGE(tenant_queue_max, 0, UNLIMITED),
		RANGED(default_priority, RANGE_DEFAULT_PRIORITY),
		RANGED(ageing_per_minute, RANGE_AGEING_PER_MINUTE),
		RANGED(ageing_cap, RANGE_AGEING_CAP),
		RANGE(thermal_threshold_c, 0, HEAT_MOST_C),
		RANGE(thermal_resume_c, 0, HEAT_MOST_C),
		RANGE(usage_half_life_ms, 1, RANGE_MOST(RANGE_USAGE_HALF_LIFE_HOURS) * HOUR_MS),
		RANGE(usage_influence, 0, 1000),
		RANGED(min_runtime_ms, RANGE_MIN_RUNTIME_MS),
		RANGED(release_timeout_ms, RANGE_RELEASE_TIMEOUT_MS),
		RANGED(gang_grace_ms, RANGE_GANG_GRACE_MS),
		RANGED(refuse_backoff_ms, RANGE_REFUSE_BACKOFF_MS),
		RANGED(grace_ms, RANGE_GRACE_MS),
		RANGED(retention_ms, RANGE_RETENTION_MS),
		RANGED(predict_jobs, RANGE_PREDICT_JOBS),
		RANGED(predict_experts, RANGE_PREDICT_EXPERTS),
		RANGED(promise_jobs, RANGE_PROMISE_JOBS),
		RANGE(promise_gpus, 0, RANGE_MOST(RANGE_PROMISE_GPUS) * WHOLE_GPU),
		RANGED(foreign_tolerance_mib, RANGE_FOREIGN_TOLERANCE_MIB),
		RANGED(search_pause_us, RANGE_SEARCH_PAUSE_US),
		RANGED(search_width, RANGE_SEARCH_WIDTH),
		RANGED(sharing_wait_ms, RANGE_SHARING_WAIT_MS),
		RANGED(sharing_turn_ms, RANGE_SHARING_TURN_MS),
		RANGED(sharing_delay_ms, RANGE_SHARING_DELAY_MS),
		RANGED(lease_ms, RANGE_LEASE_MS),
		RANGED(loads_per_gpu, RANGE_LOADS_PER_GPU),
		RANGED(request_goal_ms, RANGE_REQUEST_GOAL_MS),
		RANGED(turn_wait_ms, RANGE_TURN_WAIT_MS),
		RANGED(slot_stay_ms, RANGE_SLOT_STAY_MS),
		RANGE(loading, 10, 10 * RANGE_MOST(RANGE_LOADING_PERCENT)),
		RANGED(foreign_requeues, RANGE_FOREIGN_REQUEUES),
		RANGE(suspend_host, 0, 10 * RANGE_MOST(RANGE_SUSPEND_HOST_PERCENT)),
		RANGED(suspend_wait_ms, RANGE_SUSPEND_WAIT_MS),
		RANGE(quota_follow_ms, 0, INT64_C(86400000) * RANGE_MOST(RANGE_QUOTA_FOLLOW_DAYS)),
		RANGE(deadline_risk, 0, 10 * RANGE_MOST(RANGE_DEADLINE_RISK_PERCENT)),
		RANGE(sharing_compute, COMPUTE_NONE, COMPUTE_MPS),
	};
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		if (!range_check(&ranges[i], error))
			return false;
	}
	return true;
}

static bool refuse_policy(int32_t policy, struct error *error)
{
	struct buffer rows = { 0 };

	for (int i = 0; i < POLICY_COUNT; i++)
		buffer_print(&rows, "%s%d (%s)",
		             i == 0                  ? ""
		             : i == POLICY_COUNT - 1 ? " or "
		                                     : ", ",
		             i, policy_row(i)->name);
	error_set(error, ERROR_INVALID, "policy is %d: set it to %s", policy, rows.data);
	buffer_free(&rows);
	return false;
}

bool config_check(const struct config_record *config, struct error *error)
{
	if (!word_of(&policy_words, config->policy))
		return refuse_policy(config->policy, error);
	if (!word_of(&time_sharing_words, config->time_sharing))
		return error_set(error, ERROR_INVALID,
		                 "time_sharing is %d: set it to 0 (off), 1 (attained_service) "
		                 "or 2 (predicted_service)",
		                 config->time_sharing);
	if (config->suspend < SUSPEND_AUTO || config->suspend > SUSPEND_NEVER)
		return error_set(error, ERROR_INVALID,
		                 "suspend is %d: set it to 0 (auto), 1 (always) or 2 (never)",
		                 config->suspend);
	if (!ranges_check(config, error))
		return false;
	if (config->time_sharing != SHARING_OFF && config->ageing_per_minute == 0)
		return error_set(error, ERROR_INVALID,
		                 "time_sharing is on and ageing_per_minute is 0: set it to at "
		                 "least 1, since waiting jobs take their turns by age");
	if (config->thermal_threshold_c > 0 &&
	    config->thermal_resume_c > config->thermal_threshold_c)
		return error_set(
		    error, ERROR_INVALID,
		    "thermal_resume_c is %lld: set it to at most thermal_threshold_c, %lld",
		    (long long)config->thermal_resume_c, (long long)config->thermal_threshold_c);
	return true;
}
