/* model_request.c - the model that options ask for */
#include "cli/job/model_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "cli/text/quantity.h"
#include "estimate/estimate.h"
#include "estimate/model_files.h"

enum { SPLITS_MAX = 16, NUMBER_MAX = 1 << 30 };

static bool read_splits(const struct arguments *arguments, int64_t *splits, int *count,
                        struct error *error)
{
	const char *text = arguments_value(arguments, "--splits");
	*count = 0;
	if (text)
		*count = options_numbers("--splits", text, SPLITS_MAX, splits, SPLITS_MAX, error);
	return *count >= 0;
}

/* The request that the estimate is for. */
static bool read_request(const struct arguments *arguments, struct estimate_request *request,
                         struct error *error)
{
	const char *context = arguments_value(arguments, "--context-length"),
		   *parallel = arguments_value(arguments, "--parallel"),
		   *cache = arguments_value(arguments, "--kv"),
		   *runtime = arguments_value(arguments, "--runtime");
	if (runtime && !estimate_runtime_find(runtime, &request->runtime))
		return error_set(
		    error, ERROR_INVALID,
		    "--from estimates for llama.cpp, ollama and vllm: give --gpu-memory "
		    "instead");
	if (cache) {
		request->key_type = request->value_type = tensor_type_of_cache(cache);
		if (!request->key_type)
			return error_set(error, ERROR_INVALID,
			                 "invalid --kv '%.20s': expected one of %s", cache,
			                 tensor_type_cache_names());
	}
	return (!context || options_number("--context-length", context, ESTIMATE_CONTEXT_MAX,
	                                   &request->context_tokens, error)) &&
	       (!parallel || options_number("--parallel", parallel, ESTIMATE_PARALLEL_MAX,
	                                    &request->parallel, error));
}

/* The memory of one slot on each of `gpus` GPUs; 0 with the reason if it cannot be split so. */
static int64_t estimate_each(const struct blueprint *blueprint, struct estimate_request *request,
                             int gpus, struct error *error)
{
	struct estimate *estimate = NEW(struct estimate);
	request->gpus = gpus;
	bool made = estimate_make(estimate, blueprint, request, error);
	int64_t largest = made ? estimate->largest_mib : 0;
	free(estimate);
	return largest;
}

static bool set_estimate(const struct arguments *arguments, const char *path, json_t *model,
                         struct error *error)
{
	struct blueprint blueprint;
	int64_t splits[SPLITS_MAX], whole = 0;
	int count;
	bool good = model_files_read(&blueprint, path, error);
	struct estimate_request request = { 0 };
	json_t *list = json_array();
	if (good) {
		request = estimate_defaults(&blueprint);
		good = read_request(arguments, &request, error) &&
		       read_splits(arguments, splits, &count, error);
	}
	if (good && count == 0)
		splits[count++] = 1;
	for (int i = 0; good && i < count; i++) {
		int64_t each = estimate_each(&blueprint, &request, (int)splits[i], error);
		good = each > 0;
		whole = max64(whole, each * splits[i]);
		json_array_append_new(list, json_pack("{s:I, s:I}", "gpus", (json_int_t)splits[i],
		                                      "memory_mb", (json_int_t)each));
	}
	if (good) {
		json_object_set_new(model, "gpu_memory_mb", json_integer(whole));
		json_object_set(model, "splits", list);
		if (!arguments_value(arguments, "--runtime"))
			json_object_set_new(model, "runtime",
			                    json_string(estimate_runtime_name(request.runtime)));
		if (!arguments_value(arguments, "--path"))
			json_object_set_new(model, "path", json_string(path));
	}
	json_decref(list);
	blueprint_free(&blueprint);
	return good;
}

static bool set_memory(const struct arguments *arguments, json_t *model, struct error *error)
{
	const char *from = arguments_value(arguments, "--from"),
		   *memory = arguments_value(arguments, "--gpu-memory");
	int64_t mib, splits[SPLITS_MAX];
	int count;
	if (from && memory)
		return error_set(error, ERROR_INVALID,
		                 "--from estimates what --gpu-memory says: give one of them");
	if (from)
		return set_estimate(arguments, from, model, error);
	if (!memory)
		return error_set(
		    error, ERROR_INVALID,
		    "how much memory does it take? Give --gpu-memory SIZE, or --from FILE "
		    "to have it estimated");
	if (!quantity_memory("--gpu-memory", memory, &mib, error) ||
	    !read_splits(arguments, splits, &count, error))
		return false;
	json_object_set_new(model, "gpu_memory_mb", json_integer(mib));
	json_t *list = count > 0 ? json_array() : NULL;
	for (int i = 0; i < count; i++)
		json_array_append_new(list, json_integer(splits[i]));
	if (list)
		json_object_set_new(model, "splits", list);
	return true;
}

static bool set_number(const struct arguments *arguments, json_t *model, const char *option,
                       const char *key, struct error *error)
{
	const char *text = arguments_value(arguments, option);
	int64_t number;
	if (!text)
		return true;
	bool good = strcmp(option, "--context-length") == 0
	                ? options_number(option, text, NUMBER_MAX, &number, error)
	                : quantity_integer(option, text, 0, NUMBER_MAX, &number, error);
	if (good)
		json_object_set_new(model, key, json_integer(number));
	return good;
}

static bool set_time(const struct arguments *arguments, json_t *model, const char *option,
                     const char *key, struct error *error)
{
	const char *text = arguments_value(arguments, option);
	int64_t ms;
	if (!text)
		return true;
	if (!quantity_duration(option, text, &ms, error))
		return false;
	char duration[40];
	snprintf(duration, sizeof(duration), "%lldms", (long long)ms);
	json_object_set_new(model, key, json_string(duration));
	return true;
}

static void set_texts(const struct arguments *arguments, json_t *model)
{
	static const struct {
		const char *option, *key;
	} texts[] = { { "--runtime", "runtime" },
		      { "--path", "path" },
		      { "--image", "image" },
		      { "--command", "command" },
		      { "--kv", "kv_cache_type" } };
	static const struct {
		const char *option, *key;
	} flags[] = { { "--prewarm", "prewarm" },
		      { "--pinned", "pinned" },
		      { "--shared", "shared" } };
	if (arguments_value(arguments, "--command"))
		json_object_set_new(model, "runtime", json_string("custom"));
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const char *text = arguments_value(arguments, texts[i].option);
		if (text)
			json_object_set_new(model, texts[i].key, json_string(text));
	}
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (arguments_has(arguments, flags[i].option))
			json_object_set_new(model, flags[i].key, json_true());
}

json_t *model_request(const struct arguments *arguments, struct error *error)
{
	json_t *model = json_object();
	set_texts(arguments, model);
	if (set_memory(arguments, model, error) &&
	    set_number(arguments, model, "--context-length", "context_length", error) &&
	    set_number(arguments, model, "--parallel", "parallel", error) &&
	    set_number(arguments, model, "--concurrency", "max_concurrency", error) &&
	    set_number(arguments, model, "--min", "min_replicas", error) &&
	    set_number(arguments, model, "--max", "max_replicas", error) &&
	    set_number(arguments, model, "--priority", "priority", error) &&
	    set_time(arguments, model, "--idle-ttl", "idle_ttl", error) &&
	    set_time(arguments, model, "--load-timeout", "load_timeout", error))
		return model;
	json_decref(model);
	return NULL;
}
