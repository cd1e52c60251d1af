/* prefix_run.c - prompts that begin alike, at several replicas of a model */
#include "sim/serve/prefix_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "gateway/state/prefix.h"
#include "sim/serve/serve_gateway.h"

enum { MODEL_ID = 1 };

const char *const prefix_policies[PREFIX_POLICIES] = { "one-cache", "round-robin", "least-queued",
	                                               "longest-prefix", "ours" };

struct replica {
	size_t *queue; /* requests that it was sent, in order */
	size_t first, count, capacity;
	int64_t ends_us;       /* of the prompt that it computes; INT64_MAX: none */
	int64_t queued_tokens; /* of prompts that have no answer */
	int64_t busy_us;
};

struct prefix_service {
	const struct prefix_trace *trace;
	const struct prefix_setup *setup;
	enum prefix_policy policy;
	struct replica *replicas;
	struct prefixes *caches; /* what the replicas have, in fact */
	struct serve_gateway *gateway;
	int64_t *first_us; /* by request: from its arrival to its first token */
	int64_t now_us, matched;
	int next; /* of round robin */
};

static bool shares_cache(const struct prefix_service *service)
{
	return service->policy == PREFIX_ONE_CACHE;
}

static int cache_of(const struct prefix_service *service, int replica)
{
	return shares_cache(service) ? 0 : replica;
}

static void replica_add(struct prefix_service *service, int number, size_t request)
{
	struct replica *replica = &service->replicas[number];

	array_reserve(replica->queue, replica->capacity, replica->count + 1);
	replica->queue[replica->count++] = request;
	replica->queued_tokens += service->trace->requests[request].input;
}

/* The gateway chose. */
static void on_prefix_send(void *context, size_t request, int64_t slot_id)
{
	replica_add(context, (int)slot_id - 1, request);
}

/* The replica with the fewest tokens queued, of those with the most blocks if `matched` is given.
 */
static int least_queued(const struct prefix_service *service, const int *matched)
{
	const struct replica *replicas = service->replicas;
	int best = 0;

	for (int r = 1; r < service->setup->replicas; r++) {
		if (matched && matched[r] != matched[best]) {
			if (matched[r] > matched[best])
				best = r;
		} else if (replicas[r].queued_tokens < replicas[best].queued_tokens) {
			best = r;
		}
	}
	return best;
}

static bool prefix_arrive(struct prefix_service *service, size_t number)
{
	const struct prefix_request *request = &service->trace->requests[number];
	const uint64_t *blocks = service->trace->blocks + request->first;

	switch (service->policy) {
	case PREFIX_OURS:
		return serve_gateway_ask(service->gateway, number,
		                         &(struct serve_asked){ .model_id = MODEL_ID,
		                                                .prompt = request->input,
		                                                .answer = 1,
		                                                .blocks = blocks,
		                                                .block_count = request->blocks },
		                         service->now_us / 1000);
	case PREFIX_ROUND_ROBIN:
		replica_add(service, service->next, number);
		service->next = (service->next + 1) % service->setup->replicas;
		return true;
	case PREFIX_LONGEST:
		replica_add(
		    service,
		    least_queued(service, prefixes_match(service->caches, blocks, request->blocks)),
		    number);
		return true;
	default:
		replica_add(service, least_queued(service, NULL), number);
		return true;
	}
}

/* Begins with the next prompt, if there is one: what is cached need not be computed. */
static void prefix_begin(struct prefix_service *service, int number)
{
	struct replica *replica = &service->replicas[number];

	if (replica->ends_us != INT64_MAX || replica->first == replica->count)
		return;
	const struct prefix_request *request =
	    &service->trace->requests[replica->queue[replica->first]];
	const uint64_t *blocks = service->trace->blocks + request->first;
	int cache = cache_of(service, number);
	int matched = prefixes_match(service->caches, blocks, request->blocks)[cache];
	int64_t tokens = max64(request->input - (int64_t)matched * PREFIX_BLOCK_TOKENS, 1);
	int64_t length_us = (int64_t)((double)tokens * service->setup->token_ms * 1000);
	service->matched += matched;
	replica->ends_us = service->now_us + length_us;
	replica->busy_us += length_us;
}

static void prefix_end(struct prefix_service *service, int number)
{
	struct replica *replica = &service->replicas[number];

	if (replica->ends_us > service->now_us)
		return;
	size_t at = replica->queue[replica->first++];
	const struct prefix_request *request = &service->trace->requests[at];
	replica->ends_us = INT64_MAX;
	replica->queued_tokens -= request->input;
	service->first_us[at] = service->now_us - request->at_us;
	prefixes_note(service->caches, cache_of(service, number),
	              service->trace->blocks + request->first, request->blocks);
	if (service->gateway)
		serve_gateway_finish(service->gateway, at, request->input, 1,
		                     service->now_us / 1000);
}

