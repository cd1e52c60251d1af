/* jct_command.c - gpu-sim jct: how long jobs take under a policy */
#include "sim/trace/jct_command.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "core/record/types.h"
#include "sim/trace/jct_trace.h"
#include "sim/world/chart.h"
#include "sim/world/options.h"
#include "sim/world/progress.h"

enum { EXIT_REFUSED = 1, EXIT_USAGE = 2, POLICIES_MAX = 16, POINTS = 200 };

struct options {
	const char *trace, *policies, *plot;
	int64_t nodes, gpus, cost_s, load;
	bool json, tenants, unpredicted;
};

/* What came of one policy. Times in seconds. */
struct summary {
	const struct jct_policy *policy;
	double mean, p50, p90, p99;
	double wait_mean, wait_p50, wait_p90, wait_p99, longest_wait;
	double used;     /* of all GPU time up to the last submission */
	double fairness; /* Jain's index of what part of its time each job ran */
	double seconds;
	int64_t preemptions;
	int64_t pointless;
	struct jct_promises promises;
	double suspends;             /* for each job */
	double lost_hours;           /* GPU time that stops took */
	double x[POINTS], y[POINTS]; /* completion times, and % of jobs that took no longer */
	struct usage usage;
};

struct study {
	struct options options;
	struct philly philly;
	struct jct_world world;
	struct summary summaries[POLICIES_MAX];
	int count;
};

static bool jct_read_options(struct options *options, int argc, char **argv)
{
	static const struct option table[] = {
		OPTION("--trace", NULL, "CSV",
		       "jobs, as in philly.csv, or a history as for predict",
		       STORES_TEXT(struct options, trace)),
		OPTION("--nodes", NULL, "N", "nodes of the cluster; 64, or by --load",
		       STORES_NUMBER(struct options, nodes, 1, 10000)),
		OPTION("--load", NULL, "PERCENT",
		       "stretch time so that jobs ask for this much of the GPUs",
		       STORES_NUMBER(struct options, load, 1, 1000)),
		OPTION("--gpus", NULL, "N", "GPUs of a node; 8",
		       STORES_NUMBER(struct options, gpus, 1, PARTS_MAX)),
		OPTION("--policy", NULL, "P[,P...]", "policies; all",
		       STORES_TEXT(struct options, policies)),
		OPTION("--cost", NULL, "SECONDS", "lost by a preemption",
		       STORES_NUMBER(struct options, cost_s, 0, 86400)),
		OPTION("--tenants", NULL, NULL, "virtual clusters are tenants",
		       STORES_FLAG(struct options, tenants)),
		OPTION("--no-predictions", NULL, NULL, "predict no run times",
		       STORES_FLAG(struct options, unpredicted)),
		OPTION("--plot", NULL, "SVG", "write charts", STORES_TEXT(struct options, plot)),
		OPTION("--json", NULL, NULL, "print JSON", STORES_FLAG(struct options, json)),
		{ 0 },
	};

	if (!options_read(table, argc, argv, options))
		return false;
	if (options->trace)
		return true;
	fprintf(stderr, "gpu-sim: jct needs --trace, a CSV file as philly.csv\n");
	return false;
}

static bool add_policy(void *context, const char *name)
{
	struct study *study = context;
	const struct jct_policy *policy = jct_policy(name);

	if (!policy || study->count == POLICIES_MAX)
		return false;
	study->summaries[study->count++].policy = policy;
	return true;
}

/* Those that are named; all without names. */
static bool choose_policies(struct study *study)
{
	const char *names[POLICIES_MAX];

	for (int i = 0; i < jct_policy_count; i++)
		names[i] = jct_policies[i].name;
	return options_policies(study->options.policies, names, (size_t)jct_policy_count,
	                        add_policy, study);
}

static int by_value(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return (one > other) - (one < other);
}

/* Of a sorted list: what a part of all does not exceed. */
static double at_part(const double *sorted, size_t count, double part)
{
	return sorted[(size_t)fmin((double)count * part, (double)count - 1)];
}

static double mean_of(const double *values, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += values[i];
	return sum / (double)count;
}

static void sum_up_completion(struct summary *summary, double *took, size_t count)
{
	summary->mean = mean_of(took, count);
	qsort(took, count, sizeof(*took), by_value);
	summary->p50 = at_part(took, count, 0.5);
	summary->p90 = at_part(took, count, 0.9);
	summary->p99 = at_part(took, count, 0.99);
	for (int i = 0; i < POINTS; i++) {
		double part = (i + 1.0) / POINTS;
		summary->x[i] = log10(fmax(at_part(took, count, part), 1));
		summary->y[i] = 100 * part;
	}
}

