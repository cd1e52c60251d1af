/* serve_command.c - gpu-sim serve: many models on few GPUs */
#include "sim/serve/serve_command.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/serve/serve.h"
#include "sim/world/options.h"
#include "sim/world/progress.h"

enum { EXIT_REFUSED = 1, EXIT_USAGE = 2, GPUS_MOST = 4096 };

struct options {
	const char *trace, *models, *policies, *sleep, *gpu_gb, *load_gbps, *start_s;
	int64_t first_models, gpus;
	bool one_per_gpu, json;
};

struct study {
	struct options options;
	struct serve_setup setup;
	struct serve_trace trace;
	enum serve_policy policies[SERVE_POLICIES];
	struct serve_result results[SERVE_POLICIES];
	int count;
};

static bool serve_read_options(struct options *options, int argc, char **argv)
{
	static const struct option table[] = {
		OPTION("--trace", NULL, "CSV",
		       "requests: time_ms, model, input_tokens, output_tokens",
		       STORES_TEXT(struct options, trace)),
		OPTION("--models", NULL, "CSV",
		       "what the models take, and how long their steps are",
		       STORES_TEXT(struct options, models)),
		OPTION("--first-models", NULL, "N", "only requests for models below N; all",
		       STORES_NUMBER(struct options, first_models, 1, SERVE_MODELS_MAX)),
		OPTION("--gpus", NULL, "N", "GPUs; 16",
		       STORES_NUMBER(struct options, gpus, 1, GPUS_MOST)),
		OPTION("--gpu-gb", NULL, "GB", "memory of each, of which 95 % are usable; 80",
		       STORES_TEXT(struct options, gpu_gb)),
		OPTION("--load-gbps", NULL, "GB/s", "how fast weights are loaded; 16",
		       STORES_TEXT(struct options, load_gbps)),
		OPTION("--start-s", NULL, "SECONDS", "what a load takes beside that; 0",
		       STORES_TEXT(struct options, start_s)),
		OPTION("--sleep", NULL, "none|home|any",
		       "where idle models sleep: none; home, on their GPU; any, in host memory",
		       STORES_TEXT(struct options, sleep), .words = "none home any"),
		OPTION("--one-per-gpu", NULL, NULL, "a slot takes a whole GPU",
		       STORES_FLAG(struct options, one_per_gpu)),
		OPTION("--policy", NULL, "P[,P...]", "static, lru, ours, ours-nosleep, oracle; all",
		       STORES_TEXT(struct options, policies)),
		OPTION("--json", NULL, NULL, "print JSON, a line for each policy",
		       STORES_FLAG(struct options, json)),
		{ 0 },
	};

	if (!options_read(table, argc, argv, options))
		return false;
	if (options->trace && options->models)
		return true;
	fprintf(stderr, "gpu-sim: serve needs --trace and --models, both CSV files\n");
	return false;
}

/* A number that need not be whole; `text` NULL leaves what there is. */
static bool read_real(const char *name, const char *text, double least, double *number)
{
	char *end;

	if (!text)
		return true;
	double value = strtod(text, &end);
	if (*text && !*end && isfinite(value) && value >= least && value <= 1e6) {
		*number = value;
		return true;
	}
	fprintf(stderr, "gpu-sim: %s is '%s': it must be a number from %g to 1000000\n", name, text,
	        least);
	return false;
}

static bool read_setup(struct study *study)
{
	const struct options *options = &study->options;

	study->setup = (struct serve_setup){ .gpus = (int)options->gpus,
		                             .gpu_gb = 80,
		                             .load_gbps = 16,
		                             .one_per_gpu = options->one_per_gpu };
	if (options->sleep && strcmp(options->sleep, "home") == 0)
		study->setup.sleep = SERVE_SLEEP_HOME;
	else if (options->sleep && strcmp(options->sleep, "any") == 0)
		study->setup.sleep = SERVE_SLEEP_ANY;
	return read_real("--gpu-gb", options->gpu_gb, 0.001, &study->setup.gpu_gb) &&
	       read_real("--load-gbps", options->load_gbps, 0.001, &study->setup.load_gbps) &&
	       read_real("--start-s", options->start_s, 0, &study->setup.start_s);
}

