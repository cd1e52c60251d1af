/* report.c - what was measured: a table for people, and JSON for programs */
#include "core/bench/report.h"

#include <string.h>

#include "base/error.h"

enum goal { NO_GOAL, AT_LEAST, AT_MOST };

static const struct metric {
	const char *name, *unit;
	enum goal goal;
	double target;
} metrics[] = {
	{ "queue_push_per_s", "/s", AT_LEAST, 5000000 },
	{ "queue_pop_per_s", "/s", AT_LEAST, 5000000 },
	{ "queue_remove_per_s", "/s", AT_LEAST, 5000000 },
	{ "queue_position_per_s", "/s", AT_LEAST, 5000000 },
	{ "placements_per_s", "/s", AT_LEAST, 100000 },
	{ "placements_single_per_s", "/s", NO_GOAL, 0 },
	{ "placements_fragment_per_s", "/s", AT_LEAST, 100000 },
	{ "placements_of_fragment", "", AT_LEAST, 0.8 },
	{ "gang_pass_ms", "ms", AT_MOST, 50 },
	{ "big_submit_per_s", "/s", NO_GOAL, 0 },
	{ "big_first_pass_s", "s", AT_MOST, 2 },
	{ "big_change_pass_ms", "ms", AT_MOST, 10 },
	{ "big_change_pass_max_ms", "ms", NO_GOAL, 0 },
	{ "big_budgeted_pass_max_ms", "ms", AT_MOST, 50 },
	{ "big_arrival_pass_max_ms", "ms", AT_MOST, 50 },
	{ "big_memory_mib", "MiB", AT_MOST, 2048 },
	{ "reclaim_pass_ms", "ms", AT_MOST, 100 },
	{ "reclaim_evictions", "jobs", NO_GOAL, 0 },
	{ "warm_routes_per_s", "/s", AT_LEAST, 1000000 },
	{ "evict_plans_per_s", "/s", AT_LEAST, 10000 },
	{ "predict_us", "us", AT_MOST, 20 },
	{ "learn_us", "us", AT_MOST, 20 },
};
enum { METRICS = sizeof(metrics) / sizeof(metrics[0]) };
_Static_assert(METRICS <= METRICS_MAX, "a report has room for all metrics");

void report_put(struct report *report, const char *name, enum size size, double value)
{
	int at = 0;
	while (at < METRICS && strcmp(metrics[at].name, name) != 0)
		at++;
	INVARIANT(at < METRICS);
	report->of[at][size].value = value;
	report->of[at][size].measured = true;
}

/* Large numbers in groups of three digits, small ones with three decimals. */
static void print_value(char text[32], double value)
{
	char digits[32];
	if (value < 1000) {
		snprintf(text, 32, "%.3f", value);
		return;
	}
	int count = snprintf(digits, sizeof(digits), "%.0f", value);
	for (int i = 0; i < count; i++) {
		if (i > 0 && (count - i) % 3 == 0)
			*text++ = ',';
		*text++ = digits[i];
	}
	*text = '\0';
}

static bool is_met(const struct metric *metric, double value)
{
	return metric->goal == AT_LEAST ? value >= metric->target : value <= metric->target;
}

static void print_target(char text[40], const struct metric *metric)
{
	char value[32];
	text[0] = '\0';
	if (metric->goal == NO_GOAL)
		return;
	print_value(value, metric->target);
	char *point = strchr(value, '.'), *end = value + strlen(value);
	while (point && end[-1] == '0')
		*--end = '\0';
	if (end - 1 == point)
		*point = '\0';
	snprintf(text, 40, "%s %s", metric->goal == AT_LEAST ? ">=" : "<=", value);
}

int report_print(const struct report *report, FILE *file)
{
	int missed = 0;
	fprintf(file, "%-25s %12s  %-5s %-12s %-7s %15s\n", "benchmark", "value", "unit", "target",
	        "", "twice the size");
	for (int i = 0; i < METRICS; i++) {
		const struct metric *metric = &metrics[i];
		char value[32] = "-", twice[32] = "-", target[40];
		const char *verdict = "";
		if (report->of[i][SIZE_TWICE].measured)
			print_value(twice, report->of[i][SIZE_TWICE].value);
		if (report->of[i][SIZE_ONCE].measured) {
			print_value(value, report->of[i][SIZE_ONCE].value);
			if (metric->goal != NO_GOAL)
				verdict = is_met(metric, report->of[i][SIZE_ONCE].value) ? "ok"
				                                                         : "missed";
		}
		missed += strcmp(verdict, "missed") == 0;
		print_target(target, metric);
		fprintf(file, "%-25s %12s  %-5s %-12s %-7s %15s\n", metric->name, value,
		        metric->unit, target, verdict, twice);
	}
	return missed;
}

bool report_write(const struct report *report, const char *path)
{
	FILE *file = fopen(path, "w");
	const char *before = "{\n";
	if (!file)
		return false;
	for (int i = 0; i < METRICS; i++) {
		for (enum size size = 0; size < SIZES; size++) {
			if (!report->of[i][size].measured)
				continue;
			fprintf(file, "%s  \"%s%s\": %.3f", before, metrics[i].name,
			        size == SIZE_TWICE ? "_2x" : "", report->of[i][size].value);
			before = ",\n";
		}
	}
	fprintf(file, "%s}\n", before[0] == '{' ? "{" : "\n");
	bool written = !ferror(file);
	return fclose(file) == 0 && written;
}
