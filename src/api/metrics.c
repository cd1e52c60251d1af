/* metrics.c - GET /metrics: Prometheus text */
#include "api/metrics.h"

#include <inttypes.h>

#include "api/auth/failures.h"
#include "api/live/hub.h"
#include "api/notify/notify.h"
#include "api/read/gpu_books.h"
#include "api/service/misreports.h"
#include "api/service/service_state.h"
#include "api/service/traffic.h"

#define MIB_BYTES INT64_C(1048576)

/* A tenant that is told about, with what the core says. */
struct tenant_line {
	int64_t id;
	struct tenant_figures figures;
};

struct scrape {
	struct tenant_line *tenants;
	size_t tenant_count;
};

static void family(struct buffer *text, const char *name, const char *type, const char *help)
{
	buffer_print(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* With backslashes, quotes and newlines escaped, as a label's value has to be. */
static void put_label(struct buffer *text, const char *value)
{
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			buffer_bytes(text, "\\", 1);
		if (*value == '\n')
			buffer_bytes(text, "\\n", 2);
		else
			buffer_bytes(text, value, 1);
	}
}

static void put_milli(struct buffer *text, int64_t milli)
{
	buffer_print(text, "%" PRId64 ".%03" PRId64 "\n", milli / 1000, milli % 1000);
}

/* Jobs. */

static int64_t count_jobs(const struct call *call, const struct scrape *scrape, int state)
{
	const struct catalogue *catalogue = service_catalogue(call->service);
	struct catalogue_filter filter = { .state = state };
	int64_t archived, count = 0;
	if (roster_sees_all(&call->identity)) {
		count = catalogue_count(catalogue, &filter, &archived);
		return count + archived;
	}
	for (size_t i = 0; i < scrape->tenant_count; i++) {
		filter.tenant_id = scrape->tenants[i].id;
		count += catalogue_count(catalogue, &filter, &archived);
		count += archived;
	}
	return count;
}

static void put_jobs(struct call *call, const struct scrape *scrape)
{
	struct buffer *text = &call->body;
	family(text, "gpu_scheduler_jobs_total", "counter", "Jobs by the state that they are in.");
	for (int state = 0; state < job_state_words.count; state++)
		buffer_print(text, "gpu_scheduler_jobs_total{state=\"%s\"} %" PRId64 "\n",
		             job_state_words.at[state], count_jobs(call, scrape, state));
	family(text, "gpu_scheduler_queue_size", "gauge", "Jobs that wait.");
	buffer_print(text, "gpu_scheduler_queue_size %" PRId64 "\n",
	             count_jobs(call, scrape, JOB_PENDING));
}

/* Tenants. */

static void put_tenant_value(struct buffer *text, const struct catalogue *catalogue,
                             const char *name, int64_t id)
{
	const struct tenant_record *tenant = catalogue_get(catalogue, RECORD_TENANT, id, 0);
	buffer_print(text, "%s{tenant=\"", name);
	put_label(text, tenant ? tenant->name : "");
	buffer_text(text, "\"} ");
}

enum tenant_family {
	TENANT_GPUS,
	TENANT_FAIR,
	TENANT_QUOTA,
	TENANT_LIMIT,
	TENANT_RUNNING,
	TENANT_WAITING,
	TENANT_SECONDS,
	TENANT_COST,
	TENANT_FAMILIES,
};
static const struct {
	const char *name, *type, *help;
} tenant_families[TENANT_FAMILIES] = {
	{ "gpu_scheduler_tenant_gpus", "gauge", "GPUs that the tenant holds, with all below it." },
	{ "gpu_scheduler_tenant_fair_share_gpus", "gauge", "GPUs that are its fair share." },
	{ "gpu_scheduler_tenant_quota_gpus", "gauge", "GPUs that it is owed, where that is set." },
	{ "gpu_scheduler_tenant_limit_gpus", "gauge", "GPUs that it may hold, where that is set." },
	{ "gpu_scheduler_tenant_running_jobs", "gauge", "Jobs of it that hold something." },
	{ "gpu_scheduler_tenant_waiting_jobs", "gauge", "Jobs of it that wait." },
	{ "gpu_scheduler_tenant_gpu_seconds_total", "counter", "GPU time that it used." },
	{ "gpu_scheduler_tenant_cost_total", "counter", "What that cost." },
};

/* In thousandths; UNLIMITED or QUOTA_UNSET where there is nothing to tell. */
static int64_t tenant_value(enum tenant_family of, const struct tenant_line *line,
                            const struct tenant_record *tenant)
{
	const struct tenant_figures *figures = &line->figures;
	switch (of) {
	case TENANT_GPUS:
		return figures->allocated.of[AMOUNT_GPU];
	case TENANT_FAIR:
		return figures->fair[AMOUNT_GPU];
	case TENANT_QUOTA:
		return tenant->quota_gpu;
	case TENANT_LIMIT:
		return tenant->limit_gpu;
	case TENANT_RUNNING:
		return figures->allocated.of[AMOUNT_JOBS] * 1000;
	case TENANT_WAITING:
		return figures->waiting_jobs * 1000;
	case TENANT_SECONDS:
		return figures->gpu_ms / 1000;
	default:
		return figures->cost / 1000;
	}
}

static void put_tenants(struct call *call, const struct scrape *scrape)
{
	const struct catalogue *catalogue = service_catalogue(call->service);
	struct buffer *text = &call->body;
	for (enum tenant_family of = 0; of < TENANT_FAMILIES && scrape->tenant_count > 0; of++) {
		family(text, tenant_families[of].name, tenant_families[of].type,
		       tenant_families[of].help);
		for (size_t i = 0; i < scrape->tenant_count; i++) {
			const struct tenant_line *line = &scrape->tenants[i];
			const struct tenant_record *tenant =
			    catalogue_get(catalogue, RECORD_TENANT, line->id, 0);
			int64_t value = tenant ? tenant_value(of, line, tenant) : UNLIMITED;
			if (value == UNLIMITED || value == QUOTA_UNSET)
				continue;
			put_tenant_value(text, catalogue, tenant_families[of].name, line->id);
			put_milli(text, value);
		}
	}
}

/* GPUs. */

static void put_gpu_name(struct buffer *text, const char *name, const struct node_record *node,
                         const struct gpu_record *gpu)
{
	buffer_print(text, "%s{node=\"", name);
	put_label(text, node->name);
	buffer_text(text, "\",gpu=\"");
	put_label(text, gpu->uuid);
	buffer_text(text, "\"");
}

static void put_memory(struct buffer *text, const struct catalogue *catalogue,
                       const struct node_record *node, const struct gpu_record *gpu)
{
	struct gpu_books books = gpu_books(catalogue, gpu);
	const struct {
		const char *kind;
		int64_t mib;
	} kinds[] = { { "capacity", books.capacity },   { "reserved", books.reserved },
		      { "releasing", books.releasing }, { "foreign", books.foreign },
		      { "overhead", books.overhead },   { "claimed", books.claimed } };
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		put_gpu_name(text, "gpu_scheduler_gpu_memory_bytes", node, gpu);
		buffer_print(text, ",kind=\"%s\"} %" PRId64 "\n", kinds[i].kind,
		             kinds[i].mib * MIB_BYTES);
	}
}

