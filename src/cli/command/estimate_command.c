/* estimate_command.c - gpu-cli estimate: the GPU memory that a model takes */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/commands.h"
#include "cli/job/estimate_report.h"
#include "cli/options.h"
#include "estimate/model_files.h"

/* What was asked for, as it was written; NULL where nothing was. */
struct wishes {
	const char *context, *parallel, *cache, *key_cache, *value_cache, *gpus, *shares, *batch,
	    *runtime, *output;
	bool plain_attention, explain;
};

static bool set_number(const char *name, const char *text, int64_t most, int64_t *number,
                       struct error *error)
{
	return !text || options_number(name, text, most, number, error);
}

static bool set_cache_type(const char *name, const char *text, const struct tensor_type **type,
                           struct error *error)
{
	if (!text)
		return true;
	*type = tensor_type_of_cache(text);
	return *type || error_set(error, ERROR_INVALID, "invalid %s '%.20s': expected one of %s",
	                          name, text, tensor_type_cache_names());
}

static bool set_runtime(const struct wishes *wishes, struct estimate_request *request,
                        struct error *error)
{
	if (!wishes->runtime || estimate_runtime_find(wishes->runtime, &request->runtime))
		return true;
	return error_set(error, ERROR_INVALID,
	                 "invalid --runtime '%.20s': expected llama.cpp, ollama or vllm",
	                 wishes->runtime);
}

/* Everything but the GPUs, over what the model has by default. */
static bool set_request(const struct wishes *wishes, struct estimate_request *request,
                        struct error *error)
{
	request->plain_attention = wishes->plain_attention;
	return set_runtime(wishes, request, error) &&
	       set_number("--context", wishes->context, ESTIMATE_CONTEXT_MAX,
	                  &request->context_tokens, error) &&
	       set_number("--parallel", wishes->parallel, ESTIMATE_PARALLEL_MAX, &request->parallel,
	                  error) &&
	       set_number("--batch", wishes->batch, ESTIMATE_CONTEXT_MAX, &request->batch_tokens,
	                  error) &&
	       set_cache_type("--kv", wishes->cache, &request->key_type, error) &&
	       set_cache_type("--kv", wishes->cache, &request->value_type, error) &&
	       set_cache_type("--kv-k", wishes->key_cache, &request->key_type, error) &&
	       set_cache_type("--kv-v", wishes->value_cache, &request->value_type, error);
}

/* The splits that were asked for: how many GPUs, or the shares of each. Returns
 * how many splits, or -1 with the reason. */
static int set_gpus(const struct wishes *wishes, struct estimate_request *request,
                    int64_t gpus[ESTIMATE_GPUS_MAX], struct error *error)
{
	gpus[0] = 1;
	if (wishes->gpus && wishes->shares) {
		error_set(error, ERROR_INVALID,
		          "--gpus and --shares cannot be given together: the shares say how many");
		return -1;
	}
	if (wishes->gpus)
		return options_numbers("--gpus", wishes->gpus, ESTIMATE_GPUS_MAX, gpus,
		                       ESTIMATE_GPUS_MAX, error);
	if (!wishes->shares)
		return 1;
	gpus[0] = options_numbers("--shares", wishes->shares, ESTIMATE_SHARE_MAX, request->share,
	                          ESTIMATE_GPUS_MAX, error);
	return gpus[0] > 0 ? 1 : -1;
}

/* Reads all options before the model's files, so that a misspelled option is reported at once. */
static bool check_wishes(const struct wishes *wishes, struct error *error)
{
	struct estimate_request request = { 0 };
	int64_t gpus[ESTIMATE_GPUS_MAX];
	if (wishes->output && strcmp(wishes->output, "table") != 0 &&
	    strcmp(wishes->output, "json") != 0)
		return error_set(error, ERROR_INVALID, "invalid -o '%.20s': expected table or json",
		                 wishes->output);
	return set_request(wishes, &request, error) && set_gpus(wishes, &request, gpus, error) > 0;
}

/* Prints what can be; if no split is possible, that is a failure. */
static int command_estimate_report(const struct wishes *wishes, const struct estimate_report *made)
{
	const struct error *reason = NULL;
	int possible = 0;
	for (int i = 0; i < made->count; i++) {
		if (made->splits[i].reason.code == ERROR_NONE)
			possible++;
		else if (!reason)
			reason = &made->splits[i].reason;
	}
	if (possible == 0)
		return cli_failed(&estimate_command, "%s", reason->text);
	if (wishes->output && strcmp(wishes->output, "json") == 0)
		estimate_report_json(made);
	else
		estimate_report_table(made);
	return CLI_FINE;
}

