/* tenants_command.c - gpu-sim serve --tenants: a model that many tenants ask for too much */
#include "sim/serve/serve_command.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/serve/serve_server.h"
#include "sim/serve/tenants_run.h"
#include "sim/world/options.h"
#include "sim/world/progress.h"

enum { EXIT_USAGE = 2, REPLICAS_MOST = 256, HOURS_MOST = 24, WEIGHT_ONE = 1000 };
#define GPU_GB 76.0 /* usable, of 80 */

struct options {
	const char *rates, *lengths, *models, *scale, *weights, *policies;
	int64_t from_hour, hours, replicas, places, seed;
	bool tenants, json;
};

struct tenants_study {
	struct options options;
	struct serve_trace models; /* the kinds alone */
	struct tenants_trace trace;
	struct tenants_setup setup;
	enum tenants_policy policies[TENANTS_POLICIES];
	struct tenants_result results[TENANTS_POLICIES];
	int count;
};

static bool tenants_read_options(struct options *options, int argc, char **argv)
{
	static const struct option table[] = {
		OPTION("--tenants", NULL, NULL, "one model, and tenants that ask it too much",
		       STORES_FLAG(struct options, tenants)),
		OPTION("--rates", NULL, "CSV", "requests of each tenant, as ServeGen has them",
		       STORES_TEXT(struct options, rates)),
		OPTION("--lengths", NULL, "CSV", "lengths of prompts and answers, likewise",
		       STORES_TEXT(struct options, lengths)),
		OPTION("--models", NULL, "CSV", "the model: the first row",
		       STORES_TEXT(struct options, models)),
		OPTION("--scale", NULL, "K", "part of the rates; 0.01",
		       STORES_TEXT(struct options, scale)),
		OPTION("--from-hour", NULL, "N", "where in the day it begins; 0",
		       STORES_NUMBER(struct options, from_hour, 0, HOURS_MOST - 1)),
		OPTION("--hours", NULL, "N", "how long it lasts; 24",
		       STORES_NUMBER(struct options, hours, 1, HOURS_MOST)),
		OPTION("--replicas", NULL, "N", "replicas, with a GPU of 80 GB each; 1",
		       STORES_NUMBER(struct options, replicas, 1, REPLICAS_MOST)),
		OPTION("--places", NULL, "N", "requests at once in a replica; 4",
		       STORES_NUMBER(struct options, places, 1, SERVER_BATCH_MAX)),
		OPTION("--weights", NULL, "W[,W...]", "weights of the tenants, in turn; 1",
		       STORES_TEXT(struct options, weights)),
		OPTION("--seed", NULL, "S", "of what is drawn; 1",
		       STORES_NUMBER(struct options, seed, 0, INT64_MAX)),
		OPTION("--policy", NULL, "P[,P...]", "fifo, ours; all",
		       STORES_TEXT(struct options, policies)),
		OPTION("--json", NULL, NULL, "print JSON, a line for each policy",
		       STORES_FLAG(struct options, json)),
		{ 0 },
	};

	if (!options_read(table, argc, argv, options))
		return false;
	if (options->rates && options->lengths && options->models)
		return true;
	fprintf(stderr,
	        "gpu-sim: serve --tenants needs --rates, --lengths and --models, CSV files\n");
	return false;
}

/* A number from `least` to `most` at `text`, up to a comma or the end; where it ends, or NULL. */
static const char *tenants_read_real(const char *name, const char *text, double least, double most,
                                     double *number)
{
	char *end;
	double value = strtod(text, &end);

	if (end != text && (*end == '\0' || *end == ',') && value >= least && value <= most) {
		*number = value;
		return end;
	}
	fprintf(stderr, "gpu-sim: %s is '%s': it must be made of numbers from %g to %g\n", name,
	        text, least, most);
	return NULL;
}

static bool read_weights(struct tenants_setup *setup, const char *text)
{
	while (text && *text) {
		double weight;
		if (setup->weight_count == WEIGHTS_MOST) {
			fprintf(stderr, "gpu-sim: --weights has more than %d weights\n",
			        WEIGHTS_MOST);
			return false;
		}
		text = tenants_read_real("--weights", text, 0.001, 1000, &weight);
		if (!text)
			return false;
		setup->weights[setup->weight_count++] = (int64_t)(weight * WEIGHT_ONE + 0.5);
		text += *text == ',';
	}
	return true;
}

static bool tenants_add_policy(void *context, const char *name)
{
	struct tenants_study *study = context;

	for (int p = 0; p < TENANTS_POLICIES && study->count < TENANTS_POLICIES; p++)
		if (strcmp(tenants_policies[p], name) == 0) {
			study->policies[study->count++] = (enum tenants_policy)p;
			return true;
		}
	return false;
}

