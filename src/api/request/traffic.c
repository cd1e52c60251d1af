/* traffic.c - how many requests there were, how they ended and how long they took */
#include "api/request/traffic.h"

#include <inttypes.h>
#include <stdlib.h>

#include "api/request/route.h"
#include "api/text/metric.h"
#include "base/memory.h"

/* Each bucket is four times as wide as the one before. */
enum { BUCKETS = 9, CLASSES = 6, FIRST_US = 100 };

struct lane {
	int64_t by_class[CLASSES]; /* 2xx is [2] */
	int64_t buckets[BUCKETS + 1];
	int64_t count, sum_us;
};

/* Lanes of the routes of the first table, then of the second, then of those without one. */
struct traffic {
	const struct route *tables[2];
	size_t counts[2];
	struct lane *lanes;
	size_t count;
};

static size_t count_routes(const struct route *table)
{
	size_t count = 0;
	while (table[count].path)
		count++;
	return count;
}

struct traffic *traffic_new(const struct route *rest, const struct route *grpc)
{
	struct traffic *traffic = NEW(struct traffic);
	traffic->tables[0] = rest;
	traffic->tables[1] = grpc;
	for (int i = 0; i < 2; i++)
		traffic->count += traffic->counts[i] = count_routes(traffic->tables[i]);
	traffic->count++;
	traffic->lanes = memory_zero(traffic->count, sizeof(*traffic->lanes));
	return traffic;
}

void traffic_free(struct traffic *traffic)
{
	if (!traffic)
		return;
	free(traffic->lanes);
	free(traffic);
}

static struct lane *lane_of(const struct traffic *traffic, const struct route *route)
{
	size_t before = 0;
	for (int i = 0; route && i < 2; before += traffic->counts[i], i++) {
		uintptr_t from = (uintptr_t)traffic->tables[i], at = (uintptr_t)route;
		if (at >= from && at < (uintptr_t)(traffic->tables[i] + traffic->counts[i]))
			return &traffic->lanes[before + (size_t)(route - traffic->tables[i])];
	}
	return &traffic->lanes[traffic->count - 1];
}

void traffic_add(struct traffic *traffic, const struct route *route, int status, int64_t took_us)
{
	struct lane *lane = lane_of(traffic, route);
	int bucket = 0;
	for (int64_t edge_us = FIRST_US; bucket < BUCKETS && took_us > edge_us; edge_us *= 4)
		bucket++;
	lane->buckets[bucket]++;
	lane->by_class[status >= 100 && status < 600 ? status / 100 : 5]++;
	lane->count++;
	lane->sum_us += took_us;
}

static void print_labels(const struct traffic *traffic, struct buffer *text, size_t place)
{
	bool is_grpc = place >= traffic->counts[0];
	const struct route *route =
	    is_grpc ? &traffic->tables[1][place - traffic->counts[0]] : &traffic->tables[0][place];
	if (route->path)
		buffer_print(text, "method=\"%s\",path=\"%s\"", method_text(route->method),
		             route->path);
	else
		buffer_text(text, "method=\"\",path=\"\"");
}

static void print_counts(const struct traffic *traffic, struct buffer *text)
{
	metric_head(text, METRIC_HTTP_REQUESTS_TOTAL);
	for (size_t i = 0; i < traffic->count; i++) {
		for (int class = 1; class < CLASSES; class ++) {
			if (traffic->lanes[i].by_class[class] == 0)
				continue;
			buffer_print(text, "%s{", metric_name(METRIC_HTTP_REQUESTS_TOTAL));
			print_labels(traffic, text, i);
			buffer_print(text, ",status=\"%dxx\"} %" PRId64 "\n", class,
			             traffic->lanes[i].by_class[class]);
		}
	}
}

static void print_lane(const struct traffic *traffic, size_t place, struct buffer *text)
{
	const struct lane *lane = &traffic->lanes[place];
	const char *name = metric_name(METRIC_HTTP_REQUEST_DURATION_SECONDS);
	int64_t below = 0, edge_us = FIRST_US;
	for (int bucket = 0; bucket <= BUCKETS; bucket++, edge_us *= 4) {
		below += lane->buckets[bucket];
		buffer_print(text, "%s_bucket{", name);
		print_labels(traffic, text, place);
		if (bucket < BUCKETS)
			buffer_print(text, ",le=\"%g\"} %" PRId64 "\n", (double)edge_us / 1e6,
			             below);
		else
			buffer_print(text, ",le=\"+Inf\"} %" PRId64 "\n", below);
	}
	buffer_print(text, "%s_sum{", name);
	print_labels(traffic, text, place);
	buffer_print(text, "} %.6f\n%s_count{", (double)lane->sum_us / 1e6, name);
	print_labels(traffic, text, place);
	buffer_print(text, "} %" PRId64 "\n", lane->count);
}

void traffic_print(const struct traffic *traffic, struct buffer *text)
{
	print_counts(traffic, text);
	metric_head(text, METRIC_HTTP_REQUEST_DURATION_SECONDS);
	for (size_t i = 0; i < traffic->count; i++)
		if (traffic->lanes[i].count > 0)
			print_lane(traffic, i, text);
}
