/* pack_command.c - gpu-sim pack: what a placement policy makes of a trace */
#include "sim/trace/pack_command.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "sim/trace/pack.h"
#include "sim/world/chart.h"
#include "sim/world/options.h"
#include "sim/world/progress.h"

enum { EXIT_REFUSED = 1, EXIT_USAGE = 2, SEEDS_MAX = 1000, POLICIES_MAX = PACK_POLICIES + 2 };

struct options {
	const char *nodes, *pods, *policies, *plot;
	int64_t seeds, seed;
	bool json;
};

/* What came of one policy, over all seeds. Percentages of the cluster's GPUs. */
struct summary {
	const struct pack_policy *policy;
	double percent[PACK_ARRIVED + 1]; /* means */
	double at_100, at_130, sd_at_130, lowest_at_130, highest_at_130, seconds;
	int64_t *arrived, *rejected; /* by kind of the trace */
};

struct study {
	struct options options;
	struct openb openb;
	int64_t seed_count, first_seed;
	struct summary summaries[POLICIES_MAX];
	int count;
};

static bool pack_read_options(struct options *options, int argc, char **argv)
{
	static const struct option table[] = {
		OPTION("--nodes", NULL, "CSV", "nodes, as in openb",
		       STORES_TEXT(struct options, nodes)),
		OPTION("--pods", NULL, "CSV", "pods, as in openb",
		       STORES_TEXT(struct options, pods)),
		OPTION("--policy", NULL, "P[,P...]", "policies; all",
		       STORES_TEXT(struct options, policies)),
		OPTION("--seeds", NULL, "N", "how many orders of the pods to try; 10",
		       STORES_NUMBER(struct options, seeds, 1, SEEDS_MAX)),
		OPTION("--seed", NULL, "S", "the first of them; 1",
		       STORES_NUMBER(struct options, seed, 1, INT64_MAX - SEEDS_MAX)),
		OPTION("--plot", NULL, "SVG", "write a chart", STORES_TEXT(struct options, plot)),
		OPTION("--json", NULL, NULL, "print JSON", STORES_FLAG(struct options, json)),
		{ 0 },
	};

	if (!options_read(table, argc, argv, options))
		return false;
	if (options->nodes && options->pods)
		return true;
	fprintf(stderr, "gpu-sim: pack needs --nodes and --pods, CSV files as in openb\n");
	return false;
}

static bool add_policy(void *context, const char *name)
{
	struct study *study = context;
	const struct pack_policy *policy = pack_policy(name);

	if (!policy || study->count == POLICIES_MAX)
		return false;
	study->summaries[study->count++].policy = policy;
	return true;
}

/* Those that are named; all without names. */
static bool choose_policies(struct study *study)
{
	const char *names[POLICIES_MAX];

	for (int i = 0; i < pack_policy_count; i++)
		names[i] = pack_policies[i].name;
	return options_policies(study->options.policies, names, (size_t)pack_policy_count,
	                        add_policy, study);
}

static void pack_tick(void *context, int percent)
{
	(void)percent;
	progress_add(context, 1);
}

/* Adds the result of a seed. */
static void add_result(const struct study *study, struct summary *summary,
                       const struct pack_result *result, int64_t number, double *squares)
{
	double whole = (double)study->openb.gpu_milli, seeds = (double)study->seed_count;
	double percent = 100 * (double)result->allocated[PACK_ARRIVED] / whole;

	for (int p = 0; p <= PACK_ARRIVED; p++)
		summary->percent[p] += 100 * (double)result->allocated[p] / whole / seeds;
	if (number == 0 || percent < summary->lowest_at_130)
		summary->lowest_at_130 = percent;
	if (number == 0 || percent > summary->highest_at_130)
		summary->highest_at_130 = percent;
	*squares += percent * percent;
}

static bool run_policy(struct study *study, struct summary *summary, struct progress *progress,
                       struct error *error)
{
	size_t kinds = study->openb.kind_count;
	double began = clock_s(CLOCK_MONOTONIC), squares = 0, seeds = (double)study->seed_count;

	summary->arrived = memory_zero(kinds, sizeof(*summary->arrived));
	summary->rejected = memory_zero(kinds, sizeof(*summary->rejected));
	for (int64_t i = 0; i < study->seed_count; i++) {
		struct pack_result result = { .arrived = summary->arrived,
			                      .rejected = summary->rejected };
		if (!pack_run(&study->openb, summary->policy, (uint64_t)(study->first_seed + i),
		              &result, pack_tick, progress, error))
			return false;
		add_result(study, summary, &result, i, &squares);
	}
	summary->at_100 = summary->percent[100];
	summary->at_130 = summary->percent[PACK_ARRIVED];
	double variance = study->seed_count > 1
	                      ? (squares - seeds * summary->at_130 * summary->at_130) / (seeds - 1)
	                      : 0;
	summary->sd_at_130 = sqrt(fmax(variance, 0));
	summary->seconds = clock_s(CLOCK_MONOTONIC) - began;
	return true;
}

