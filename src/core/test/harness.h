/* harness.h - a scheduler in a test: commands in few words, and what came of them */
#ifndef CORE_TEST_HARNESS_H
#define CORE_TEST_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/sched.h"
#include "core/state.h"

/* A core and the answers of well-behaved nodes: starts are acknowledged at
 * once; stops are remembered until the test confirms them. */
struct harness {
	struct sched *sched;
	struct effects effects;
	struct error error;
	int64_t now_ms;
	int64_t stopped[4096]; /* reservations told to stop and not confirmed */
	int stop_count;
	int starts; /* orders to start, ever */
	bool more;
	const struct decision_record *decisions[4096]; /* all of them, oldest first */
	int decision_count;
	struct arena arena; /* where the decisions live */
	/* Sees every command and, in `effects` or `error`, what came of it. */
	void (*watch)(struct harness *h, const struct command *command, bool applied);
	void *watcher;
};

static inline void keep_decisions(struct harness *h)
{
	for (size_t i = 0; i < h->effects.count; i++) {
		const struct effect *effect = &h->effects.at[i];
		if (effect->kind == EFFECT_PUT && effect->record_kind == RECORD_DECISION)
			h->decisions[h->decision_count++ % 4096] =
			    record_copy(&h->arena, RECORD_DECISION, effect->record);
	}
}

static inline bool harness_apply(struct harness *h, struct command command)
{
	command.now_ms = h->now_ms;
	effects_clear(&h->effects);
	bool applied = sched_apply(h->sched, &command, &h->effects, &h->error);
	sched_check(h->sched);
	keep_decisions(h);
	if (h->watch)
		h->watch(h, &command, applied);
	return applied;
}

static inline struct harness *harness_new(void)
{
	struct harness *h = NEW(struct harness);

	h->sched = sched_new();
	h->now_ms = 1000000;
	return h;
}

static inline void harness_free(struct harness *h)
{
	sched_free(h->sched);
	effects_free(&h->effects);
	arena_free(&h->arena);
	free(h);
}

static inline void must(const struct harness *h, bool applied)
{
	if (!applied)
		fail_msg("refused: %s", h->error.text);
}

/* The command was refused for this reason, and has no effects. */
static inline void must_not(const struct harness *h, bool applied, enum error_code code,
                            const char *words)
{
	assert_false(applied);
	assert_int_equal(h->error.code, code);
	if (!strstr(h->error.text, words))
		fail_msg("refused with '%s', not with '%s'", h->error.text, words);
	assert_int_equal(h->effects.count, 0);
}

static inline struct tenant_record tenant_named(const char *name)
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
		.priority = 500,
		.allow_preemption = true,
		.can_preempt_others = true,
		.max_preemptions = UNLIMITED,
		.queue_max = UNLIMITED,
		.budget_per_month = UNLIMITED,
	};
}

static inline int64_t put_tenant(struct harness *h, struct tenant_record tenant)
{
	must(h, harness_apply(h, (struct command){ .kind = COMMAND_PUT_TENANT, .tenant = tenant }));
	return h->effects.reply_id;
}

static inline void configure(struct harness *h, struct config_record config)
{
	must(h,
	     harness_apply(h, (struct command){ .kind = COMMAND_CONFIGURE, .configure = config }));
}

static inline struct device device_of(const char *uuid, int64_t place, int64_t capacity_mib)
{
	return (struct device){ .uuid = uuid,
		                .model = "H100",
		                .mig_parent = "",
		                .place = place,
		                .capacity_mib = capacity_mib,
		                .temperature_c = 40,
		                .healthy = true };
}

static inline struct node_report_command report_of(const char *name, const struct device *devices,
                                                   int64_t count)
{
	return (struct node_report_command){ .name = name,
		                             .boot = "b",
		                             .zone = "",
		                             .rack = "",
		                             .labels = "",
		                             .cpu_milli = 128000,
		                             .host_bytes = INT64_C(1) << 40,
		                             .devices = devices,
		                             .device_count = count };
}

static inline bool report(struct harness *h, struct node_report_command node)
{
	return harness_apply(h, (struct command){ .kind = COMMAND_NODE_REPORT, .report = node });
}

