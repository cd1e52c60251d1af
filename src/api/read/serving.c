/* serving.c - what each gateway last said, added up when somebody looks */
#include "api/read/serving.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/memory.h"
#include "base/number.h"

enum { URL_MAX = 256, ROWS_MAX = 10000, OVER_LEAST_MS = 1000 };

/* What waits in a gateway for a model. */
struct queue_row {
	int64_t model_id;
	struct serving_waiting waiting;
};

/* How a model answered a gateway. */
struct speed_row {
	int64_t model_id, answers, tokens, over_ms;
	int64_t first_token[DURATION_BUCKETS];
};

/* Requests in flight in a slot. */
struct slot_row {
	int64_t slot_id, requests;
};

struct serving_gateway {
	char *name, url[URL_MAX]; /* empty: not known */
	struct queue_row *queues;
	size_t queue_count, queue_capacity;
	struct speed_row *speeds;
	size_t speed_count, speed_capacity;
	struct slot_row *slots;
	size_t slot_count, slot_capacity;
	struct serving_gateway *next;
};

static struct serving_gateway **find(struct serving *serving, const char *name)
{
	struct serving_gateway **link = &serving->gateways;

	while (*link && strcmp((*link)->name, name) != 0)
		link = &(*link)->next;
	return link;
}

/* It goes into a header of the dashboard's page. */
static bool is_url(const char *url)
{
	size_t scheme = strncmp(url, "https://", 8) == 0  ? 8
	                : strncmp(url, "http://", 7) == 0 ? 7
	                                                  : 0;

	for (const char *at = url + scheme; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr("-.:[]", *at))
			return false;
	return scheme > 0 && url[scheme] != '\0' && strlen(url) < URL_MAX;
}

void serving_hear_hello(struct serving *serving, const char *name, const char *url)
{
	struct serving_gateway **link = find(serving, name);

	if (!*link) {
		*link = NEW(struct serving_gateway);
		(*link)->name = memory_text(name);
	}
	(*link)->url[0] = '\0';
	if (is_url(url))
		memcpy((*link)->url, url, strlen(url) + 1);
}

/* Nothing that it says makes a sum overflow. */
static int64_t counted(int64_t said)
{
	return min64(max64(said, 0), INT64_C(1) << 40);
}

static void hear_demand(struct serving_gateway *gateway, const Gateway__Demand *demand)
{
	if (demand->waiting <= 0 || gateway->queue_count >= ROWS_MAX)
		return;
	array_reserve(gateway->queues, gateway->queue_capacity, gateway->queue_count + 1);
	gateway->queues[gateway->queue_count++] =
	    (struct queue_row){ demand->model_id,
		                { demand->tenant_id, counted(demand->waiting),
		                  counted(demand->oldest_ms), counted(demand->tokens) } };
}

static void hear_speed(struct serving_gateway *gateway, const Gateway__Speed *said)
{
	if (gateway->speed_count >= ROWS_MAX)
		return;
	array_reserve(gateway->speeds, gateway->speed_capacity, gateway->speed_count + 1);
	struct speed_row *speed = &gateway->speeds[gateway->speed_count++];
	*speed = (struct speed_row){ .model_id = said->model_id,
		                     .answers = counted(said->answers),
		                     .tokens = counted(said->tokens),
		                     .over_ms = max64(said->over_ms, OVER_LEAST_MS) };
	for (size_t i = 0; i < said->n_first_token && i < DURATION_BUCKETS; i++)
		speed->first_token[i] = counted(said->first_token[i]);
}

static void hear_occupied(struct serving_gateway *gateway, const Gateway__Occupied *occupied)
{
	if (occupied->requests <= 0 || gateway->slot_count >= ROWS_MAX)
		return;
	array_reserve(gateway->slots, gateway->slot_capacity, gateway->slot_count + 1);
	gateway->slots[gateway->slot_count++] =
	    (struct slot_row){ occupied->slot_id, counted(occupied->requests) };
}