static void pack_print_table(const struct study *study)
{
	printf("%zu nodes, %" PRId64 " GPUs, %zu pods, %" PRId64
	       " seeds; allocated GPUs in %% of the cluster's\n\n",
	       study->openb.node_count, study->openb.gpu_milli / WHOLE_GPU, study->openb.pod_count,
	       study->seed_count);
	printf("%-10s %12s %12s %8s %15s %9s\n", "policy", "at 100 %", "at 130 %", "sd",
	       "lowest-highest", "seconds");
	for (int i = 0; i < study->count; i++) {
		const struct summary *at = &study->summaries[i];
		printf("%-10s %12.2f %12.2f %8.2f %9.2f-%.2f %9.1f\n", at->policy->name, at->at_100,
		       at->at_130, at->sd_at_130, at->lowest_at_130, at->highest_at_130,
		       at->seconds);
	}
}

static void pack_print_json(const struct study *study)
{
	for (int i = 0; i < study->count; i++) {
		const struct summary *at = &study->summaries[i];
		json_t *line =
		    json_pack("{s:s, s:f, s:f, s:f, s:f}", "policy", at->policy->name,
		              "allocated_at_100", at->at_100, "allocated_at_130", at->at_130,
		              "sd_at_130", at->sd_at_130, "seconds", at->seconds);
		json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
		putchar('\n');
		json_decref(line);
	}
}

/* The sizes of pods, which rejections are counted by. */
static int64_t size_of(const struct openb_kind *kind)
{
	return kind->gpu_count > 1 ? openb_asks(kind) : kind->gpu_milli;
}

/* The smallest size above `above`; -1 if there is none. */
static int64_t next_size(const struct openb *openb, int64_t above)
{
	int64_t next = -1;

	for (size_t i = 0; i < openb->kind_count; i++) {
		int64_t size = size_of(&openb->kinds[i]);
		if (size > above && (next < 0 || size < next))
			next = size;
	}
	return next;
}

static void print_rejections(const struct study *study)
{
	const struct openb *openb = &study->openb;
	double seeds = (double)study->seed_count;

	printf("\nPods rejected up to 130 %% arrived, by the GPUs that they ask for (mean of the "
	       "seeds)\n\n%6s %10s",
	       "GPUs", "arrived");
	for (int p = 0; p < study->count; p++)
		printf(" %10s", study->summaries[p].policy->name);
	for (int64_t size = next_size(openb, -1); size >= 0; size = next_size(openb, size)) {
		double arrived = 0, rejected[POLICIES_MAX] = { 0 };
		for (size_t i = 0; i < openb->kind_count; i++) {
			if (size_of(&openb->kinds[i]) != size)
				continue;
			arrived += (double)study->summaries[0].arrived[i] / seeds;
			for (int p = 0; p < study->count; p++)
				rejected[p] += (double)study->summaries[p].rejected[i] / seeds;
		}
		printf("\n%6.2f %10.1f", (double)size / WHOLE_GPU, arrived);
		for (int p = 0; p < study->count; p++)
			printf(" %10.1f", rejected[p]);
	}
	putchar('\n');
}

static void print_tables(const struct study *study)
{
	pack_print_table(study);
	print_rejections(study);
}

static bool write_plot(const struct study *study, struct error *error)
{
	static double x[PACK_ARRIVED + 1];
	double lowest = 100;

	for (int p = 0; p <= PACK_ARRIVED; p++)
		x[p] = p;
	struct chart chart = { .title = "GPUs allocated as pods arrive",
		               .x_label = "asked for, % of the cluster's GPUs",
		               .y_label = "allocated, % of the cluster's GPUs",
		               .x_from = 70,
		               .x_to = PACK_ARRIVED,
		               .y_to = 100 };
	for (int i = 0; i < study->count; i++) {
		const struct summary *at = &study->summaries[i];
		chart.series[chart.series_count++] =
		    (struct chart_series){ at->policy->name, x, at->percent, PACK_ARRIVED + 1 };
		lowest = fmin(lowest, at->percent[(int)chart.x_from]);
	}
	chart.y_from = floor(lowest / 5) * 5;
	return charts_write(&chart, 1, study->options.plot, error);
}

static int complain(const struct error *error, int status)
{
	fprintf(stderr, "gpu-sim: %s\n", error->text);
	return status;
}

static int run_study(struct study *study)
{
	struct error error = { 0 };

	if (!openb_read(&study->openb, study->options.nodes, study->options.pods, &error))
		return complain(&error, EXIT_USAGE);
	struct progress progress =
	    progress_begin("pack", study->count * study->seed_count * PACK_ARRIVED);
	bool fine = true;
	for (int i = 0; i < study->count && fine; i++)
		fine = run_policy(study, &study->summaries[i], &progress, &error);
	progress_end(&progress);
	if (!fine)
		return complain(&error, EXIT_REFUSED);
	if (study->options.json)
		pack_print_json(study);
	else
		print_tables(study);
	if (study->options.plot && !write_plot(study, &error))
		return complain(&error, EXIT_USAGE);
	return 0;
}

int pack_main(int argc, char **argv)
{
	struct study study = { .options = { .seeds = 10, .seed = 1 } };

	if (!pack_read_options(&study.options, argc, argv) || !choose_policies(&study))
		return EXIT_USAGE;
	study.seed_count = study.options.seeds;
	study.first_seed = study.options.seed;
	int status = run_study(&study);
	for (int i = 0; i < study.count; i++) {
		free(study.summaries[i].arrived);
		free(study.summaries[i].rejected);
	}
	openb_free(&study.openb);
	return status;
}
