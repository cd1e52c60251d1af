/* jct_begin.c - the core of a run: settings, tenants and nodes */
#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "sim/trace/jct_run.h"

#define GPU_MIB INT64_C(32000)
#define SUSPEND_DELAY_MS INT64_C(300000)
#define SUSPEND_WAIT_MS INT64_C(10800000)
#define SUSPEND_GPU_MIB INT64_C(20480) /* what a job has on each GPU, where it is moved */

static void note_promise(struct jct *jct, const struct job_state_record *state)
{
	struct run_job *run = &jct->jobs[state->id - jct->first_id];

	if (state->promised_ms == 0 || state->started_ms > 0)
		return;
	run->promised_ms = state->promised_ms;
	run->likely_ms = state->likely_ms;
	run->told_ms = state->promise_made_ms;
}

bool jct_send(struct jct *jct, struct command *command, struct error *error)
{
	effects_clear(&jct->effects);
	command->now_ms = jct->now_ms;
	if (!sched_apply(jct->sched, command, &jct->effects, error))
		return false;
	for (size_t i = 0; i < jct->effects.count; i++) {
		const struct effect *effect = &jct->effects.at[i];
		if (effect->kind == EFFECT_PUT && effect->record_kind == RECORD_JOB_STATE)
			note_promise(jct, effect->record);
		jct->more = jct->more || effect->kind == EFFECT_MORE;
		if (effect->kind != EFFECT_START && effect->kind != EFFECT_STOP &&
		    effect->kind != EFFECT_SUSPEND && effect->kind != EFFECT_RESUME)
			continue;
		array_reserve(jct->told, jct->told_capacity, jct->told_count + 1);
		jct->told[jct->told_count++] =
		    (struct told){ effect->kind, effect->order.reservation_id, effect->order.job_id,
			           effect->order.task };
	}
	return true;
}

bool jct_shares(const struct jct *jct)
{
	enum jct_kind kind = jct->policy->kind;

	return jct_suspends(jct) || kind == JCT_ATTAINED || kind == JCT_ESTIMATE ||
	       kind == JCT_MOVES || kind == JCT_GITTINS || kind == JCT_PREDICTED;
}

static bool jct_configure(struct jct *jct, struct error *error)
{
	struct command command = { .kind = COMMAND_CONFIGURE };
	struct config_record config = config_default();

	if (jct->policy->kind == JCT_BACKFILL) {
		config.enable_preemption = config.enable_consolidation = false;
	} else if (jct_shares(jct)) {
		bool predicts =
		    jct->policy->kind == JCT_GITTINS || jct->policy->kind == JCT_PREDICTED;
		config.time_sharing =
		    predicts ? SHARING_PREDICTED_SERVICE : SHARING_ATTAINED_SERVICE;
		if (jct->policy->kind == JCT_GITTINS)
			config.sharing_wait_ms = RANGE_MOST(RANGE_SHARING_WAIT_MS);
		config.move_any_job = jct->policy->kind == JCT_MOVES || jct_suspends(jct);
		if (jct_suspends(jct)) {
			config.suspend = SUSPEND_ALWAYS;
			config.sharing_delay_ms = SUSPEND_DELAY_MS;
			config.suspend_wait_ms = SUSPEND_WAIT_MS;
		}
	} else {
		config.policy = POLICY_PACK;
		config.enable_preemption =
		    jct->policy->kind == JCT_LEVELS || jct->policy->kind == JCT_URGENT;
		config.enable_consolidation = false;
		config.enable_backfill = false;
		config.promise_jobs = 0;
	}
	if (jct->policy->kind == JCT_SHORTEST || jct->policy->kind == JCT_LEVELS)
		config.ageing_per_minute = 0;
	if (jct->world->unpredicted)
		config.predict_jobs = 0;
	command.configure = config;
	return jct_send(jct, &command, error);
}

/* With no quota, so that several share all of it evenly. */
static bool jct_put_tenant(struct jct *jct, const char *name, int64_t *tenant_id,
                           struct error *error)
{
	struct command command = { .kind = COMMAND_PUT_TENANT };

	command.tenant = tenant_default(name);
	command.tenant.quota_gpu = command.tenant.quota_cpu = command.tenant.quota_host = 0;
	command.tenant.can_preempt_others = true;
	bool fine = jct_send(jct, &command, error);
	*tenant_id = jct->effects.reply_id;
	return fine;
}

size_t jct_clusters(const struct philly *philly)
{
	return philly->cluster_count > 0 ? philly->cluster_count : 1;
}

static bool put_tenants(struct jct *jct, struct error *error)
{
	size_t count = jct_clusters(jct->philly);
	bool own = jct->world->tenants && jct->philly->cluster_count > 0;

	jct->tenant_ids = memory_zero(count, sizeof(*jct->tenant_ids));
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && !own)
			jct->tenant_ids[i] = jct->tenant_ids[0];
		else if (!jct_put_tenant(jct, own ? jct->philly->clusters[i] : "trace",
		                         &jct->tenant_ids[i], error))
			return false;
	}
	return true;
}

static bool jct_report_node(struct jct *jct, int64_t number, struct error *error)
{
	struct device devices[GPUS_PER_NODE_MAX];
	char uuids[GPUS_PER_NODE_MAX][48], name[32];

	snprintf(name, sizeof(name), "node-%04" PRId64, number);
	for (int64_t i = 0; i < jct->world->gpus; i++) {
		snprintf(uuids[i], sizeof(uuids[i]), "GPU-%" PRId64 "-%" PRId64, number, i);
		devices[i] =
		    (struct device){ .uuid = uuids[i],
			             .model = "GPU",
			             .mig_parent = "",
			             .place = i,
			             .capacity_mib = jct_suspends(jct) ? SUSPEND_GPU_MIB : GPU_MIB,
			             .healthy = true };
	}
	struct command command = { .kind = COMMAND_NODE_REPORT };
	command.report = (struct node_report_command){
		.name = name,
		.boot = "1",
		.zone = "",
		.rack = "",
		.labels = "",
		.cpu_milli = 64000,
		.host_bytes = INT64_C(1) << (jct_suspends(jct) ? 40 : 38),
		.devices = devices,
		.device_count = jct->world->gpus,
		.snapshot = true,
	};
	return jct_send(jct, &command, error);
}

bool jct_begin(struct jct *jct, struct error *error)
{
	struct command start = { .kind = COMMAND_START };

	jct->now_ms = jct->philly->jobs[0].submit_ms;
	jct->last_submit_ms = jct->philly->jobs[jct->philly->count - 1].submit_ms;
	jct->sched = sched_new();
	if (!jct_send(jct, &start, error) || !jct_configure(jct, error) || !put_tenants(jct, error))
		return false;
	jct->first_id = sched_meta(jct->sched)->last_job_id + 1;
	for (int64_t i = 0; i < jct->world->nodes; i++)
		if (!jct_report_node(jct, i, error))
			return false;
	return true;
}