/* A node with `gpus` GPUs named NAME-gpu0 and so on. */
static inline void add_node(struct harness *h, const char *name, int gpus, int64_t capacity_mib)
{
	struct device devices[GPUS_PER_NODE_MAX];
	struct arena arena = { 0 };

	for (int i = 0; i < gpus; i++) {
		struct buffer uuid = { 0 };
		buffer_print(&uuid, "%s-gpu%d", name, i);
		devices[i] = device_of(arena_string(&arena, uuid.data), i, capacity_mib);
		buffer_free(&uuid);
	}
	must(h, report(h, report_of(name, devices, gpus)));
	arena_free(&arena);
}

static inline struct job_record job_of(int64_t tenant, enum gpu_kind kind, int32_t count)
{
	return (struct job_record){ .tenant_id = tenant,
		                    .name = "job",
		                    .payload = "",
		                    .gpu_kind = kind,
		                    .gpu_count = count,
		                    .gpu_models = "",
		                    .node_labels = "",
		                    .idempotency_key = "",
		                    .preemptible = true };
}

static inline struct job_record whole(int64_t tenant, int32_t count)
{
	return job_of(tenant, GPU_WHOLE, count);
}

static inline struct job_record memory(int64_t tenant, int64_t mib)
{
	struct job_record job = job_of(tenant, GPU_MEMORY, 1);

	job.memory_mib = mib;
	return job;
}

static inline struct job_record fraction(int64_t tenant, int32_t thousandths)
{
	struct job_record job = job_of(tenant, GPU_FRACTION, 1);

	job.fraction = thousandths;
	return job;
}

static inline bool try_submit(struct harness *h, struct job_record job)
{
	return harness_apply(h,
	                     (struct command){ .kind = COMMAND_SUBMIT, .submit = { .job = job } });
}

static inline int64_t submit(struct harness *h, struct job_record job)
{
	must(h, try_submit(h, job));
	return h->effects.reply_id;
}

static inline bool to_task(struct harness *h, enum command_kind kind, int64_t reservation_id,
                           int64_t exit_code, bool released)
{
	struct command command = { .kind = kind };

	command.task.reservation_id = reservation_id;
	command.task.exit_code = exit_code;
	command.task.released = released;
	command.task.message = "";
	return harness_apply(h, command);
}

/* Notes orders to stop, and returns those to start in `started`. */
static inline int read_orders(struct harness *h, int64_t *started)
{
	int count = 0;

	for (size_t i = 0; i < h->effects.count; i++) {
		const struct effect *effect = &h->effects.at[i];
		if (effect->kind == EFFECT_START)
			started[count++] = effect->order.reservation_id;
		if (effect->kind == EFFECT_STOP)
			h->stopped[h->stop_count++] = effect->order.reservation_id;
		h->more = h->more || effect->kind == EFFECT_MORE;
	}
	h->starts += count;
	return count;
}

/* The last decision of this kind about the job (0: about any), or NULL. */
static inline const struct decision_record *decided(const struct harness *h,
                                                    enum decision_kind kind, int64_t job_id)
{
	for (int i = h->decision_count - 1; i >= 0 && i > h->decision_count - 4096; i--)
		if ((enum decision_kind)h->decisions[i % 4096]->kind == kind &&
		    (job_id == 0 || h->decisions[i % 4096]->job_id == job_id))
			return h->decisions[i % 4096];
	return NULL;
}

/* One pass, and what it started runs. */
static inline int pass(struct harness *h)
{
	int64_t started[4096];

	h->more = false;
	must(h, harness_apply(h, (struct command){ .kind = COMMAND_PASS, .units = INT64_MAX }));
	int count = read_orders(h, started);
	for (int i = 0; i < count; i++)
		must(h, to_task(h, COMMAND_TASK_STARTED, started[i], 0, false));
	return count;
}

/* Nodes confirm everything that they were told to stop. */
static inline void confirm_stops(struct harness *h)
{
	for (int i = 0; i < h->stop_count; i++)
		if (map_get(&h->sched->reservations, h->stopped[i]))
			must(h, to_task(h, COMMAND_MEMORY_RELEASED, h->stopped[i], 0, false));
	h->stop_count = 0;
}

static inline void time_passes(struct harness *h, int64_t ms)
{
	h->now_ms += ms;
	must(h, harness_apply(h, (struct command){ .kind = COMMAND_TIME }));
}

