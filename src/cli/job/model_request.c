/* model_request.c - the model that options ask for */
#include "cli/job/model_request.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "cli/job/field_request.h"
#include "cli/text/quantity.h"
#include "estimate/estimate.h"
#include "estimate/model_files.h"

enum { SPLITS_MAX = 16 };

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

static bool set_memory(const struct arguments *arguments, bool is_new, json_t *model,
                       struct error *error)
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
	if (!memory && is_new)
		return error_set(error, ERROR_INVALID,
		                 "no memory given: --gpu-memory SIZE, or --from FILE to have it "
		                 "estimated");
	if ((memory && !quantity_memory("--gpu-memory", memory, &mib, error)) ||
	    !read_splits(arguments, splits, &count, error))
		return false;
	if (memory)
		json_object_set_new(model, "gpu_memory_mb", json_integer(mib));
	json_t *list = count > 0 ? json_array() : NULL;
	for (int i = 0; i < count; i++)
		json_array_append_new(list, json_integer(splits[i]));
	if (list)
		json_object_set_new(model, "splits", list);
	return true;
}

/* Tokens, as people write them: 8k. */
static bool read_tokens(struct session *session, const struct resource_field *field, json_t *model,
                        struct error *error)
{
	const char *text = arguments_value(session->arguments, field->option.name);
	int64_t number;
	if (!text)
		return true;
	if (!options_number(field->option.name, text, field->most, &number, error))
		return false;
	json_object_set_new(model, field->name, json_integer(number));
	return true;
}

static bool read_variables(struct session *session, const struct resource_field *field,
                           json_t *model, struct error *error)
{
	return field_request_pairs(session, field, true, model, error);
}

static const struct special_field special_fields[] = {
	{ "gpu_memory_mb", NULL },
	{ "splits", NULL },
	{ "context_length", read_tokens },
	{ "environment", read_variables },
	{ "secret_environment", read_variables },
	{ NULL, NULL },
};

static void set_arguments(const struct arguments *arguments, json_t *model)
{
	json_t *words = arguments->after_dashes > 0 ? json_array() : NULL;
	for (size_t i = arguments->operand_count - arguments->after_dashes;
	     i < arguments->operand_count; i++)
		json_array_append_new(words, json_string(arguments->operands[i]));
	if (words)
		json_object_set_new(model, "args", words);
}

json_t *model_request(struct session *session, bool is_new, struct error *error)
{
	const struct arguments *arguments = session->arguments;
	json_t *model = json_object();
	if (arguments_value(arguments, "--command"))
		json_object_set_new(model, "runtime", json_string("custom"));
	set_arguments(arguments, model);
	if (field_request(session, &model_resource, special_fields, model, error) &&
	    set_memory(arguments, is_new, model, error))
		return model;
	json_decref(model);
	return NULL;
}
