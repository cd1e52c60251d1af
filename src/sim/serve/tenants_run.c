/* tenants_run.c - many tenants at the replicas of one model, which cannot serve them all */
#include "sim/serve/tenants_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "sim/serve/serve_gateway.h"
#include "sim/serve/serve_server.h"

enum { MODEL_ID = 1, ANSWER_WEIGHT = 2, WEIGHT_ONE = 1000, BISECTIONS = 100 };

const char *const tenants_policies[TENANTS_POLICIES] = { "fifo", "ours" };

struct tenants_service {
	const struct tenants_trace *trace;
	const struct tenants_setup *setup;
	enum tenants_policy policy;
	struct serve_gateway *gateway;
	struct server *servers;
	int64_t *step_ends_us; /* by server; INT64_MAX: none is under way */
	struct served *served; /* by request */
	bool *alone;           /* by request: no other of its tenant waited when it came */
	int64_t *waiting;      /* by tenant */
	int64_t now_us, in_flight, in_flight_most, largest, spread, refused;
	size_t arrived;
};

/* Virtual tokens of a request. */
static int64_t virtual_tokens(int64_t input, int64_t output)
{
	return input + ANSWER_WEIGHT * output;
}

static int64_t tenant_weight(const struct tenants_setup *setup, int tenant)
{
	return setup->weight_count == 0 ? WEIGHT_ONE : setup->weights[tenant % setup->weight_count];
}

static int64_t lightest(const struct tenants_setup *setup)
{
	int64_t least = setup->weight_count == 0 ? WEIGHT_ONE : setup->weights[0];

	for (int i = 1; i < setup->weight_count; i++)
		least = min64(least, setup->weights[i]);
	return least;
}

/* A request's virtual tokens, as its tenant's counter has them. */
static int64_t weighed(const struct tenants_service *service, size_t request)
{
	const struct tenant_request *asked = &service->trace->requests[request];

	return virtual_tokens(asked->input, asked->output) * WEIGHT_ONE /
	       tenant_weight(service->setup, asked->tenant);
}

static void on_tenant_send(void *context, size_t request, int64_t slot_id)
{
	struct tenants_service *service = context;

	server_add(&service->servers[slot_id - 1], service->served, request);
	service->waiting[service->trace->requests[request].tenant]--;
	service->in_flight += weighed(service, request);
	service->in_flight_most = max64(service->in_flight_most, service->in_flight);
}

static void tenants_arrive(struct tenants_service *service)
{
	size_t number = service->arrived++;
	const struct tenant_request *asked = &service->trace->requests[number];
	size_t tenant = service->policy == TENANTS_OURS ? (size_t)asked->tenant + 1 : 0;

	service->served[number].input = asked->input;
	service->served[number].output = asked->output;
	service->largest = max64(service->largest, weighed(service, number));
	service->alone[number] = service->waiting[asked->tenant] == 0;
	bool waits = serve_gateway_ask(
	    service->gateway, number,
	    &(struct serve_asked){ .model_id = MODEL_ID, .tenant = tenant, .prompt = asked->input },
	    service->now_us / 1000);
	service->waiting[asked->tenant] += waits;
	service->refused += !waits;
}

static void tenants_end_step(struct tenants_service *service, int number)
{
	struct server *server = &service->servers[number];
	size_t ended[SERVER_BATCH_MAX];
	int64_t now_ms = service->now_us / 1000;

	if (service->step_ends_us[number] > service->now_us)
		return;
	service->step_ends_us[number] = INT64_MAX;
	for (int i = server->prefilled; server->prefills && i < server->count; i++)
		serve_gateway_begun(service->gateway, server->running[i]);
	int count = server_end_step(server, service->served, service->now_us, ended);
	for (int i = 0; i < count; i++) {
		const struct served *served = &service->served[ended[i]];
		service->in_flight -= weighed(service, ended[i]);
		serve_gateway_finish(service->gateway, ended[i], served->input, served->tokens,
		                     now_ms);
	}
	if (count > 0) {
		serve_gateway_serve(service->gateway, now_ms);
		service->spread = max64(service->spread, serve_gateway_spread(service->gateway));
	}
}

