/* serve.c - many models on few GPUs: the core and a gateway serve the requests of a trace */
#include "sim/serve/serve.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "sim/serve/serve_run.h"

#define TICK_US 50000           /* between looks at what time alone changes, while requests wait */
#define AFTER_LAST_US 300000000 /* it ends that long after the last request at the latest */
#define USABLE 0.95             /* of a GPU's memory: the rest is the driver's */
#define SHARED_COST 1.1         /* steps of servers that share a GPU take so much longer */
#define CANNOT_FIT_KV_GB 0.5

const char *const serve_policies[SERVE_POLICIES] = { "static", "lru", "ours", "ours-nosleep",
	                                             "oracle" };

double serve_usable_gb(const struct serve_run *run)
{
	return run->setup->gpu_gb * USABLE;
}

double serve_kv_gb(const struct serve_run *run, int model)
{
	const struct serve_kind *kind = serve_kind_of(run->trace, model);

	return run->setup->one_per_gpu ? serve_usable_gb(run) - kind->weights_gb - kind->overhead_gb
	                               : kind->kv_gb;
}

double serve_need_gb(const struct serve_run *run, int model)
{
	const struct serve_kind *kind = serve_kind_of(run->trace, model);

	return run->setup->one_per_gpu ? serve_usable_gb(run) - 0.01
	                               : kind->weights_gb + kind->overhead_gb + kind->kv_gb;
}

int64_t serve_load_us(const struct serve_run *run, int model)
{
	const struct serve_kind *kind = serve_kind_of(run->trace, model);

	return (int64_t)((kind->weights_gb / run->setup->load_gbps + run->setup->start_s) * 1e6);
}

#define SLEEP_GBPS 50
#define WAKE_START_S 0.3

int64_t serve_sleep_us(const struct serve_run *run, int model)
{
	return (int64_t)(serve_kind_of(run->trace, model)->weights_gb / SLEEP_GBPS * 1e6);
}

int64_t serve_wake_us(const struct serve_run *run, int model)
{
	return serve_sleep_us(run, model) + (int64_t)(WAKE_START_S * 1e6);
}

struct serve_slot *serve_find_slot(struct serve_run *run, int64_t id)
{
	for (size_t i = 0; i < run->slot_count; i++)
		if (run->slots[i]->id == id)
			return run->slots[i];
	return NULL;
}

struct serve_slot *serve_add_slot(struct serve_run *run, int64_t id, int model, int gpu,
                                  int64_t load_ends_us)
{
	struct serve_slot *slot = NEW(struct serve_slot);

	INVARIANT(gpu >= 0 && gpu < run->setup->gpus && model < run->trace->models);
	slot->id = id;
	slot->model = model;
	slot->gpu = gpu;
	slot->load_ends_us = load_ends_us;
	server_begin(&slot->server, serve_kind_of(run->trace, model), serve_kv_gb(run, model),
	             run->trace->mean_output);
	array_reserve(run->slots, run->slot_capacity, run->slot_count + 1);
	run->slots[run->slot_count++] = slot;
	run->routes_changed = true;
	return slot;
}

void serve_drop_slot(struct serve_run *run, struct serve_slot *slot)
{
	size_t at = 0;

	INVARIANT(!server_has_work(&slot->server));
	while (run->slots[at] != slot)
		at++;
	run->slot_count--;
	memmove(run->slots + at, run->slots + at + 1,
	        (run->slot_count - at) * sizeof(struct serve_slot *));
	free(slot->places);
	free(slot);
	run->routes_changed = true;
}

static bool has_core(const struct serve_run *run)
{
	return run->policy != SERVE_LRU && run->policy != SERVE_ORACLE;
}

/* The gateway has sent the request to its slot. */
static void on_send(void *context, size_t request, int64_t slot_id)
{
	struct serve_run *run = context;
	struct serve_slot *slot = serve_find_slot(run, slot_id);

	INVARIANT(slot && slot->state != SERVE_SLOT_LOADING);
	server_add(&slot->server, run->served, request);
}