void serving_hear_load(struct serving *serving, const char *name, const Gateway__Load *load)
{
	struct serving_gateway *gateway = *find(serving, name);

	if (!gateway)
		return;
	gateway->queue_count = gateway->speed_count = gateway->slot_count = 0;
	for (size_t i = 0; i < load->n_occupied; i++)
		hear_occupied(gateway, load->occupied[i]);
	for (size_t i = 0; i < load->n_demands; i++)
		hear_demand(gateway, load->demands[i]);
	for (size_t i = 0; i < load->n_speeds; i++)
		hear_speed(gateway, load->speeds[i]);
}

void serving_forget(struct serving *serving, const char *name)
{
	struct serving_gateway **link = find(serving, name), *gateway = *link;

	if (!gateway)
		return;
	*link = gateway->next;
	free(gateway->queues);
	free(gateway->speeds);
	free(gateway->slots);
	free(gateway->name);
	free(gateway);
}

void serving_free(struct serving *serving)
{
	while (serving->gateways)
		serving_forget(serving, serving->gateways->name);
}

static void add_waiting(struct serving_model *seen, const struct serving_waiting *waiting)
{
	int at = 0;

	seen->oldest_wait_ms = max64(seen->oldest_wait_ms, waiting->oldest_ms);
	while (at < seen->waiting_count && seen->waiting[at].tenant_id != waiting->tenant_id)
		at++;
	if (at == SERVING_WAITING_MAX)
		return;
	if (at == seen->waiting_count)
		seen->waiting[seen->waiting_count++] =
		    (struct serving_waiting){ .tenant_id = waiting->tenant_id };
	seen->waiting[at].requests += waiting->requests;
	seen->waiting[at].tokens += waiting->tokens;
	seen->waiting[at].oldest_ms = max64(seen->waiting[at].oldest_ms, waiting->oldest_ms);
}

static int longest_first(const void *left, const void *right)
{
	const struct serving_waiting *a = left, *b = right;

	return (a->oldest_ms < b->oldest_ms) - (a->oldest_ms > b->oldest_ms);
}

static void add_gateway(const struct serving_gateway *gateway, int64_t model_id,
                        int64_t *first_token, struct serving_model *seen)
{
	for (size_t i = 0; i < gateway->queue_count; i++)
		if (gateway->queues[i].model_id == model_id)
			add_waiting(seen, &gateway->queues[i].waiting);
	for (size_t i = 0; i < gateway->speed_count; i++) {
		const struct speed_row *speed = &gateway->speeds[i];
		if (speed->model_id != model_id)
			continue;
		seen->answers += speed->answers;
		seen->tokens_per_1000s += speed->tokens * 1000000 / speed->over_ms;
		for (int at = 0; at < DURATION_BUCKETS; at++)
			first_token[at] += speed->first_token[at];
	}
}

void serving_look(const struct serving *serving, int64_t model_id, struct serving_model *seen)
{
	int64_t first_token[DURATION_BUCKETS] = { 0 };

	*seen = (struct serving_model){ .oldest_wait_ms = -1 };
	for (const struct serving_gateway *at = serving->gateways; at; at = at->next)
		add_gateway(at, model_id, first_token, seen);
	qsort(seen->waiting, (size_t)seen->waiting_count, sizeof(seen->waiting[0]), longest_first);
	seen->first_token_p50_ms = duration_percentile_ms(first_token, 50);
	seen->first_token_p99_ms = duration_percentile_ms(first_token, 99);
}

int64_t serving_in_slot(const struct serving *serving, int64_t slot_id)
{
	int64_t requests = 0;

	for (const struct serving_gateway *at = serving->gateways; at; at = at->next)
		for (size_t i = 0; i < at->slot_count; i++)
			if (at->slots[i].slot_id == slot_id)
				requests += at->slots[i].requests;
	return requests;
}

const char *serving_url(const struct serving *serving, const char *after)
{
	bool found = !after;

	for (const struct serving_gateway *at = serving->gateways; at; at = at->next) {
		if (found && at->url[0])
			return at->url;
		found = found || at->url == after;
	}
	return NULL;
}