enum sample_family {
	SAMPLE_UTILISATION,
	SAMPLE_TEMPERATURE,
	SAMPLE_POWER,
	SAMPLE_SM_ACTIVE,
	SAMPLE_DRAM_ACTIVE,
	SAMPLE_FAMILIES,
};
static const struct {
	const char *name, *help;
} sample_families[SAMPLE_FAMILIES] = {
	{ "gpu_scheduler_gpu_utilization", "How busy the GPU is, from 0 to 1." },
	{ "gpu_scheduler_gpu_temperature_celsius", "Temperature." },
	{ "gpu_scheduler_gpu_power_watts", "Power." },
	{ "gpu_scheduler_gpu_sm_active", "Time that multiprocessors are active, from 0 to 1." },
	{ "gpu_scheduler_gpu_dram_active", "Time that memory is active, from 0 to 1." },
};

/* Thousandths; negative: not known. */
static int64_t sample_value(const struct agents_sample *sample, enum sample_family of)
{
	switch (of) {
	case SAMPLE_UTILISATION:
		return sample->utilisation;
	case SAMPLE_TEMPERATURE:
		return sample->temperature_c * 1000;
	case SAMPLE_POWER:
		return sample->power_mw;
	case SAMPLE_SM_ACTIVE:
		return sample->sm_active;
	default:
		return sample->dram_active;
	}
}