static void tell_gateway(struct serve_run *run)
{
	if (run->routes_changed) {
		struct serve_route *routes = memory_zero(run->slot_count + 1, sizeof(*routes));
		size_t count = 0;
		for (size_t i = 0; i < run->slot_count; i++) {
			const struct serve_slot *slot = run->slots[i];
			if (slot->sleep == SERVE_FALLS_ASLEEP || slot->sleep == SERVE_SLEEPS)
				continue;
			routes[count++] =
			    (struct serve_route){ .slot_id = slot->id,
				                  .model_id = run->model_ids[slot->model],
				                  .share = slot->share,
				                  .state = slot->state };
		}
		serve_gateway_routes(run->gateway, routes, count, run->now_us / 1000);
		run->routes_changed = false;
		free(routes);
	}
	serve_gateway_serve(run->gateway, run->now_us / 1000);
}

static void serve_arrive(struct serve_run *run)
{
	size_t request = run->arrived++;
	const struct serve_request *asked = &run->trace->requests[request];

	run->served[request].input = asked->input;
	run->served[request].output = asked->output;
	if (!serve_gateway_ask(run->gateway, request,
	                       &(struct serve_asked){ .model_id = run->model_ids[asked->model],
	                                              .prompt = asked->input },
	                       run->now_us / 1000)) {
		run->refused[request] = true;
		return;
	}
	run->open++;
	if (has_core(run))
		serve_core_arrived(run, request);
	else if (run->policy == SERVE_LRU)
		serve_lru_arrived(run, request);
}

/* True if something was loaded, fell asleep or woke. */
static bool end_loads(struct serve_run *run)
{
	bool any = false;

	for (size_t i = 0; i < run->slot_count; i++) {
		struct serve_slot *slot = run->slots[i];
		if (slot->state != SERVE_SLOT_LOADING || slot->load_ends_us > run->now_us)
			continue;
		run->routes_changed = any = true;
		if (slot->sleep == SERVE_FALLS_ASLEEP) {
			slot->load_ends_us = INT64_MAX;
			serve_core_moved(run, slot);
			i = SIZE_MAX;
			continue;
		}
		bool wakes = slot->sleep == SERVE_WAKES;
		slot->state = SERVE_SLOT_READY;
		slot->used_us = run->now_us;
		run->loads += !wakes;
		run->wakes += wakes;
		run->loading_us +=
		    wakes ? serve_wake_us(run, slot->model) : serve_load_us(run, slot->model);
		if (has_core(run)) {
			bool moved = wakes && run->setup->sleep == SERVE_SLEEP_HOME;
			slot->sleep = moved ? slot->sleep : SERVE_AWAKE;
			(moved ? serve_core_moved : serve_core_loaded)(run, slot);
			i = SIZE_MAX; /* slots may have come or gone */
		}
	}
	return any;
}

static void end_request(struct serve_run *run, struct serve_slot *slot, size_t request)
{
	const struct served *served = &run->served[request];

	serve_gateway_finish(run->gateway, request, served->input, served->tokens,
	                     run->now_us / 1000);
	run->open--;
	slot->used_us = run->now_us;
	run->routes_changed = true;
	if (has_core(run))
		serve_core_ended(run, slot);
}

/* The next slot of the GPU with work, after the one that had the last step; how many there are. */
static struct serve_slot *next_worker(struct serve_run *run, int gpu, int *workers)
{
	struct serve_slot *first = NULL, *next = NULL;

	*workers = 0;
	for (size_t i = 0; i < run->slot_count; i++) {
		struct serve_slot *slot = run->slots[i];
		if (slot->gpu != gpu || !server_has_work(&slot->server))
			continue;
		++*workers;
		if (!first || slot->id < first->id)
			first = slot;
		if (slot->id > run->gpus[gpu].step_slot && (!next || slot->id < next->id))
			next = slot;
	}
	return next ? next : first;
}

static void begin_steps(struct serve_run *run)
{
	for (int g = 0; g < run->setup->gpus; g++) {
		struct serve_gpu *gpu = &run->gpus[g];
		int workers;
		if (gpu->step_ends_us != INT64_MAX)
			continue;
		struct serve_slot *slot = next_worker(run, g, &workers);
		if (!slot)
			continue;
		int64_t step_us = server_step(&slot->server, run->served);
		if (workers > 1)
			step_us = (int64_t)((double)step_us * SHARED_COST);
		gpu->step_slot = slot->id;
		gpu->step_ends_us = run->now_us + step_us;
		gpu->busy_us += step_us;
	}
}

