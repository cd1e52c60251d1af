/* foretell_command.c - gpu-sim predict: how well run times are predicted */
#include "sim/trace/foretell_command.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "sim/trace/foretell.h"
#include "sim/world/options.h"

enum { EXIT_USAGE = 2, EXPERTS_DEFAULT = 8192, JOBS_DEFAULT = 32768 };

struct options {
	const char *trace, *warm;
	int64_t experts, jobs;
	bool json;
};

static bool foretell_read_options(struct options *options, int argc, char **argv)
{
	static const struct option table[] = {
		OPTION("--trace", NULL, "CSV", "jobs to predict",
		       STORES_TEXT(struct options, trace)),
		OPTION("--warm", NULL, "CSV", "jobs to learn from first",
		       STORES_TEXT(struct options, warm)),
		OPTION("--experts", NULL, "N", "most experts to keep; 8192",
		       STORES_NUMBER(struct options, experts, EXPERTS_MIN, 10000000)),
		OPTION("--jobs", NULL, "N",
		       "finished jobs to predict from, up to twice that; 32768",
		       STORES_NUMBER(struct options, jobs, 1, 10000000)),
		OPTION("--json", NULL, NULL, "print JSON", STORES_FLAG(struct options, json)),
		{ 0 },
	};

	if (!options_read(table, argc, argv, options))
		return false;
	if (options->trace)
		return true;
	fprintf(stderr, "gpu-sim: predict needs --trace, a CSV file of jobs\n");
	return false;
}

static void foretell_print_table(const struct foretell_scores *scores)
{
	printf("%" PRId64 " jobs scored, %" PRId64 " experts\n\n", scores->jobs, scores->experts);
	printf("%8s %8s %8s %8s\n", "in2x", "pin50", "pin90", "cov90");
	printf("%7.1f%% %8.2f %8.2f %7.1f%%\n\n", 100 * scores->in2x, scores->pin50, scores->pin90,
	       100 * scores->cov90);
	printf("%8s %8s %8s %10s %10s %9s\n", "age", "jobs", "in2x", "soon said", "soon seen",
	       "soon AUC");
	for (int i = 0; i < FORETELL_AGES; i++) {
		const struct foretell_rest *rest = &scores->rest[i];
		printf("%6" PRId64 " s %8" PRId64, foretell_ages_s[i], rest->jobs);
		if (rest->jobs > 0)
			printf(" %7.1f%% %9.1f%% %9.1f%%", 100 * rest->in2x, 100 * rest->soon_said,
			       100 * rest->soon_seen);
		else
			printf(" %8s %10s %10s", "-", "-", "-");
		if (rest->soon_auc >= 0)
			printf(" %9.2f\n", rest->soon_auc);
		else
			printf(" %9s\n", "-");
	}
	printf("\nin2x: within a factor of two of the median; pin50, pin90: pinball loss of log2;\n"
	       "cov90: ended by the 90th percentile; soon: within ten minutes\n");
}

/* A number that says something only if there were any jobs. */
static json_t *number_or_null(bool known, double number)
{
	return known ? json_real(number) : json_null();
}

static void foretell_print_json(const struct foretell_scores *scores)
{
	json_t *list = json_array();

	for (int i = 0; i < FORETELL_AGES; i++) {
		const struct foretell_rest *rest = &scores->rest[i];
		bool known = rest->jobs > 0;
		json_array_append_new(
		    list, json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "age_s",
		                    (json_int_t)foretell_ages_s[i], "jobs", (json_int_t)rest->jobs,
		                    "in2x", number_or_null(known, 100 * rest->in2x), "soon_said",
		                    number_or_null(known, 100 * rest->soon_said), "soon_seen",
		                    number_or_null(known, 100 * rest->soon_seen), "soon_auc",
		                    number_or_null(rest->soon_auc >= 0, rest->soon_auc)));
	}
	json_t *line = json_pack(
	    "{s:I, s:f, s:f, s:f, s:f, s:o, s:I}", "jobs", (json_int_t)scores->jobs, "in2x",
	    100 * scores->in2x, "pin50", scores->pin50, "pin90", scores->pin90, "cov90",
	    100 * scores->cov90, "rest", list, "experts", (json_int_t)scores->experts);
	json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
	putchar('\n');
	json_decref(line);
}

static bool read_histories(const struct options *options, struct history *warm,
                           struct history *trace)
{
	struct error error = { 0 };

	if ((!options->warm || history_read(warm, options->warm, &error)) &&
	    history_read(trace, options->trace, &error))
		return true;
	fprintf(stderr, "gpu-sim: %s\n", error.text);
	return false;
}

int foretell_main(int argc, char **argv)
{
	struct options options = { .experts = EXPERTS_DEFAULT, .jobs = JOBS_DEFAULT };
	struct history warm = { 0 }, trace = { 0 };
	struct foretell_scores scores;
	struct learner learner;

	if (!foretell_read_options(&options, argc, argv))
		return EXIT_USAGE;
	bool fine = read_histories(&options, &warm, &trace);
	if (fine) {
		const struct foretell_bounds bounds = { options.experts, options.jobs };
		learner_init(&learner);
		if (options.warm)
			foretell_run(&learner, &bounds, &warm, NULL);
		foretell_run(&learner, &bounds, &trace, &scores);
		learner_free(&learner);
		if (options.json)
			foretell_print_json(&scores);
		else
			foretell_print_table(&scores);
	}
	history_free(&warm);
	history_free(&trace);
	return fine ? 0 : EXIT_USAGE;
}
