/* metrics.c - GET /metrics: Prometheus text */
#include "api/metrics.h"

#include <inttypes.h>

#include "api/auth/failures.h"
#include "api/live/hub.h"
#include "api/notify/notify.h"
#include "api/read/gpu_books.h"
#include "api/request/traffic.h"
#include "api/service/misreports.h"
#include "api/service/service_state.h"
#include "api/service/token_use.h"
#include "api/text/metric.h"
#include "core/queue/predict.h"

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

static int64_t metrics_count_jobs(const struct request *request, const struct scrape *scrape,
                                  int state)
{
	const struct catalogue *catalogue = service_catalogue(request->service);
	struct catalogue_filter filter = { .state = state };
	int64_t archived, count = 0;
	if (roster_sees_all(&request->identity)) {
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

static void put_jobs(struct request *request, const struct scrape *scrape)
{
	struct buffer *text = &request->body;
	int64_t tenant_id = request->identity.tenant_id;
	metric_head(text, METRIC_JOBS);
	for (int state = 0; state < job_state_words.count; state++)
		buffer_print(text, "%s{state=\"%s\"} %" PRId64 "\n", metric_name(METRIC_JOBS),
		             job_state_words.at[state], metrics_count_jobs(request, scrape, state));
	metric_head(text, METRIC_JOBS_TOTAL);
	for (int state = 0; state < job_state_words.count; state++)
		buffer_print(
		    text, "%s{state=\"%s\"} %" PRId64 "\n", metric_name(METRIC_JOBS_TOTAL),
		    job_state_words.at[state],
		    meters_entered(&request->service->meters, tenant_id, (enum job_state)state));
	metric_put_integer(text, METRIC_QUEUE_SIZE,
	                   metrics_count_jobs(request, scrape, JOB_PENDING));
}

/* Promised starts. */
static void put_promises(struct request *request)
{
	const struct catalogue *catalogue = service_catalogue(request->service);
	struct buffer *text = &request->body;
	const struct margin_record *margin;
	int64_t promised = 0, kept = 0;

	for (int64_t id = 1; id <= MARGIN_BINS; id++) {
		margin = catalogue_get(catalogue, RECORD_MARGIN, id, 0);
		promised += margin ? margin->promised : 0;
		kept += margin ? margin->kept : 0;
	}
	metric_head(text, METRIC_PROMISED_STARTS_TOTAL);
	buffer_print(text, "%s{outcome=\"kept\"} %" PRId64 "\n%s{outcome=\"late\"} %" PRId64 "\n",
	             metric_name(METRIC_PROMISED_STARTS_TOTAL), kept,
	             metric_name(METRIC_PROMISED_STARTS_TOTAL), promised - kept);
}

/* How predictions turned out, by what jobs were compared by. */
static void put_accuracy(struct request *request)
{
	static const struct accuracy_record none;
	const char *name = metric_name(METRIC_PREDICTED_JOBS_TOTAL);
	struct buffer *text = &request->body;
	const struct accuracy_record *records[BASES];

	metric_head(text, METRIC_PREDICTED_JOBS_TOTAL);
	for (int32_t basis = 0; basis < BASES; basis++) {
		const struct accuracy_record *record = catalogue_get(
		    service_catalogue(request->service), RECORD_ACCURACY, basis + 1, 0);
		records[basis] = record = record ? record : &none;
		buffer_print(text,
		             "%s{basis=\"%s\",outcome=\"within_p90\"} %" PRId64
		             "\n%s{basis=\"%s\",outcome=\"longer\"} %" PRId64 "\n",
		             name, basis_name(basis), record->within_p90, name, basis_name(basis),
		             record->jobs - record->within_p90);
	}
	metric_head(text, METRIC_CLOSELY_PREDICTED_JOBS_TOTAL);
	for (int32_t basis = 0; basis < BASES; basis++)
		buffer_print(text, "%s{basis=\"%s\"} %" PRId64 "\n",
		             metric_name(METRIC_CLOSELY_PREDICTED_JOBS_TOTAL), basis_name(basis),
		             records[basis]->within_twice);
}

/* Tenants. */

static void put_tenant_name(struct buffer *text, const struct tenant_record *tenant,
                            enum metric metric)
{
	buffer_print(text, "%s{tenant=\"", metric_name(metric));
	put_label(text, tenant->name);
	buffer_text(text, "\"} ");
}

/* In thousandths; UNLIMITED or QUOTA_UNSET if there is none. */
static int64_t tenant_value(enum metric metric, const struct tenant_line *line,
                            const struct tenant_record *tenant)
{
	const struct tenant_figures *figures = &line->figures;
	switch (metric) {
	case METRIC_TENANT_GPUS:
		return figures->allocated.of[AMOUNT_GPU];
	case METRIC_TENANT_FAIR_SHARE_GPUS:
		return figures->fair[AMOUNT_GPU];
	case METRIC_TENANT_QUOTA_GPUS:
		return tenant->quota_gpu;
	case METRIC_TENANT_LIMIT_GPUS:
		return tenant->limit_gpu;
	case METRIC_TENANT_RUNNING_JOBS:
		return figures->allocated.of[AMOUNT_JOBS] * 1000;
	case METRIC_TENANT_WAITING_JOBS:
		return figures->waiting_jobs * 1000;
	case METRIC_TENANT_GPU_SECONDS_TOTAL:
		return figures->gpu_ms / 1000;
	default:
		INVARIANT(metric == METRIC_TENANT_COST_TOTAL);
		return figures->cost / 1000;
	}
}

/* Of a tenant and a model that are known, one after the other as metrics have to be. */
struct token_scrape {
	struct request *request;
	enum metric metric;
};

static void put_token_labels(const struct token_scrape *scrape, const struct token_line *line,
                             const char *kind)
{
	const struct catalogue *catalogue = service_catalogue(scrape->request->service);
	struct buffer *text = &scrape->request->body;
	const struct tenant_record *tenant =
	    catalogue_get(catalogue, RECORD_TENANT, line->tenant_id, 0);
	const struct model_record *model =
	    catalogue_get(catalogue, RECORD_MODEL, line->model_id, 0);

	buffer_print(text, "%s{tenant=\"", metric_name(scrape->metric));
	put_label(text, tenant ? tenant->name : "");
	buffer_text(text, "\",model=\"");
	if (model)
		put_label(text, model->name);
	else
		buffer_print(text, "model-%" PRId64, line->model_id);
	if (kind)
		buffer_print(text, "\",kind=\"%s", kind);
	buffer_text(text, "\"} ");
}

static void put_token_line(void *context, const struct token_line *line)
{
	const struct token_scrape *scrape = context;
	struct request *request = scrape->request;
	struct buffer *text = &request->body;
	const struct {
		const char *kind;
		int64_t tokens;
	} kinds[] = { { "prompt", line->use->prompt },
		      { "cached", line->use->cached },
		      { "completion", line->use->completion } };

	if (!roster_may_see(&request->service->roster, &request->identity, line->tenant_id))
		return;
	if (scrape->metric == METRIC_MODEL_REQUESTS_TOTAL) {
		put_token_labels(scrape, line, NULL);
		buffer_print(text, "%" PRId64 "\n", line->use->requests);
	} else if (scrape->metric == METRIC_MODEL_TOKEN_COST_TOTAL) {
		put_token_labels(scrape, line, NULL);
		put_milli(text, line->use->cost / 1000);
	}
	for (size_t i = 0; scrape->metric == METRIC_MODEL_TOKENS_TOTAL && i < 3; i++) {
		put_token_labels(scrape, line, kinds[i].kind);
		buffer_print(text, "%" PRId64 "\n", kinds[i].tokens);
	}
}

static void put_tokens(struct request *request)
{
	struct token_scrape scrape = { .request = request };

	for (scrape.metric = METRIC_MODEL_REQUESTS_TOTAL;
	     scrape.metric <= METRIC_MODEL_TOKEN_COST_TOTAL; scrape.metric++) {
		metric_head(&request->body, scrape.metric);
		token_uses_each_total(request->service->token_uses, put_token_line, &scrape);
	}
}

static void put_tenants(struct request *request, const struct scrape *scrape)
{
	const struct catalogue *catalogue = service_catalogue(request->service);
	struct buffer *text = &request->body;
	if (scrape->tenant_count == 0)
		return;
	for (enum metric metric = METRIC_TENANT_GPUS; metric <= METRIC_TENANT_COST_TOTAL;
	     metric++) {
		metric_head(text, metric);
		for (size_t i = 0; i < scrape->tenant_count; i++) {
			const struct tenant_line *line = &scrape->tenants[i];
			const struct tenant_record *tenant =
			    catalogue_get(catalogue, RECORD_TENANT, line->id, 0);
			int64_t value = tenant ? tenant_value(metric, line, tenant) : UNLIMITED;
			if (value == UNLIMITED || value == QUOTA_UNSET)
				continue;
			put_tenant_name(text, tenant, metric);
			put_milli(text, value);
		}
	}
}

/* GPUs. */

static void put_gpu_name(struct buffer *text, enum metric metric, const struct node_record *node,
                         const struct gpu_record *gpu)
{
	buffer_print(text, "%s{node=\"", metric_name(metric));
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
		put_gpu_name(text, METRIC_GPU_MEMORY_BYTES, node, gpu);
		buffer_print(text, ",kind=\"%s\"} %" PRId64 "\n", kinds[i].kind,
		             kinds[i].mib * MIB_BYTES);
	}
}

static void put_unexplained(struct buffer *text, const struct node_record *node,
                            const struct gpu_record *gpu)
{
	put_gpu_name(text, METRIC_GPU_UNEXPLAINED_MEMORY_BYTES, node, gpu);
	buffer_print(text, "} %" PRId64 "\n", gpu->unexplained_mib * MIB_BYTES);
}

static void put_loading(struct buffer *text, const struct node_record *node,
                        const struct gpu_record *gpu)
{
	put_gpu_name(text, METRIC_GPU_LOADING_SECONDS_TOTAL, node, gpu);
	buffer_text(text, "} ");
	put_milli(text, gpu->loading_ms);
}

/* Thousandths; negative: not known. */
static int64_t sample_value(const struct agents_sample *sample, enum metric metric)
{
	switch (metric) {
	case METRIC_GPU_UTILIZATION:
		return sample->utilisation;
	case METRIC_GPU_TEMPERATURE_CELSIUS:
		return sample->temperature_c * 1000;
	case METRIC_GPU_POWER_WATTS:
		return sample->power_mw;
	case METRIC_GPU_SM_ACTIVE:
		return sample->sm_active;
	default:
		INVARIANT(metric == METRIC_GPU_DRAM_ACTIVE);
		return sample->dram_active;
	}
}

static void put_sample(struct request *request, enum metric metric, const struct node_record *node,
                       const struct gpu_record *gpu)
{
	struct agents_sample sample = { 0 };
	bool sampled = agents_sample(request->service->agents, gpu->uuid, &sample);
	if (!sampled && metric >= METRIC_GPU_POWER_WATTS)
		return;
	if (!sampled)
		sample.temperature_c = gpu->temperature_c;
	int64_t value = sample_value(&sample, metric);
	if (value < 0)
		return;
	put_gpu_name(&request->body, metric, node, gpu);
	buffer_text(&request->body, "} ");
	put_milli(&request->body, value);
}

/* Appends a metric of every GPU that has memory of its own. */
static void put_each_gpu(struct request *request, enum metric metric)
{
	const struct catalogue *catalogue = service_catalogue(request->service);
	struct catalogue_cursor cursor = { .kind = RECORD_NODE };
	const struct gpu_record *const *gpus;
	const struct node_record *node;
	for (int64_t done = 0; (node = catalogue_next(catalogue, &cursor)) != NULL; done++) {
		size_t count = catalogue_node_gpus(catalogue, node->id, &gpus);
		for (size_t i = 0; i < count; i++) {
			if (gpus[i]->mig_mode)
				continue;
			if (metric == METRIC_GPU_MEMORY_BYTES)
				put_memory(&request->body, catalogue, node, gpus[i]);
			else if (metric == METRIC_GPU_UNEXPLAINED_MEMORY_BYTES)
				put_unexplained(&request->body, node, gpus[i]);
			else if (metric == METRIC_GPU_LOADING_SECONDS_TOTAL)
				put_loading(&request->body, node, gpus[i]);
			else
				put_sample(request, metric, node, gpus[i]);
		}
		service_breathe(request->service, done);
	}
}

static void put_gpus(struct request *request)
{
	for (enum metric metric = METRIC_GPU_UTILIZATION;
	     metric <= METRIC_GPU_LOADING_SECONDS_TOTAL; metric++) {
		metric_head(&request->body, metric);
		put_each_gpu(request, metric);
	}
}

static void put_nodes(struct request *request)
{
	const struct catalogue *catalogue = service_catalogue(request->service);
	struct catalogue_cursor cursor = { .kind = RECORD_NODE };
	const struct node_record *node;
	int64_t states[8] = { 0 };
	while ((node = catalogue_next(catalogue, &cursor)) != NULL)
		states[node->state & 7]++;
	metric_head(&request->body, METRIC_NODES);
	for (int i = 0; i < node_state_words.count; i++)
		buffer_print(&request->body, "%s{state=\"%s\"} %" PRId64 "\n",
		             metric_name(METRIC_NODES), node_state_words.at[i], states[i]);
	const struct slot_record *slot;
	int64_t slots[8] = { 0 };
	cursor = (struct catalogue_cursor){ .kind = RECORD_SLOT };
	while ((slot = catalogue_next(catalogue, &cursor)) != NULL)
		slots[slot->state & 7]++;
	metric_head(&request->body, METRIC_SLOTS);
	for (int i = 0; i < slot_state_words.count; i++)
		buffer_print(&request->body, "%s{state=\"%s\"} %" PRId64 "\n",
		             metric_name(METRIC_SLOTS), slot_state_words.at[i], slots[i]);
}

/* The service itself. */

static void put_latency(struct buffer *text, const struct meters *meters, enum metric metric)
{
	const char *name = metric_name(metric);
	int64_t below = 0;
	metric_head(text, metric);
	for (int bucket = 0; bucket < METER_BUCKETS; bucket++) {
		below += meters->latency_buckets[bucket];
		buffer_print(text, "%s_bucket{le=\"%g\"} %" PRId64 "\n", name,
		             (double)meter_bound_ms(bucket) / 1000, below);
	}
	buffer_print(text,
	             "%s_bucket{le=\"+Inf\"} %" PRId64 "\n%s_sum %.3f\n%s_count %" PRId64 "\n",
	             name, meters->latency_count, name, (double)meters->latency_sum_ms / 1000, name,
	             meters->latency_count);
}

static void put_notices(struct buffer *text, const struct meters *meters)
{
	metric_head(text, METRIC_TASK_NOTICES_TOTAL);
	for (int i = 0; i < NOTICES; i++)
		buffer_print(text, "%s{kind=\"%s\"} %" PRId64 "\n",
		             metric_name(METRIC_TASK_NOTICES_TOTAL), task_notice_words.at[i],
		             meters->notices[i]);
}

static void put_engine(struct request *request)
{
	struct buffer *text = &request->body;
	struct engine_health health = { 0 };
	struct engine_port *port = request->service->port;
	port->health(port, &health);
	metric_put_integer(text, METRIC_LEADING, health.leading);
	metric_put_integer(text, METRIC_STORE_OK, health.writer.ok);
	metric_put_integer(text, METRIC_STORE_COMMITS_TOTAL, health.writer.batches);
	metric_put_integer(text, METRIC_STORE_COMMANDS_TOTAL, health.writer.commands);
	metric_put_integer(text, METRIC_STORE_ROWS_TOTAL, health.writer.rows);
	metric_put_integer(text, METRIC_PASSES_TOTAL, health.passes);
	metric_put_decimal(text, METRIC_PASS_SECONDS_TOTAL, (double)health.pass_us_total / 1e6, 6);
	metric_put_decimal(text, METRIC_CLOCK_OFFSET_SECONDS, (double)health.clock_off_ms / 1e3, 3);
	metric_put_integer(text, METRIC_CLOCK_STEPS_TOTAL, health.clock_steps);
	metric_put_integer(text, METRIC_ASKS_WAITING, (int64_t)health.waiting);
}

static void put_wire(struct request *request)
{
	struct buffer *text = &request->body;
	struct loop_counters counters = loop_counters(request->service->port->loop);
	struct hub_counters hub = hub_counters(request->service->hub);
	metric_put_integer(text, METRIC_CONNECTIONS, (int64_t)counters.connections);
	metric_put_integer(text, METRIC_CONNECTIONS_TOTAL, (int64_t)counters.connections_total);
	metric_put_integer(text, METRIC_CONNECTIONS_REFUSED_TOTAL,
	                   (int64_t)counters.connections_refused);
	metric_put_integer(text, METRIC_CONNECTIONS_SHED_TOTAL, (int64_t)counters.connections_shed);
	metric_put_integer(text, METRIC_DESCRIPTORS_EXHAUSTED_TOTAL,
	                   (int64_t)counters.descriptors_exhausted);
	metric_put_integer(text, METRIC_REQUESTS_IN_FLIGHT, (int64_t)counters.exchanges);
	metric_put_integer(text, METRIC_CALLS_IN_FLIGHT, request->service->requests.count);
	metric_put_integer(text, METRIC_BUFFERED_BYTES, (int64_t)counters.buffered_bytes);
	metric_put_integer(text, METRIC_HELD_BYTES, (int64_t)counters.held_bytes);
	metric_put_integer(text, METRIC_ANSWERS_DROPPED_TOTAL, (int64_t)counters.answers_dropped);
	metric_put_integer(text, METRIC_RECEIVED_BYTES_TOTAL, (int64_t)counters.bytes_in);
	metric_put_integer(text, METRIC_SENT_BYTES_TOTAL, (int64_t)counters.bytes_out);
	metric_put_integer(text, METRIC_PROTOCOL_ERRORS_TOTAL, (int64_t)counters.protocol_errors);
	metric_put_integer(text, METRIC_STREAM_LISTENERS, hub.listeners);
	metric_put_integer(text, METRIC_STREAM_EVENTS_TOTAL, hub.sent);
	metric_put_integer(text, METRIC_STREAM_MISSED_TOTAL, hub.skipped);
	traffic_print(request->service->requests.traffic, text);
	failures_print(gate_failures(request->service->gate), text);
	if (!request->service->notify)
		return;
	struct notify_counters notes = notify_counters(request->service->notify);
	metric_put_integer(text, METRIC_NOTIFICATIONS_TOTAL, notes.delivered);
	metric_put_integer(text, METRIC_NOTIFICATIONS_FAILED_TOTAL, notes.failed + notes.dropped);
	metric_put_integer(text, METRIC_NOTIFICATIONS_WAITING, notes.waiting);
}

static void put_all(struct request *request, const struct scrape *scrape)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	const struct meters *meters = &request->service->meters;
	bool sees_all = roster_sees_all(&request->identity);
	buffer_clear(&request->body);
	catalogue_lock(catalogue);
	put_jobs(request, scrape);
	put_tenants(request, scrape);
	put_tokens(request);
	if (sees_all) {
		put_nodes(request);
		put_gpus(request);
		put_promises(request);
		put_accuracy(request);
	}
	catalogue_unlock(catalogue);
	if (!sees_all)
		return;
	put_latency(&request->body, meters, METRIC_SCHEDULING_LATENCY);
	put_latency(&request->body, meters, METRIC_SCHEDULING_LATENCY_SECONDS);
	metric_put_integer(&request->body, METRIC_PREEMPTIONS_TOTAL, meters->preemptions);
	put_notices(&request->body, meters);
	metric_put_integer(&request->body, METRIC_NODE_MISREPORTS_TOTAL,
	                   misreports_total(request->service->misreports));
	metric_put_integer(&request->body, METRIC_SUBMISSIONS_TOTAL, meters->submitted);
	put_engine(request);
	put_wire(request);
	metric_head(&request->body, METRIC_BUILD_INFO);
	buffer_print(&request->body, "%s{version=\"", metric_name(METRIC_BUILD_INFO));
	put_label(&request->body, request->service->settings.version);
	buffer_text(&request->body, "\"} 1\n");
}