static void prefix_live(struct prefix_service *service, int64_t *refused,
                        void (*tick)(void *context), void *context)
{
	const struct prefix_trace *trace = service->trace;
	int replicas = service->setup->replicas;

	for (size_t arrived = 0;;) {
		int64_t next_us =
		    arrived < trace->count ? trace->requests[arrived].at_us : INT64_MAX;
		for (int r = 0; r < replicas; r++)
			next_us = min64(next_us, service->replicas[r].ends_us);
		if (next_us == INT64_MAX)
			return;
		service->now_us = next_us;
		for (int r = 0; r < replicas; r++)
			prefix_end(service, r);
		for (; arrived < trace->count && trace->requests[arrived].at_us <= next_us;
		     arrived++) {
			*refused += !prefix_arrive(service, arrived);
			tick(context);
		}
		if (service->gateway)
			serve_gateway_serve(service->gateway, service->now_us / 1000);
		for (int r = 0; r < replicas; r++)
			prefix_begin(service, r);
	}
}

static int prefix_by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static void prefix_judge(const struct prefix_service *service, struct prefix_result *result)
{
	size_t count = service->trace->count;
	double sum = 0, busy = 0, most = 0;

	for (size_t i = 0; i < count; i++)
		sum += (double)service->first_us[i] / 1e6;
	for (int r = 0; r < service->setup->replicas; r++) {
		double us = (double)service->replicas[r].busy_us;
		busy += us;
		most = us > most ? us : most;
	}
	qsort(service->first_us, count, sizeof(*service->first_us), prefix_by_number);
	result->reuse = (double)service->matched / (double)service->trace->block_count;
	result->first_mean_s = sum / (double)count;
	size_t middle = (count - 1) / 2, late = (count - 1) * 99 / 100;
	result->first_p50_s = (double)service->first_us[middle] / 1e6;
	result->first_p99_s = (double)service->first_us[late] / 1e6;
	result->busiest = busy > 0 ? most * service->setup->replicas / busy : 1;
}

/* The gateway with a slot for each replica, all of one model. */
static struct serve_gateway *gateway_begin(struct prefix_service *service)
{
	static const int64_t model_ids[] = { MODEL_ID };
	size_t replicas = (size_t)service->setup->replicas;
	struct serve_route *routes = memory_zero(replicas, sizeof(*routes));
	struct serve_gateway *gateway =
	    serve_gateway_new(&(struct serve_gateway_setup){ .requests = service->trace->count,
	                                                     .model_ids = model_ids,
	                                                     .models = 1,
	                                                     .block_tokens = PREFIX_BLOCK_TOKENS,
	                                                     .slot_blocks = service->setup->blocks,
	                                                     .send = on_prefix_send,
	                                                     .context = service });

	for (size_t r = 0; r < replicas; r++)
		routes[r] = (struct serve_route){ .slot_id = (int64_t)r + 1,
			                          .model_id = MODEL_ID,
			                          .share = INT32_MAX,
			                          .state = SERVE_SLOT_READY };
	serve_gateway_routes(gateway, routes, replicas, 0);
	free(routes);
	return gateway;
}

void prefix_run(const struct prefix_trace *trace, const struct prefix_setup *setup,
                enum prefix_policy policy, struct prefix_result *result,
                void (*tick)(void *context), void *context)
{
	struct prefix_service service = { .trace = trace, .setup = setup, .policy = policy };

	*result = (struct prefix_result){ 0 };
	service.replicas = memory_zero((size_t)setup->replicas, sizeof(*service.replicas));
	service.first_us = memory_zero(trace->count, sizeof(*service.first_us));
	service.caches =
	    prefixes_new(shares_cache(&service) ? setup->blocks * setup->replicas : setup->blocks);
	for (int r = 0; r < setup->replicas; r++) {
		service.replicas[r].ends_us = INT64_MAX;
		prefixes_add(service.caches);
	}
	if (policy == PREFIX_OURS)
		service.gateway = gateway_begin(&service);
	prefix_live(&service, &result->refused, tick, context);
	prefix_judge(&service, result);
	if (service.gateway)
		serve_gateway_free(service.gateway);
	for (int r = 0; r < setup->replicas; r++)
		free(service.replicas[r].queue);
	prefixes_free(service.caches);
	free(service.replicas);
	free(service.first_us);
}