static void tenants_live(struct tenants_service *service, void (*tick)(void *context),
                         void *context)
{
	const struct tenants_trace *trace = service->trace;
	int64_t ends_us = (int64_t)(service->setup->hours * 3600e6);

	while (service->now_us < ends_us) {
		int64_t next_us = ends_us;
		if (service->arrived < trace->count)
			next_us = min64(next_us, trace->requests[service->arrived].at_us);
		for (int r = 0; r < service->setup->replicas; r++)
			next_us = min64(next_us, service->step_ends_us[r]);
		service->now_us = next_us;
		bool arrived = false;
		for (; service->arrived < trace->count &&
		       trace->requests[service->arrived].at_us <= next_us;
		     arrived = true) {
			tenants_arrive(service);
			tick(context);
		}
		if (arrived)
			serve_gateway_serve(service->gateway, service->now_us / 1000);
		for (int r = 0; r < service->setup->replicas; r++)
			tenants_end_step(service, r);
		for (int r = 0; r < service->setup->replicas; r++)
			if (service->step_ends_us[r] == INT64_MAX &&
			    server_has_work(&service->servers[r]))
				service->step_ends_us[r] =
				    service->now_us +
				    server_step(&service->servers[r], service->served);
	}
}

/* What each tenant is due when `sum` is divided by weight, and nobody gets more than they ask. */
static void divide(const struct tenants_setup *setup, const double *asked, int tenants, double sum,
                   double *due)
{
	double least = 0, most = 0;

	for (int t = 0; t < tenants; t++)
		most += asked[t];
	for (int i = 0; i < BISECTIONS; i++) {
		double level = (least + most) / 2, given = 0;
		for (int t = 0; t < tenants; t++) {
			double part = level * (double)tenant_weight(setup, t) / WEIGHT_ONE;
			given += part < asked[t] ? part : asked[t];
		}
		*(given < sum ? &least : &most) = level;
	}
	for (int t = 0; t < tenants; t++) {
		double part = most * (double)tenant_weight(setup, t) / WEIGHT_ONE;
		due[t] = part < asked[t] ? part : asked[t];
	}
}

/* Of what each was given over what it was due. */
static double jain_of(const double *given, const double *due, int tenants)
{
	double sum = 0, squares = 0;
	int count = 0;

	for (int t = 0; t < tenants; t++) {
		if (due[t] <= 0)
			continue;
		double share = given[t] / due[t];
		sum += share;
		squares += share * share;
		count++;
	}
	return squares > 0 ? sum * sum / (count * squares) : 1;
}