static bool tenants_read(struct tenants_study *study, struct error *error)
{
	const struct options *options = &study->options;
	struct tenants_choice choice = { .from_hour = options->from_hour,
		                         .hours = options->hours,
		                         .scale = 0.01,
		                         .seed = (uint64_t)options->seed };

	if (options->scale &&
	    !tenants_read_real("--scale", options->scale, 1e-6, 100, &choice.scale))
		return error_set(error, ERROR_INVALID, "--scale is one number");
	if (!serve_trace_read_kinds(&study->models, options->models, error))
		return false;
	study->setup.kind = study->models.kinds[0];
	study->setup.kv_gb = GPU_GB - study->setup.kind.weights_gb - study->setup.kind.overhead_gb;
	if (study->setup.kv_gb <= 0)
		return error_set(error, ERROR_INVALID, "model %s does not fit on a GPU of 80 GB",
		                 study->setup.kind.name);
	choice.longest = study->setup.kind.longest;
	study->setup.replicas = (int)options->replicas;
	study->setup.places = (int)options->places;
	study->setup.hours = (double)options->hours;
	return tenants_trace_read(&study->trace, options->rates, options->lengths, &choice, error);
}

static void tenants_print_table(const struct tenants_study *study)
{
	printf("%d tenants, %zu requests in %" PRId64 " h, %" PRId64 " replicas with %" PRId64
	       " places\n\n",
	       study->trace.tenants, study->trace.count, study->options.hours,
	       study->options.replicas, study->options.places);
	printf("%-7s %8s %10s %9s %10s %10s %10s %9s %9s %8s\n", "policy", "overload", "served/ask",
	       "by share", "alone mean", "p99", "most", "spread", "bound", "refused");
	for (int i = 0; i < study->count; i++) {
		const struct tenants_result *at = &study->results[i];
		printf("%-7s %7.2fx %10.4f %9.4f %8.1f s %8.1f s %8.1f s %9" PRId64 " %9" PRId64
		       " %8" PRId64 "\n",
		       tenants_policies[study->policies[i]], at->overload, at->jain, at->jain_share,
		       at->alone_mean_s, at->alone_p99_s, at->alone_most_s, at->spread, at->bound,
		       at->refused);
	}
}

static void tenants_print_json(const struct tenants_study *study)
{
	for (int i = 0; i < study->count; i++) {
		const struct tenants_result *at = &study->results[i];
		json_t *line = json_pack(
		    "{s:s, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I}", "policy",
		    tenants_policies[study->policies[i]], "tenants", at->tenants, "overload",
		    at->overload, "jain", at->jain, "jain_share", at->jain_share,
		    "alone_ttft_mean_s", at->alone_mean_s, "alone_ttft_p99_s", at->alone_p99_s,
		    "alone_ttft_most_s", at->alone_most_s, "ttft_mean_s", at->first_mean_s,
		    "spread", (json_int_t)at->spread, "bound", (json_int_t)at->bound, "refused",
		    (json_int_t)at->refused);
		json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
		putchar('\n');
		json_decref(line);
	}
}

static void tenants_on_tick(void *context)
{
	progress_add(context, 1);
}

static void tenants_serve(struct tenants_study *study)
{
	struct progress progress =
	    progress_begin("serve", (int64_t)study->count * (int64_t)study->trace.count);

	for (int i = 0; i < study->count; i++)
		tenants_run(&study->trace, &study->setup, study->policies[i], &study->results[i],
		            tenants_on_tick, &progress);
	progress_end(&progress);
	if (study->options.json)
		tenants_print_json(study);
	else
		tenants_print_table(study);
}

int tenants_main(int argc, char **argv)
{
	struct tenants_study study = {
		.options = { .hours = HOURS_MOST, .replicas = 1, .places = 4, .seed = 1 }
	};
	struct error error = { 0 };

	if (!tenants_read_options(&study.options, argc, argv) ||
	    !read_weights(&study.setup, study.options.weights) ||
	    !options_policies(study.options.policies, tenants_policies, TENANTS_POLICIES,
	                      tenants_add_policy, &study))
		return EXIT_USAGE;
	bool fine = tenants_read(&study, &error);
	if (fine)
		tenants_serve(&study);
	else
		fprintf(stderr, "gpu-sim: %s\n", error.text);
	tenants_trace_free(&study.trace);
	serve_trace_free(&study.models);
	return fine ? 0 : EXIT_USAGE;
}