static bool serve_add_policy(void *context, const char *name)
{
	struct study *study = context;

	for (int p = 0; p < SERVE_POLICIES && study->count < SERVE_POLICIES; p++)
		if (strcmp(serve_policies[p], name) == 0) {
			study->policies[study->count++] = (enum serve_policy)p;
			return true;
		}
	return false;
}

static void print_table(const struct study *study)
{
	printf("%d models, %zu requests, %d GPUs of %g GB; a request is in time if its first token "
	       "comes within 10 s, and the others at 0.1 s each\n\n",
	       study->trace.models, study->trace.count, study->setup.gpus, study->setup.gpu_gb);
	printf("%-13s %8s %7s %7s %7s %9s %9s %8s %6s %6s %9s %6s %8s\n", "policy", "in time",
	       "first", "others", "worst", "first p50", "first p99", "goodput", "loads", "wakes",
	       "loading", "busy", "refused");
	for (int i = 0; i < study->count; i++) {
		const struct serve_result *at = &study->results[i];
		printf("%-13s %7.2f%% %6.2f%% %6.2f%% %6.2f%% %7.2f s %7.2f s %6.2f/s %6" PRId64
		       " %6" PRId64 " %8.2f%% %5.1f%% %8" PRId64 "\n",
		       serve_policies[study->policies[i]], 100 * at->attainment,
		       100 * at->first_share, 100 * at->next_share, 100 * at->worst_tenth,
		       at->first_p50_s, at->first_p99_s, at->goodput, at->loads, at->wakes,
		       100 * at->load_time_share, 100 * at->busy_share, at->refused);
	}
}

static void print_json(const struct study *study)
{
	for (int i = 0; i < study->count; i++) {
		const struct serve_result *at = &study->results[i];
		json_t *line = json_pack(
		    "{s:s, s:i, s:f, s:f, s:f, s:I, s:I, s:f, s:I, s:I, s:f, s:f, s:I}", "policy",
		    serve_policies[study->policies[i]], "models", study->trace.models, "attainment",
		    at->attainment, "worst_tenth", at->worst_tenth, "ttft_p99_s", at->first_p99_s,
		    "loads", (json_int_t)at->loads, "wakes", (json_int_t)at->wakes,
		    "load_time_share", at->load_time_share, "refused", (json_int_t)at->refused,
		    "cut", (json_int_t)at->cut, "goodput_per_s", at->goodput, "gpu_busy_share",
		    at->busy_share, "closed", (json_int_t)at->closed);
		json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
		putchar('\n');
		json_decref(line);
	}
}

static void on_tick(void *context)
{
	progress_add(context, 1);
}

static int run_study(struct study *study)
{
	struct error error = { 0 };
	const struct options *options = &study->options;

	if (!serve_trace_read(&study->trace, options->models, options->trace, options->first_models,
	                      &error)) {
		fprintf(stderr, "gpu-sim: %s\n", error.text);
		return EXIT_USAGE;
	}
	struct progress progress =
	    progress_begin("serve", (int64_t)study->count * (int64_t)study->trace.count);
	bool fine = true;
	for (int i = 0; i < study->count && fine; i++)
		fine = serve_run(&study->trace, &study->setup, study->policies[i],
		                 &study->results[i], on_tick, &progress, &error);
	progress_end(&progress);
	if (!fine) {
		fprintf(stderr, "gpu-sim: %s\n", error.text);
		return EXIT_REFUSED;
	}
	if (options->json)
		print_json(study);
	else
		print_table(study);
	return 0;
}

static bool has_option(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return false;
}

int serve_main(int argc, char **argv)
{
	struct study study = { .options = { .gpus = 16 } };

	if (has_option(argc, argv, "--prefix"))
		return prefix_main(argc, argv);
	if (has_option(argc, argv, "--tenants"))
		return tenants_main(argc, argv);
	if (!serve_read_options(&study.options, argc, argv) || !read_setup(&study) ||
	    !options_policies(study.options.policies, serve_policies, SERVE_POLICIES,
	                      serve_add_policy, &study))
		return EXIT_USAGE;
	int status = run_study(&study);
	serve_trace_free(&study.trace);
	return status;
}