static void put_sample(struct call *call, enum sample_family of, const struct node_record *node,
                       const struct gpu_record *gpu)
{
	struct agents_sample sample = { 0 };
	bool sampled = agents_sample(call->service->agents, gpu->uuid, &sample);
	if (!sampled && of >= SAMPLE_POWER)
		return;
	if (!sampled)
		sample.temperature_c = gpu->temperature_c;
	int64_t value = sample_value(&sample, of);
	if (value < 0)
		return;
	put_gpu_name(&call->body, sample_families[of].name, node, gpu);
	buffer_text(&call->body, "} ");
	put_milli(&call->body, value);
}

/* Calls back for each GPU that has memory of its own. */
static void each_gpu(struct call *call, int of)
{
	const struct catalogue *catalogue = service_catalogue(call->service);
	struct catalogue_cursor cursor = { .kind = RECORD_NODE };
	const struct gpu_record *const *gpus;
	const struct node_record *node;
	for (int64_t done = 0; (node = catalogue_next(catalogue, &cursor)) != NULL; done++) {
		size_t count = catalogue_node_gpus(catalogue, node->id, &gpus);
		for (size_t i = 0; i < count; i++) {
			if (gpus[i]->mig_mode)
				continue;
			if (of == SAMPLE_FAMILIES)
				put_memory(&call->body, catalogue, node, gpus[i]);
			else
				put_sample(call, (enum sample_family)of, node, gpus[i]);
		}
		service_breathe(call->service, done);
	}
}

static void put_gpus(struct call *call)
{
	for (int of = 0; of < SAMPLE_FAMILIES; of++) {
		family(&call->body, sample_families[of].name, "gauge", sample_families[of].help);
		each_gpu(call, of);
	}
	family(&call->body, "gpu_scheduler_gpu_memory_bytes", "gauge",
	       "Memory of the GPU: what it has, and what is on it by kind.");
	each_gpu(call, SAMPLE_FAMILIES);
}

static void put_nodes(struct call *call)
{
	const struct catalogue *catalogue = service_catalogue(call->service);
	struct catalogue_cursor cursor = { .kind = RECORD_NODE };
	const struct node_record *node;
	int64_t states[8] = { 0 };
	while ((node = catalogue_next(catalogue, &cursor)) != NULL)
		states[node->state & 7]++;
	family(&call->body, "gpu_scheduler_nodes", "gauge", "Nodes by state.");
	for (int i = 0; i < node_state_words.count; i++)
		buffer_print(&call->body, "gpu_scheduler_nodes{state=\"%s\"} %" PRId64 "\n",
		             node_state_words.at[i], states[i]);
	const struct slot_record *slot;
	int64_t slots[8] = { 0 };
	cursor = (struct catalogue_cursor){ .kind = RECORD_SLOT };
	while ((slot = catalogue_next(catalogue, &cursor)) != NULL)
		slots[slot->state & 7]++;
	family(&call->body, "gpu_scheduler_slots", "gauge", "Slots of models by state.");
	for (int i = 0; i < slot_state_words.count; i++)
		buffer_print(&call->body, "gpu_scheduler_slots{state=\"%s\"} %" PRId64 "\n",
		             slot_state_words.at[i], slots[i]);
}

/* The service itself. */

static void put_latency(struct buffer *text, const struct meters *meters)
{
	int64_t below = 0;
	family(text, "gpu_scheduler_scheduling_latency", "histogram",
	       "Seconds from being queued to being placed.");
	for (int bucket = 0; bucket < METER_BUCKETS; bucket++) {
		below += meters->latency_buckets[bucket];
		buffer_print(text,
		             "gpu_scheduler_scheduling_latency_bucket{le=\"%g\"} %" PRId64 "\n",
		             (double)meter_bound_ms(bucket) / 1000, below);
	}
	buffer_print(text,
	             "gpu_scheduler_scheduling_latency_bucket{le=\"+Inf\"} %" PRId64
	             "\ngpu_scheduler_scheduling_latency_sum %.3f\n"
	             "gpu_scheduler_scheduling_latency_count %" PRId64 "\n",
	             meters->latency_count, (double)meters->latency_sum_ms / 1000,
	             meters->latency_count);
}