/* True if a request ended. */
static bool end_steps(struct serve_run *run)
{
	size_t ended[SERVER_BATCH_MAX];
	bool any = false;

	for (int g = 0; g < run->setup->gpus; g++) {
		struct serve_gpu *gpu = &run->gpus[g];
		if (gpu->step_ends_us > run->now_us)
			continue;
		struct serve_slot *slot = serve_find_slot(run, gpu->step_slot);
		gpu->step_ends_us = INT64_MAX;
		int count = server_end_step(&slot->server, run->served, run->now_us, ended);
		for (int i = 0; i < count; i++)
			end_request(run, slot, ended[i]);
		any = any || count > 0;
	}
	return any;
}

/* When something happens next. */
static int64_t next_event(const struct serve_run *run, int64_t tick_us)
{
	int64_t next_us = run->open > 0 ? tick_us : INT64_MAX;

	if (run->arrived < run->trace->count)
		next_us = min64(next_us, run->trace->requests[run->arrived].at_us);
	for (int g = 0; g < run->setup->gpus; g++)
		next_us = min64(next_us, run->gpus[g].step_ends_us);
	for (size_t i = 0; i < run->slot_count; i++)
		if (run->slots[i]->state == SERVE_SLOT_LOADING)
			next_us = min64(next_us, run->slots[i]->load_ends_us);
	return max64(next_us, run->now_us);
}

static void live(struct serve_run *run, void (*tick)(void *context), void *context)
{
	int64_t tick_us = 0, last_us = run->trace->requests[run->trace->count - 1].at_us;

	while (!run->failed && (run->arrived < run->trace->count || run->open > 0) &&
	       run->now_us < last_us + AFTER_LAST_US) {
		run->now_us = next_event(run, tick_us);
		bool changed = run->now_us >= tick_us;
		while (run->arrived < run->trace->count &&
		       run->trace->requests[run->arrived].at_us <= run->now_us) {
			serve_arrive(run);
			tick(context);
			changed = true;
		}
		bool moved = end_loads(run);
		changed = end_steps(run) || changed || moved;
		if (changed && has_core(run) && sched_has_waiting(run->driver.sched))
			serve_core_pass(run);
		if (changed && run->policy == SERVE_LRU)
			serve_lru_pass(run);
		if (run->now_us >= tick_us)
			tick_us = run->now_us + TICK_US;
		if (changed)
			tell_gateway(run);
		begin_steps(run);
	}
}