static void sum_up_wait(struct summary *summary, double *waited, size_t count)
{
	summary->wait_mean = mean_of(waited, count);
	qsort(waited, count, sizeof(*waited), by_value);
	summary->wait_p50 = at_part(waited, count, 0.5);
	summary->wait_p90 = at_part(waited, count, 0.9);
	summary->wait_p99 = at_part(waited, count, 0.99);
}

static void sum_up(const struct study *study, struct summary *summary,
                   const struct jct_result *result)
{
	size_t count = study->philly.count;
	const struct philly_job *jobs = study->philly.jobs;
	double *took = memory_alloc(count * sizeof(*took));
	double *waited = memory_alloc(count * sizeof(*waited)), sum = 0, squares = 0;

	for (size_t i = 0; i < count; i++) {
		took[i] = (double)result->completion_ms[i] / 1000;
		waited[i] = took[i] - (double)jobs[i].duration_ms / 1000;
		double part = took[i] > 0 ? (double)jobs[i].duration_ms / 1000 / took[i] : 1;
		sum += part;
		squares += part * part;
	}
	sum_up_completion(summary, took, count);
	sum_up_wait(summary, waited, count);
	summary->fairness = squares > 0 ? sum * sum / ((double)count * squares) : 1;
	double span = (double)(jobs[count - 1].submit_ms - jobs[0].submit_ms);
	double capacity = span * (double)(study->world.nodes * study->world.gpus);
	summary->used = capacity > 0 ? (double)result->served_ms / capacity : 0;
	summary->longest_wait = (double)result->longest_wait_ms / 1000;
	summary->preemptions = result->preemptions;
	summary->pointless = result->pointless;
	summary->promises = result->promises;
	summary->suspends = (double)result->suspends / (double)count;
	summary->lost_hours = (double)result->lost_ms / 3600000;
	free(took);
	free(waited);
}

static void jct_tick(void *context, int64_t ended)
{
	progress_add(context, ended);
}

static bool run_policy(struct study *study, struct summary *summary, struct progress *progress,
                       struct error *error)
{
	double began = clock_s(CLOCK_MONOTONIC);
	struct jct_result result = { .completion_ms =
		                         memory_zero(study->philly.count, sizeof(int64_t)) };
	bool fine = jct_run(&study->philly, &study->world, summary->policy, &result, jct_tick,
	                    progress, error);

	if (fine)
		sum_up(study, summary, &result);
	free(result.completion_ms);
	summary->usage = result.usage;
	summary->seconds = clock_s(CLOCK_MONOTONIC) - began;
	return fine;
}

static double percent_of(int64_t part, int64_t all)
{
	return all > 0 ? 100.0 * (double)part / (double)all : 0;
}

/* Of those policies that promise starts. */
static void jct_print_promises(const struct study *study)
{
	for (int i = 0; i < study->count; i++) {
		const struct jct_promises *at = &study->summaries[i].promises;
		if (at->given == 0)
			continue;
		printf("\n%s: %" PRId64 " starts promised, %.1f%% kept; %.1f%% by the likely time; "
		       "%.0f s ahead on average, %.0f s waited\n",
		       study->summaries[i].policy->name, at->given, percent_of(at->kept, at->given),
		       percent_of(at->likely, at->given),
		       (double)at->ahead_ms / 1000 / (double)at->given,
		       (double)at->wait_ms / 1000 / (double)at->given);
	}
}

static void jct_print_table(const struct study *study)
{
	double count = (double)study->philly.count;

	printf("%zu jobs, %" PRId64 " nodes of %" PRId64 " GPUs; times in seconds\n\n",
	       study->philly.count, study->world.nodes, study->world.gpus);
	printf("%-10s %8s %8s %8s %8s %8s %8s %8s %8s %9s %7s %7s %7s %6s %6s %8s\n", "policy",
	       "jct mean", "p50", "p90", "p99", "wait", "p50", "p90", "p99", "longest", "stops",
	       "susp.", "lost h", "used", "Jain", "took");
	for (int i = 0; i < study->count; i++) {
		const struct summary *at = &study->summaries[i];
		printf(
		    "%-10s %8.0f %8.0f %8.0f %8.0f %8.0f %8.0f %8.0f %8.0f %9.0f %7.3f %7.3f %7.0f "
		    "%5.1f%% %6.3f %8.1f\n",
		    at->policy->name, at->mean, at->p50, at->p90, at->p99, at->wait_mean,
		    at->wait_p50, at->wait_p90, at->wait_p99, at->longest_wait,
		    (double)at->preemptions / count, at->suspends, at->lost_hours, 100 * at->used,
		    at->fairness, at->seconds);
	}
	printf("\nwait: completion less what the job runs; longest: without running at all, at a "
	       "time;\nstops: kills and suspends for each job; susp.: suspends alone; lost h: GPU "
	       "hours "
	       "that they took;\nused: of all GPU time up to the last "
	       "arrival;\nJain: index of the part of its time that each job ran; took: this "
	       "simulation\n");
	for (int i = 0; i < study->count; i++)
		if (study->summaries[i].preemptions > 0)
			printf("\n%s: %" PRId64 " stops, of which %" PRId64
			       " were pointless (the job would have ended while room was made)\n",
			       study->summaries[i].policy->name, study->summaries[i].preemptions,
			       study->summaries[i].pointless);
	jct_print_promises(study);
}