static int estimate_build(const struct wishes *wishes, const struct blueprint *blueprint)
{
	struct estimate_request request = estimate_defaults(blueprint);
	struct error error = { 0 };
	int64_t gpus[ESTIMATE_GPUS_MAX];
	int count = -1;
	if (set_request(wishes, &request, &error))
		count = set_gpus(wishes, &request, gpus, &error);
	if (count < 0)
		return cli_misused(&estimate_command, "%s", error.text);
	struct estimate_split *splits = memory_zero((size_t)count, sizeof(*splits));
	for (int i = 0; i < count; i++) {
		splits[i].request = request;
		splits[i].request.gpus = (int)gpus[i];
		estimate_make(&splits[i].estimate, blueprint, &splits[i].request,
		              &splits[i].reason);
	}
	const struct estimate_report made = { blueprint, splits, count, wishes->explain };
	int status = command_estimate_report(wishes, &made);
	free(splits);
	return status;
}

static const struct option options[] = {
	OPTION("--context", "-c", "N",
	       "tokens of each request: 32768, 8k (default: what the model was made for)"),
	OPTION("--parallel", "-p", "P", "requests at a time (default 1)"),
	OPTION("--kv", NULL, "TYPE",
	       "of the cache of keys and values: f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0, "
	       "iq4_nl, fp8 (default f16)",
	       .completes = COMPLETES_WORDS,
	       .words = "f32 f16 bf16 q8_0 q5_1 q5_0 q4_1 q4_0 iq4_nl fp8"),
	OPTION("--kv-k", NULL, "TYPE", "the same, for keys alone"),
	OPTION("--kv-v", NULL, "TYPE", "the same, for values alone"),
	OPTION("--gpus", "-g", "1,2,4",
	       "numbers of GPUs to split over, a row for each (default 1)"),
	OPTION("--shares", NULL, "3,1",
	       "split over as many GPUs as there are numbers, in these parts (llama.cpp, ollama)"),
	OPTION("--batch", NULL, "N", "tokens computed at once (default 512; vllm 8192)"),
	OPTION("--runtime", "-r", "NAME", "llama.cpp, ollama (GGUF) or vllm (safetensors)",
	       .completes = COMPLETES_WORDS, .words = "llama.cpp ollama vllm"),
	OPTION("--no-flash-attention", NULL, NULL, "as runtimes without it calculate"),
	OPTION("--output", "-o", "FORM", "table or json (default table)",
	       .completes = COMPLETES_WORDS, .words = "table json"),
	OPTION("--explain", NULL, NULL, "with the arithmetic of every number"),
	{ 0 },
};

static struct wishes wishes_of(const struct arguments *arguments)
{
	return (struct wishes){
		.context = arguments_value(arguments, "--context"),
		.parallel = arguments_value(arguments, "--parallel"),
		.cache = arguments_value(arguments, "--kv"),
		.key_cache = arguments_value(arguments, "--kv-k"),
		.value_cache = arguments_value(arguments, "--kv-v"),
		.gpus = arguments_value(arguments, "--gpus"),
		.shares = arguments_value(arguments, "--shares"),
		.batch = arguments_value(arguments, "--batch"),
		.runtime = arguments_value(arguments, "--runtime"),
		.output = arguments_value(arguments, "--output"),
		.plain_attention = arguments_has(arguments, "--no-flash-attention"),
		.explain = arguments_has(arguments, "--explain"),
	};
}

static int estimate_run(const struct arguments *arguments)
{
	struct wishes wishes = wishes_of(arguments);
	struct error error = { 0 };
	if (arguments->operand_count == 0)
		return cli_misused(&estimate_command, "which model? Give its file or directory");
	if (arguments->operand_count > 1)
		return cli_misused(&estimate_command, "unexpected argument '%.80s'",
		                   arguments->operands[1]);
	if (!check_wishes(&wishes, &error))
		return cli_misused(&estimate_command, "%s", error.text);

	struct blueprint blueprint;
	int status;
	if (model_files_read(&blueprint, arguments->operands[0], &error))
		status = estimate_build(&wishes, &blueprint);
	else
		status = cli_failed(&estimate_command, "%s", error.text);
	blueprint_free(&blueprint);
	return status;
}

const struct cli_command estimate_command = {
	.name = "estimate",
	.arguments = "FILE-or-DIRECTORY [OPTION...]",
	.summary = "the GPU memory that a model takes, before it is started",
	.details =
	    "The model is a GGUF file (one of several pieces stands for all), a safetensors\n"
	    "file with its config.json beside it, or a directory with either. Only headers\n"
	    "are read, so a model of any size takes no time.\n"
	    "\n"
	    "Memory is in MiB, rounded up. docs/estimates.md says how it is calculated.\n"
	    "It ends with 1 if the model cannot be read, or none of the splits is possible.\n",
	.examples = "estimate model.gguf --context 8k --parallel 4 --kv q8_0 --gpus 1,2,4\n",
	.options = options,
	.operand = COMPLETES_FILES,
	.run = estimate_run,
};
