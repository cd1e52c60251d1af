/* gateway_view.c - what gateways say about models, for people to see */
#include <ctype.h>
#include <stdlib.h>

#include "api/gateway/gateways_local.h"
#include "base/memory.h"
#include "base/number.h"

enum { ROWS_MAX = 10000, OVER_LEAST_MS = 1000 };

/* It goes into a header of the dashboard's page. */
void view_take_url(struct gateway_peer *peer, const char *url)
{
	size_t size = strlen(url), scheme = strncmp(url, "https://", 8) == 0  ? 8
	                                    : strncmp(url, "http://", 7) == 0 ? 7
	                                                                      : 0;

	peer->url[0] = '\0';
	if (scheme == 0 || size == scheme || size >= sizeof(peer->url))
		return;
	for (const char *at = url + scheme; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr("-.:[]", *at))
			return;
	memcpy(peer->url, url, size + 1);
}

static void take_demand(struct gateway_peer *peer, const Gateway__Demand *demand)
{
	if (demand->waiting <= 0 || peer->waiting_count >= ROWS_MAX)
		return;
	array_reserve(peer->waiting, peer->waiting_capacity, peer->waiting_count + 1);
	peer->waiting[peer->waiting_count++] =
	    (struct gateway_waiting){ demand->model_id,
		                      { demand->tenant_id, demand->waiting,
		                        max64(demand->oldest_ms, 0), max64(demand->tokens, 0) } };
}

static void take_speed(struct gateway_peer *peer, const Gateway__Speed *said)
{
	if (peer->speed_count >= ROWS_MAX)
		return;
	array_reserve(peer->speeds, peer->speed_capacity, peer->speed_count + 1);
	struct gateway_speed *speed = &peer->speeds[peer->speed_count++];
	*speed = (struct gateway_speed){ .model_id = said->model_id,
		                         .answers = max64(said->answers, 0),
		                         .tokens = max64(said->tokens, 0),
		                         .over_ms = said->over_ms };
	for (size_t i = 0; i < said->n_first_token && i < LATENCY_BUCKETS; i++)
		speed->first_token[i] = max64(said->first_token[i], 0);
}

void view_take_load(struct gateway_peer *peer, const Gateway__Load *load)
{
	peer->waiting_count = peer->speed_count = 0;
	for (size_t i = 0; i < load->n_demands; i++)
		take_demand(peer, load->demands[i]);
	for (size_t i = 0; i < load->n_speeds; i++)
		take_speed(peer, load->speeds[i]);
}

static void add_waiting(struct gateways_model *seen, const struct gateways_waiting *waiting)
{
	int at = 0;

	seen->oldest_wait_ms = max64(seen->oldest_wait_ms, waiting->oldest_ms);
	while (at < seen->waiting_count && seen->waiting[at].tenant_id != waiting->tenant_id)
		at++;
	if (at == GATEWAYS_WAITING_MAX)
		return;
	if (at == seen->waiting_count)
		seen->waiting[seen->waiting_count++].tenant_id = waiting->tenant_id;
	seen->waiting[at].requests += waiting->requests;
	seen->waiting[at].tokens += waiting->tokens;
	seen->waiting[at].oldest_ms = max64(seen->waiting[at].oldest_ms, waiting->oldest_ms);
}

static int longest_first(const void *left, const void *right)
{
	const struct gateways_waiting *a = left, *b = right;

	return (a->oldest_ms < b->oldest_ms) - (a->oldest_ms > b->oldest_ms);
}

static void add_peer(const struct gateway_peer *peer, int64_t model_id, int64_t *first_token,
                     struct gateways_model *seen)
{
	for (size_t i = 0; i < peer->waiting_count; i++)
		if (peer->waiting[i].model_id == model_id)
			add_waiting(seen, &peer->waiting[i].of);
	for (size_t i = 0; i < peer->speed_count; i++) {
		const struct gateway_speed *speed = &peer->speeds[i];
		if (speed->model_id != model_id)
			continue;
		seen->answers += speed->answers;
		seen->tokens_per_1000s +=
		    speed->tokens * 1000000 / max64(speed->over_ms, OVER_LEAST_MS);
		for (int at = 0; at < LATENCY_BUCKETS; at++)
			first_token[at] += speed->first_token[at];
	}
}

void gateways_look_at_model(const struct gateways *gateways, int64_t model_id,
                            struct gateways_model *seen)
{
	int64_t first_token[LATENCY_BUCKETS] = { 0 };

	*seen = (struct gateways_model){ .oldest_wait_ms = -1 };
	for (const struct gateway_peer *peer = gateways->peers; peer; peer = peer->next)
		if (peer->link)
			add_peer(peer, model_id, first_token, seen);
	qsort(seen->waiting, (size_t)seen->waiting_count, sizeof(seen->waiting[0]), longest_first);
	seen->first_token_p50_ms = latency_percentile_ms(first_token, 50);
	seen->first_token_p99_ms = latency_percentile_ms(first_token, 99);
}

const char *gateways_url(const struct gateways *gateways, const char *after)
{
	bool found = !after;

	for (const struct gateway_peer *peer = gateways->peers; peer; peer = peer->next) {
		if (found && peer->link && peer->url[0])
			return peer->url;
		found = found || peer->url == after;
	}
	return NULL;
}