static void jct_print_json(const struct study *study)
{
	for (int i = 0; i < study->count; i++) {
		const struct summary *at = &study->summaries[i];
		json_t *line =
		    json_pack("{s:s, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:f, s:f}", "policy",
		              at->policy->name, "jct_mean_s", at->mean, "jct_p50_s", at->p50,
		              "jct_p99_s", at->p99, "wait_mean_s", at->wait_mean, "preemptions",
		              (json_int_t)at->preemptions, "pointless", (json_int_t)at->pointless,
		              "promises", (json_int_t)at->promises.given, "promises_kept",
		              percent_of(at->promises.kept, at->promises.given), "promises_likely",
		              percent_of(at->promises.likely, at->promises.given));
		json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
		putchar('\n');
		json_decref(line);
	}
}

/* GPUs by virtual cluster, of ours or else of the last policy. */
static struct chart chart_usage(const struct study *study, struct usage_lines *lines)
{
	static const char *const unnamed[] = { "all" };
	const char *const *names =
	    study->philly.cluster_count > 0 ? study->philly.clusters : unnamed;
	int shown = study->count - 1;

	for (int i = 0; i < study->count; i++)
		if (study->summaries[i].policy == jct_policy("ours"))
			shown = i;
	struct chart chart = usage_chart(&study->summaries[shown].usage, names,
	                                 (double)(study->world.nodes * study->world.gpus), lines);
	snprintf(lines->title, sizeof(lines->title), "GPUs over time by virtual cluster, under %s",
	         study->summaries[shown].policy->name);
	return chart;
}

static struct chart chart_completion(const struct study *study)
{
	struct chart chart = { .title = "Completion times",
		               .x_label = "seconds, power of ten",
		               .y_label = "% of jobs that took no longer",
		               .x_from = 1,
		               .x_to = 6.5,
		               .y_from = 0,
		               .y_to = 100 };

	for (int i = 0; i < study->count; i++)
		chart.series[chart.series_count++] =
		    (struct chart_series){ study->summaries[i].policy->name, study->summaries[i].x,
			                   study->summaries[i].y, POINTS };
	return chart;
}

static bool write_plot(const struct study *study, struct error *error)
{
	struct usage_lines *lines = NEW(struct usage_lines);
	const struct chart charts[] = { chart_completion(study), chart_usage(study, lines) };
	bool fine = charts_write(charts, 2, study->options.plot, error);

	free(lines);
	return fine;
}

static int complain(const struct error *error, int status)
{
	fprintf(stderr, "gpu-sim: %s\n", error->text);
	return status;
}

static int run_study(struct study *study)
{
	struct error error = { 0 };
	bool fine = true;

	if (!jct_trace_read(&study->philly, study->options.trace, &error))
		return complain(&error, EXIT_USAGE);
	if (study->options.load > 0)
		jct_trace_load(&study->philly, &study->world, study->options.load);
	struct progress progress =
	    progress_begin("jct", study->count * (int64_t)study->philly.count);
	for (int i = 0; i < study->count && fine; i++)
		fine = run_policy(study, &study->summaries[i], &progress, &error);
	progress_end(&progress);
	if (!fine)
		return complain(&error, EXIT_REFUSED);
	if (study->options.json)
		jct_print_json(study);
	else
		jct_print_table(study);
	if (study->options.plot && !write_plot(study, &error))
		return complain(&error, EXIT_USAGE);
	return 0;
}

int jct_main(int argc, char **argv)
{
	struct study study = { .options = { .gpus = 8, .cost_s = -1 } };
	const struct options *options = &study.options;

	if (!jct_read_options(&study.options, argc, argv) || !choose_policies(&study))
		return EXIT_USAGE;
	study.world.nodes = options->nodes > 0 || options->load > 0 ? options->nodes : 64;
	study.world.gpus = options->gpus;
	study.world.tenants = options->tenants;
	study.world.unpredicted = options->unpredicted;
	study.world.cost_ms = options->cost_s < 0 ? -1 : options->cost_s * 1000;
	int status = run_study(&study);
	for (int i = 0; i < study.count; i++)
		usage_free(&study.summaries[i].usage);
	philly_free(&study.philly);
	return status;
}