static void put_number(struct buffer *text, const char *name, const char *type, const char *help,
                       int64_t value)
{
	family(text, name, type, help);
	buffer_print(text, "%s %" PRId64 "\n", name, value);
}

static void put_notices(struct buffer *text, const struct meters *meters)
{
	family(text, "gpu_scheduler_task_notices_total", "counter",
	       "Tasks that nodes reported: over what they reserved, idle on their GPUs, without "
	       "the guard.");
	for (int i = 0; i < NOTICES; i++)
		buffer_print(text, "gpu_scheduler_task_notices_total{kind=\"%s\"} %" PRId64 "\n",
		             task_notice_words.at[i], meters->notices[i]);
}

static void put_misreports(struct buffer *text, const struct misreports *misreports)
{
	put_number(text, "gpu_scheduler_node_misreports_total", "counter",
	           "Reports of nodes about work, GPUs or addresses that are not theirs.",
	           misreports_total(misreports));
}

static void put_engine(struct call *call)
{
	struct buffer *text = &call->body;
	struct desk_health health = { 0 };
	struct desk *desk = call->service->desk;
	desk->health(desk, &health);
	put_number(text, "gpu_scheduler_leading", "gauge",
	           "Whether this scheduler is the active one.", health.leading);
	put_number(text, "gpu_scheduler_store_ok", "gauge", "Whether the store can commit.",
	           health.writer.ok);
	put_number(text, "gpu_scheduler_store_commits_total", "counter", "Transactions.",
	           health.writer.batches);
	put_number(text, "gpu_scheduler_store_commands_total", "counter", "Commands in them.",
	           health.writer.commands);
	put_number(text, "gpu_scheduler_store_rows_total", "counter", "Rows in them.",
	           health.writer.rows);
	put_number(text, "gpu_scheduler_passes_total", "counter", "Passes of the scheduler.",
	           health.passes);
	family(text, "gpu_scheduler_pass_seconds_total", "counter", "Time that passes took.");
	buffer_print(text, "gpu_scheduler_pass_seconds_total %.6f\n",
	             (double)health.pass_us_total / 1e6);
	family(text, "gpu_scheduler_clock_offset_seconds", "gauge",
	       "How far the system clock jumped from the scheduler's time; 0 where they agree.");
	buffer_print(text, "gpu_scheduler_clock_offset_seconds %.3f\n",
	             (double)health.clock_off_ms / 1e3);
	put_number(text, "gpu_scheduler_clock_steps_total", "counter", "Jumps of the system clock.",
	           health.clock_steps);
	put_number(text, "gpu_scheduler_asks_waiting", "gauge", "What waits for the core.",
	           (int64_t)health.waiting);
}