static int tenants_by_number(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void judge_firsts(const struct tenants_service *service, struct tenants_result *result)
{
	double *firsts = memory_zero(service->arrived + 1, sizeof(*firsts)), all = 0, alone = 0;
	size_t count = 0;

	for (size_t i = 0; i < service->arrived; i++) {
		const struct served *served = &service->served[i];
		int64_t until_us = served->tokens > 0 ? served->first_us : service->now_us;
		double first_s = (double)(until_us - service->trace->requests[i].at_us) / 1e6;
		all += first_s;
		if (!service->alone[i])
			continue;
		firsts[count++] = first_s;
		alone += first_s;
	}
	qsort(firsts, count, sizeof(*firsts), tenants_by_number);
	result->first_mean_s = all / (double)max64((int64_t)service->arrived, 1);
	if (count > 0) {
		size_t late = (count - 1) * 99 / 100;
		result->alone_mean_s = alone / (double)count;
		result->alone_p99_s = firsts[late];
		result->alone_most_s = firsts[count - 1];
	}
	free(firsts);
}

static void tenants_judge(const struct tenants_service *service, struct tenants_result *result)
{
	const struct tenants_trace *trace = service->trace;
	size_t tenants = (size_t)trace->tenants;
	double *asked = memory_zero(3 * tenants, sizeof(*asked)), *given = asked + tenants,
	       *due = given + tenants, asked_sum = 0, given_sum = 0;

	for (size_t i = 0; i < service->arrived; i++) {
		const struct tenant_request *request = &trace->requests[i];
		const struct served *served = &service->served[i];
		double cost = (double)virtual_tokens(request->input, request->output);
		double got =
		    served->tokens > 0 ? (double)virtual_tokens(request->input, served->tokens) : 0;
		asked[request->tenant] += cost;
		given[request->tenant] += got;
		asked_sum += cost;
		given_sum += got;
	}
	divide(service->setup, asked, trace->tenants, given_sum, due);
	result->tenants = trace->tenants;
	result->overload = given_sum > 0 ? asked_sum / given_sum : 0;
	result->jain = jain_of(given, asked, trace->tenants);
	result->jain_share = jain_of(given, due, trace->tenants);
	result->spread = service->spread;
	/* What one tenant can have in flight, a charge, and what can be given back. */
	result->bound = service->in_flight_most + service->largest +
	                (int64_t)service->setup->places * service->setup->replicas *
	                    SERVE_EXPECTED_ANSWER * ANSWER_WEIGHT * WEIGHT_ONE /
	                    lightest(service->setup);
	result->refused = service->refused;
	judge_firsts(service, result);
	free(asked);
}

static void tenants_begin(struct tenants_service *service)
{
	static const int64_t model_ids[] = { MODEL_ID };
	const struct tenants_setup *setup = service->setup;
	size_t replicas = (size_t)setup->replicas, tenants = (size_t)service->trace->tenants;
	struct serve_route *routes = memory_zero(replicas, sizeof(*routes));
	int64_t *weights = memory_zero(tenants + 1, sizeof(*weights));

	for (size_t t = 0; t < tenants; t++)
		weights[t] = tenant_weight(setup, (int)t);
	service->gateway =
	    serve_gateway_new(&(struct serve_gateway_setup){ .requests = service->trace->count,
	                                                     .model_ids = model_ids,
	                                                     .models = 1,
	                                                     .tenants = tenants,
	                                                     .weights = weights,
	                                                     .send = on_tenant_send,
	                                                     .context = service });
	for (size_t r = 0; r < replicas; r++) {
		routes[r] = (struct serve_route){ .slot_id = (int64_t)r + 1,
			                          .model_id = MODEL_ID,
			                          .share = setup->places,
			                          .state = SERVE_SLOT_READY };
		server_begin(&service->servers[r], &setup->kind, setup->kv_gb,
		             service->trace->mean_output);
		service->step_ends_us[r] = INT64_MAX;
	}
	serve_gateway_routes(service->gateway, routes, replicas, 0);
	free(routes);
	free(weights);
}

void tenants_run(const struct tenants_trace *trace, const struct tenants_setup *setup,
                 enum tenants_policy policy, struct tenants_result *result,
                 void (*tick)(void *context), void *context)
{
	struct tenants_service service = { .trace = trace, .setup = setup, .policy = policy };

	*result = (struct tenants_result){ 0 };
	service.servers = memory_zero((size_t)setup->replicas, sizeof(*service.servers));
	service.step_ends_us = memory_zero((size_t)setup->replicas, sizeof(int64_t));
	service.served = memory_zero(trace->count, sizeof(*service.served));
	service.alone = memory_zero(trace->count, sizeof(*service.alone));
	service.waiting = memory_zero((size_t)trace->tenants, sizeof(*service.waiting));
	tenants_begin(&service);
	tenants_live(&service, tick, context);
	tenants_judge(&service, result);
	serve_gateway_free(service.gateway);
	free(service.servers);
	free(service.step_ends_us);
	free(service.served);
	free(service.alone);
	free(service.waiting);
}
