/* prefix_command.c - gpu-sim serve --prefix: replicas chosen by the beginnings of prompts */
#include "sim/serve/serve_command.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "sim/serve/prefix_run.h"
#include "sim/world/options.h"
#include "sim/world/progress.h"

enum { EXIT_USAGE = 2, REPLICAS_MOST = 1024, BLOCKS_MOST = 1000000 };
#define TOKEN_MS 0.1

struct options {
	const char *trace, *policies;
	int64_t replicas, blocks;
	bool prefix, json;
};

struct prefix_study {
	struct options options;
	struct prefix_trace trace;
	enum prefix_policy policies[PREFIX_POLICIES];
	struct prefix_result results[PREFIX_POLICIES];
	int count;
};

static bool prefix_read_options(struct options *options, int argc, char **argv)
{
	static const struct option table[] = {
		OPTION("--prefix", NULL, NULL,
		       "replicas of one model, and prompts that begin alike",
		       STORES_FLAG(struct options, prefix)),
		OPTION("--trace", NULL, "CSV", "requests: time_ms, input_tokens, blocks",
		       STORES_TEXT(struct options, trace)),
		OPTION("--replicas", NULL, "N", "replicas; 8",
		       STORES_NUMBER(struct options, replicas, 1, REPLICAS_MOST)),
		OPTION("--blocks", NULL, "N", "blocks of 512 tokens in each replica's cache; 2000",
		       STORES_NUMBER(struct options, blocks, 1, BLOCKS_MOST)),
		OPTION("--policy", NULL, "P[,P...]",
		       "one-cache, round-robin, least-queued, longest-prefix, ours; all",
		       STORES_TEXT(struct options, policies)),
		OPTION("--json", NULL, NULL, "print JSON, a line for each policy",
		       STORES_FLAG(struct options, json)),
		{ 0 },
	};

	if (!options_read(table, argc, argv, options))
		return false;
	if (options->trace)
		return true;
	fprintf(stderr, "gpu-sim: serve --prefix needs --trace, a CSV file\n");
	return false;
}

static bool prefix_add_policy(void *context, const char *name)
{
	struct prefix_study *study = context;

	for (int p = 0; p < PREFIX_POLICIES && study->count < PREFIX_POLICIES; p++)
		if (strcmp(prefix_policies[p], name) == 0) {
			study->policies[study->count++] = (enum prefix_policy)p;
			return true;
		}
	return false;
}

static void prefix_print_table(const struct prefix_study *study)
{
	printf("%zu requests, %" PRId64 " replicas with %" PRId64 " blocks of %d tokens each\n\n",
	       study->trace.count, study->options.replicas, study->options.blocks,
	       PREFIX_BLOCK_TOKENS);
	printf("%-15s %7s %11s %10s %10s %8s\n", "policy", "reused", "first mean", "first p50",
	       "first p99", "busiest");
	for (int i = 0; i < study->count; i++) {
		const struct prefix_result *at = &study->results[i];
		printf("%-15s %6.1f%% %9.2f s %8.2f s %8.2f s %7.2fx\n",
		       prefix_policies[study->policies[i]], 100 * at->reuse, at->first_mean_s,
		       at->first_p50_s, at->first_p99_s, at->busiest);
	}
}

static void prefix_print_json(const struct prefix_study *study)
{
	for (int i = 0; i < study->count; i++) {
		const struct prefix_result *at = &study->results[i];
		json_t *line = json_pack("{s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:I}", "policy",
		                         prefix_policies[study->policies[i]], "replicas",
		                         (json_int_t)study->options.replicas, "reuse", at->reuse,
		                         "ttft_mean_s", at->first_mean_s, "ttft_p50_s",
		                         at->first_p50_s, "ttft_p99_s", at->first_p99_s, "busiest",
		                         at->busiest, "refused", (json_int_t)at->refused);
		json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
		putchar('\n');
		json_decref(line);
	}
}

static void prefix_on_tick(void *context)
{
	progress_add(context, 1);
}

int prefix_main(int argc, char **argv)
{
	struct prefix_study study = { .options = { .replicas = 8, .blocks = 2000 } };
	struct error error = { 0 };

	if (!prefix_read_options(&study.options, argc, argv) ||
	    !options_policies(study.options.policies, prefix_policies, PREFIX_POLICIES,
	                      prefix_add_policy, &study))
		return EXIT_USAGE;
	if (!prefix_trace_read(&study.trace, study.options.trace, &error)) {
		fprintf(stderr, "gpu-sim: %s\n", error.text);
		prefix_trace_free(&study.trace);
		return EXIT_USAGE;
	}
	const struct prefix_setup setup = { .replicas = (int)study.options.replicas,
		                            .blocks = (int)study.options.blocks,
		                            .token_ms = TOKEN_MS };
	struct progress progress =
	    progress_begin("serve", (int64_t)study.count * (int64_t)study.trace.count);
	for (int i = 0; i < study.count; i++)
		prefix_run(&study.trace, &setup, study.policies[i], &study.results[i],
		           prefix_on_tick, &progress);
	progress_end(&progress);
	if (study.options.json)
		prefix_print_json(&study);
	else
		prefix_print_table(&study);
	prefix_trace_free(&study.trace);
	return 0;
}