static bool look_at_tenants(struct engine_request *engine, struct sched *sched, struct error *error)
{
	struct scrape *scrape = request_of(engine)->state;
	(void)error;
	for (size_t i = 0; i < scrape->tenant_count; i++)
		sched_tenant_figures(sched, scrape->tenants[i].id, &scrape->tenants[i].figures);
	return true;
}

static void metrics_answer(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	put_all(request, request->state);
	request_answer(request, 200, "text/plain; version=0.0.4; charset=utf-8");
}

void metrics_get(struct request *request)
{
	const struct roster *roster = &request->service->roster;
	struct scrape *scrape = arena_alloc(&request->engine.arena, sizeof(*scrape));
	size_t size = (roster->by_id.count + 1) * sizeof(*scrape->tenants);
	*scrape = (struct scrape){ .tenants = arena_alloc(&request->engine.arena, size) };
	memset(scrape->tenants, 0, size);
	for (size_t i = 0; i < roster->by_id.capacity; i++) {
		const struct roster_tenant *tenant = roster->by_id.entries[i].value;
		if (tenant && roster_may_see(roster, &request->identity, tenant->id))
			scrape->tenants[scrape->tenant_count++].id = tenant->id;
	}
	request->state = scrape;
	request_look(request, look_at_tenants, metrics_answer);
}