static inline struct job *job(const struct harness *h, int64_t id)
{
	return map_get(&h->sched->jobs, id);
}

static inline enum job_state state(const struct harness *h, int64_t id)
{
	return (enum job_state)job(h, id)->s.state;
}

static inline bool cancel(struct harness *h, int64_t id)
{
	int64_t started[16];
	bool applied = harness_apply(h, (struct command){ .kind = COMMAND_CANCEL, .id = id });

	if (applied)
		read_orders(h, started);
	return applied;
}

/* All tasks of the job end with this code, and their memory comes back. */
static inline void end_job(struct harness *h, int64_t id, int64_t exit_code)
{
	int64_t started[16];

	for (int i = 0; job(h, id) && i < job(h, id)->r.tasks; i++) {
		struct reservation *reservation = job(h, id)->tasks[i].reservation;
		if (reservation && reservation->phase != PHASE_RELEASING) {
			must(h, to_task(h, COMMAND_TASK_EXITED, reservation->id, exit_code, true));
			read_orders(h, started);
		}
	}
}

/* HOLD, RELEASE, REQUEUE, DELETE_TENANT: orders to stop are remembered. */
static inline bool apply_to(struct harness *h, enum command_kind kind, int64_t id)
{
	int64_t started[16];
	bool applied = harness_apply(h, (struct command){ .kind = kind, .id = id });

	if (applied)
		read_orders(h, started);
	return applied;
}

static inline bool reprioritise(struct harness *h, int64_t id, int64_t priority)
{
	return harness_apply(
	    h, (struct command){ .kind = COMMAND_REPRIORITISE, .reprioritise = { id, priority } });
}

static inline void set_node_state(struct harness *h, const char *name, enum node_state to)
{
	must(h, harness_apply(
		    h, (struct command){ .kind = COMMAND_NODE_STATE, .node_state = { name, to } }));
}

static inline void drain(struct harness *h, const char *name, bool draining)
{
	must(h, harness_apply(h, (struct command){ .kind = COMMAND_NODE_DRAIN,
	                                           .drain = { name, draining, NULL } }));
}

/* NODE_DEAD, NODE_REMOVE. */
static inline bool apply_to_node(struct harness *h, enum command_kind kind, const char *name)
{
	return harness_apply(h, (struct command){ .kind = kind, .node = name });
}

static inline void report_gpu(struct harness *h, const char *uuid, int64_t foreign_mib,
                              int64_t temperature_c, bool healthy)
{
	must(h, harness_apply(h, (struct command){ .kind = COMMAND_GPU_REPORT,
	                                           .gpu = { .uuid = uuid,
	                                                    .foreign_mib = foreign_mib,
	                                                    .temperature_c = temperature_c,
	                                                    .healthy = healthy } }));
}

/* The reservation that the job's task runs under, or is stopping under; 0: none. */
static inline int64_t right_of(const struct harness *h, int64_t id, int task)
{
	const struct reservation *reservation = job(h, id)->tasks[task].reservation;

	return reservation ? reservation->id : 0;
}

/* How many tasks of the job are held or live. */
static inline int placed(const struct harness *h, int64_t id)
{
	return job(h, id)->counts.granted + job(h, id)->counts.live;
}

static inline bool has_claim(const struct harness *h, int64_t id)
{
	return job(h, id)->counts.claims > 0;
}

/* How many effects of this kind the last command had. */
static inline int effects_of(const struct harness *h, enum effect_kind kind)
{
	int count = 0;

	for (size_t i = 0; i < h->effects.count; i++)
		count += h->effects.at[i].kind == kind;
	return count;
}

static inline struct gpu *gpu(const struct harness *h, const char *uuid)
{
	return cluster_gpu(&h->sched->cluster, uuid);
}

/* Where the job's first task is, or NULL. */
static inline const char *node_of(const struct harness *h, int64_t id)
{
	const struct reservation *reservation = job(h, id)->tasks[0].reservation;

	return reservation ? reservation->node->r.name : NULL;
}

/* What `why` says about the job, valid until the next call. */
static inline const char *why(struct harness *h, int64_t id)
{
	static struct buffer text;

	buffer_clear(&text);
	buffer_text(&text, "");
	must(h, sched_why(h->sched, id, 0, &text, &h->error));
	return text.data;
}

#endif