static int serve_by_number(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The mean of the lowest tenth of the models that were asked. */
static double worst_tenth(const int64_t *asked, const int64_t *met, int models)
{
	double *shares = memory_zero((size_t)models, sizeof(*shares)), sum = 0;
	int count = 0;

	for (int m = 0; m < models; m++)
		if (asked[m] > 0)
			shares[count++] = (double)met[m] / (double)asked[m];
	qsort(shares, (size_t)count, sizeof(*shares), serve_by_number);
	int tenth = (count + 9) / 10;
	for (int i = 0; i < tenth; i++)
		sum += shares[i];
	free(shares);
	return sum / tenth;
}

static void serve_judge(const struct serve_run *run, struct serve_result *result)
{
	const struct serve_trace *trace = run->trace;
	int64_t *asked = memory_zero((size_t)trace->models, sizeof(*asked));
	int64_t *met = memory_zero((size_t)trace->models, sizeof(*met));
	double *firsts = memory_zero(trace->count, sizeof(*firsts));
	int64_t both = 0, first_met = 0, next_met = 0, busy_us = 0;

	for (size_t i = 0; i < trace->count; i++) {
		const struct serve_request *request = &trace->requests[i];
		const struct served *served = &run->served[i];
		bool done = served->output > 0 && served->tokens >= served->output;
		int64_t first_us =
		    (served->tokens > 0 ? served->first_us : run->now_us) - request->at_us;
		bool first = served->tokens > 0 && first_us <= SERVE_FIRST_US;
		bool next = done && served->last_us - served->first_us <=
		                        SERVE_NEXT_US * (served->output - 1);
		firsts[i] = (double)first_us / 1e6;
		first_met += first;
		next_met += next;
		both += first && next;
		asked[request->model]++;
		met[request->model] += first && next;
		result->refused += run->refused[i];
	}
	qsort(firsts, trace->count, sizeof(*firsts), serve_by_number);
	for (int g = 0; g < run->setup->gpus; g++)
		busy_us += run->gpus[g].busy_us;
	double count = (double)trace->count, span_us = (double)max64(run->now_us, 1);
	result->attainment = (double)both / count;
	result->first_share = (double)first_met / count;
	result->next_share = (double)next_met / count;
	result->worst_tenth = worst_tenth(asked, met, trace->models);
	result->first_p50_s = firsts[(trace->count - 1) / 2];
	result->first_p99_s = firsts[(trace->count - 1) * 99 / 100];
	result->loads = run->loads;
	result->closed = run->closed;
	result->wakes = run->wakes;
	result->load_time_share = (double)run->loading_us / span_us / run->setup->gpus;
	result->busy_share = (double)busy_us / span_us / run->setup->gpus;
	result->goodput = (double)both / span_us * 1e6;
	free(asked);
	free(met);
	free(firsts);
}

static bool setup_check(struct serve_run *run, struct error *error)
{
	for (int m = 0; m < run->trace->models; m++) {
		const char *name = serve_kind_of(run->trace, m)->name;
		if (serve_need_gb(run, m) > serve_usable_gb(run) ||
		    serve_kv_gb(run, m) < CANNOT_FIT_KV_GB)
			return error_set(error, ERROR_INVALID,
			                 "model %s does not fit on a GPU of %g GB, of which %g are "
			                 "usable",
			                 name, run->setup->gpu_gb, serve_usable_gb(run));
	}
	return true;
}

static void service_end(struct serve_run *run)
{
	for (size_t i = 0; i < run->slot_count; i++) {
		free(run->slots[i]->places);
		free(run->slots[i]);
	}
	if (run->gateway)
		serve_gateway_free(run->gateway);
	if (run->driver.sched)
		driver_free(&run->driver);
	free(run->slots);
	free(run->gpus);
	free(run->served);
	free(run->refused);
	free(run->model_ids);
	free(run->cached);
	free(run->orders);
	free(run->line);
}

bool serve_run(const struct serve_trace *trace, const struct serve_setup *setup,
               enum serve_policy policy, struct serve_result *result, void (*tick)(void *context),
               void *context, struct error *error)
{
	struct serve_run run = { .trace = trace, .setup = setup, .policy = policy, .error = error };

	*result = (struct serve_result){ 0 };
	if (!setup_check(&run, error))
		return false;
	run.gpus = memory_zero((size_t)setup->gpus, sizeof(*run.gpus));
	for (int g = 0; g < setup->gpus; g++)
		run.gpus[g].step_ends_us = INT64_MAX;
	run.served = memory_zero(trace->count, sizeof(*run.served));
	run.refused = memory_zero(trace->count, sizeof(*run.refused));
	run.cached = memory_zero((size_t)trace->models, sizeof(*run.cached));
	run.model_ids = memory_zero((size_t)trace->models, sizeof(*run.model_ids));
	for (int m = 0; m < trace->models; m++)
		run.model_ids[m] = m + 1;
	bool fine = true;
	if (has_core(&run))
		fine = serve_core_begin(&run);
	else if (policy == SERVE_LRU)
		serve_lru_begin(&run);
	else
		serve_oracle_begin(&run);
	run.gateway =
	    serve_gateway_new(&(struct serve_gateway_setup){ .requests = trace->count,
	                                                     .model_ids = run.model_ids,
	                                                     .models = (size_t)trace->models,
	                                                     .send = on_send,
	                                                     .context = &run });
	run.routes_changed = true;
	for (size_t i = 0; i < run.slot_count; i++) /* what is there when it begins */
		run.slots[i]->state = SERVE_SLOT_READY;
	tell_gateway(&run);
	if (fine)
		live(&run, tick, context);
	fine = fine && !run.failed;
	if (fine)
		serve_judge(&run, result);
	service_end(&run);
	return fine;
}