static void put_wire(struct call *call)
{
	struct buffer *text = &call->body;
	struct loop_counters counters = loop_counters(call->service->desk->loop);
	struct hub_counters hub = hub_counters(call->service->hub);
	put_number(text, "gpu_scheduler_connections", "gauge", "Open connections.",
	           (int64_t)counters.connections);
	put_number(text, "gpu_scheduler_connections_total", "counter", "Connections so far.",
	           (int64_t)counters.connections_total);
	put_number(text, "gpu_scheduler_connections_refused_total", "counter",
	           "Connections over a limit.", (int64_t)counters.connections_refused);
	put_number(text, "gpu_scheduler_connections_shed_total", "counter",
	           "Connections closed because others needed their memory or their place.",
	           (int64_t)counters.connections_shed);
	put_number(text, "gpu_scheduler_descriptors_exhausted_total", "counter",
	           "Connections closed because no file descriptor was left.",
	           (int64_t)counters.descriptors_exhausted);
	put_number(text, "gpu_scheduler_requests_in_flight", "gauge",
	           "Requests that are being received or served.", (int64_t)counters.exchanges);
	put_number(text, "gpu_scheduler_calls_in_flight", "gauge",
	           "Requests with an answer of the API to come.", call->service->calls);
	put_number(text, "gpu_scheduler_buffered_bytes", "gauge",
	           "Memory of requests that are being received or served.",
	           (int64_t)counters.buffered_bytes);
	put_number(text, "gpu_scheduler_held_bytes", "gauge",
	           "Memory of answers that clients have not read.", (int64_t)counters.held_bytes);
	put_number(text, "gpu_scheduler_answers_dropped_total", "counter",
	           "Answers dropped because too many were not read.",
	           (int64_t)counters.answers_dropped);
	put_number(text, "gpu_scheduler_received_bytes_total", "counter", "Bytes received.",
	           (int64_t)counters.bytes_in);
	put_number(text, "gpu_scheduler_sent_bytes_total", "counter", "Bytes sent.",
	           (int64_t)counters.bytes_out);
	put_number(text, "gpu_scheduler_protocol_errors_total", "counter",
	           "Connections that broke a protocol.", (int64_t)counters.protocol_errors);
	put_number(text, "gpu_scheduler_stream_listeners", "gauge", "WebSockets of live events.",
	           hub.listeners);
	put_number(text, "gpu_scheduler_stream_events_total", "counter", "Events sent to them.",
	           hub.sent);
	put_number(text, "gpu_scheduler_stream_missed_total", "counter",
	           "Events that slow listeners were told they missed.", hub.skipped);
	traffic_print(call->service->traffic, text);
	failures_print(gate_failures(call->service->gate), text);
	if (!call->service->notify)
		return;
	struct notify_counters notes = notify_counters(call->service->notify);
	put_number(text, "gpu_scheduler_notifications_total", "counter", "Notifications delivered.",
	           notes.delivered);
	put_number(text, "gpu_scheduler_notifications_failed_total", "counter",
	           "Notifications given up.", notes.failed + notes.dropped);
	put_number(text, "gpu_scheduler_notifications_waiting", "gauge",
	           "Notifications to be delivered.", notes.waiting);
}

static void put_all(struct call *call, const struct scrape *scrape)
{
	struct catalogue *catalogue = service_catalogue(call->service);
	const struct meters *meters = &call->service->meters;
	bool sees_all = roster_sees_all(&call->identity);
	buffer_clear(&call->body);
	catalogue_lock(catalogue);
	put_jobs(call, scrape);
	put_tenants(call, scrape);
	if (sees_all) {
		put_nodes(call);
		put_gpus(call);
	}
	catalogue_unlock(catalogue);
	if (!sees_all)
		return;
	put_latency(&call->body, meters);
	put_number(&call->body, "gpu_scheduler_preemptions_total", "counter",
	           "Jobs that were stopped for others.", meters->preemptions);
	put_notices(&call->body, meters);
	put_misreports(&call->body, call->service->misreports);
	put_number(&call->body, "gpu_scheduler_submissions_total", "counter", "Jobs taken in.",
	           meters->submitted);
	put_engine(call);
	put_wire(call);
	family(&call->body, "gpu_scheduler_build_info", "gauge", "The program.");
	buffer_text(&call->body, "gpu_scheduler_build_info{version=\"");
	put_label(&call->body, call->service->settings.version);
	buffer_text(&call->body, "\"} 1\n");
}

static bool look_at_tenants(struct ask *ask, struct sched *sched, struct error *error)
{
	struct scrape *scrape = call_of(ask)->state;
	(void)error;
	for (size_t i = 0; i < scrape->tenant_count; i++)
		sched_tenant_figures(sched, scrape->tenants[i].id, &scrape->tenants[i].figures);
	return true;
}

static void answer(struct ask *ask)
{
	struct call *call = call_of(ask);
	put_all(call, call->state);
	call_answer(call, 200, "text/plain; version=0.0.4; charset=utf-8");
}

void metrics_get(struct call *call)
{
	const struct roster *roster = &call->service->roster;
	struct scrape *scrape = arena_alloc(&call->ask.arena, sizeof(*scrape));
	size_t size = (roster->by_id.count + 1) * sizeof(*scrape->tenants);
	*scrape = (struct scrape){ .tenants = arena_alloc(&call->ask.arena, size) };
	memset(scrape->tenants, 0, size);
	for (size_t i = 0; i < roster->by_id.capacity; i++) {
		const struct roster_tenant *tenant = roster->by_id.entries[i].value;
		if (tenant && roster_may_see(roster, &call->identity, tenant->id))
			scrape->tenants[scrape->tenant_count++].id = tenant->id;
	}
	call->state = scrape;
	call_look(call, look_at_tenants, answer);
}
