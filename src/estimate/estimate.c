/* estimate.c - the GPU memory that a model takes, before anything is started */
#include "estimate/estimate.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "estimate/amount.h"
#include "estimate/parts.h"

/* What a runtime can be asked for. The lists of types begin and end with a space. */
static const struct {
	const char *name;
	enum model_format format;
	const char *format_name, *cache_types;
	bool one_cache_type; /* keys and values have the same */
} runtimes[ESTIMATE_RUNTIMES] = {
	[RUNTIME_LLAMA_CPP] = { "llama.cpp", MODEL_GGUF, "GGUF files",
	                        " f32 f16 bf16 q8_0 q5_1 q5_0 q4_1 q4_0 iq4_nl ", false },
	[RUNTIME_OLLAMA] = { "ollama", MODEL_GGUF, "GGUF files", " f16 q8_0 q4_0 ", true },
	[RUNTIME_VLLM] = { "vllm", MODEL_SAFETENSORS, "safetensors directories",
	                   " f32 f16 bf16 fp8 ", true },
};

static const char *const part_names[ESTIMATE_PARTS] = { "weights", "cache", "graph", "overhead" };

const char *estimate_runtime_name(enum estimate_runtime runtime)
{
	return runtimes[runtime].name;
}

bool estimate_runtime_find(const char *name, enum estimate_runtime *runtime)
{
	for (int i = 0; i < ESTIMATE_RUNTIMES; i++) {
		if (strcmp(runtimes[i].name, name) == 0) {
			*runtime = (enum estimate_runtime)i;
			return true;
		}
	}
	return false;
}

const char *estimate_part_name(enum estimate_part part)
{
	return part_names[part];
}

struct estimate_request estimate_defaults(const struct blueprint *blueprint)
{
	return (struct estimate_request){
		.runtime = blueprint->format == MODEL_GGUF ? RUNTIME_LLAMA_CPP : RUNTIME_VLLM,
		.context_tokens = blueprint->context_length,
		.parallel = 1,
		.key_type = tensor_type_of_cache("f16"),
		.value_type = tensor_type_of_cache("f16"),
		.gpus = 1,
	};
}

void estimate_line_set(struct estimate_line *line, int64_t bytes, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(line->text, sizeof(line->text), format, arguments);
	va_end(arguments);
	line->mib = amount_mib(bytes);
}

int64_t estimate_token_bytes(const struct blueprint_layer *layer, int64_t heads,
                             const struct estimate_request *request)
{
	/* What a layer without a cache says of its heads need not make sense. */
	if (heads == 0)
		return 0;
	int64_t keys = tensor_type_row_bytes(request->key_type, layer->key_length);
	int64_t values = tensor_type_row_bytes(request->value_type, layer->value_length);
	INVARIANT(keys >= 0 && values >= 0);
	return amount_product(heads, amount_sum(keys, values));
}

static bool check_range(const char *what, int64_t number, int64_t most, struct error *error)
{
	if (number >= 1 && number <= most)
		return true;
	return error_set(error, ERROR_INVALID, "%s is %lld: expected 1 to %lld", what,
	                 (long long)number, (long long)most);
}

static bool runtime_knows(enum estimate_runtime runtime, const struct tensor_type *type)
{
	char word[32];
	snprintf(word, sizeof(word), " %s ", type->name);
	return strstr(runtimes[runtime].cache_types, word) != NULL;
}

static bool check_cache_type(const struct estimate_request *request, const struct tensor_type *type,
                             struct error *error)
{
	if (runtime_knows(request->runtime, type))
		return true;
	return error_set(error, ERROR_INVALID, "%s has no cache of %s; it has:%s",
	                 runtimes[request->runtime].name, type->name,
	                 runtimes[request->runtime].cache_types);
}

/* That each head's keys and values fill whole blocks. */
static bool check_blocks(const struct blueprint *blueprint, const struct estimate_request *request,
                         struct error *error)
{
	for (int64_t i = 0; i < blueprint->layer_count; i++) {
		const struct blueprint_layer *layer = &blueprint->layers[i];
		const struct tensor_type *type = request->key_type;
		int64_t length = layer->key_length;
		if (layer->kv_heads == 0)
			continue;
		if (length % type->block_values == 0) {
			type = request->value_type;
			length = layer->value_length;
		}
		if (length % type->block_values != 0)
			return error_set(
			    error, ERROR_IMPOSSIBLE,
			    "the %lld values of a head do not fill whole blocks of %d, "
			    "as a cache of %s needs: choose f16",
			    (long long)length, type->block_values, type->name);
	}
	return true;
}

static bool check_cache(const struct blueprint *blueprint, const struct estimate_request *request,
                        struct error *error)
{
	if (!check_cache_type(request, request->key_type, error) ||
	    !check_cache_type(request, request->value_type, error))
		return false;
	if (runtimes[request->runtime].one_cache_type && request->key_type != request->value_type)
		return error_set(
		    error, ERROR_INVALID,
		    "%s keeps keys and values as one type, not keys as %s and values as %s",
		    runtimes[request->runtime].name, request->key_type->name,
		    request->value_type->name);
	if (request->plain_attention && request->runtime == RUNTIME_VLLM)
		return error_set(error, ERROR_INVALID, "vllm always uses flash attention");
	if (request->plain_attention && request->value_type->block_values > 1)
		return error_set(
		    error, ERROR_IMPOSSIBLE,
		    "values kept as %s need flash attention: choose f16 or leave it on",
		    request->value_type->name);
	return check_blocks(blueprint, request, error);
}

static bool check_shares(const struct estimate_request *request, struct error *error)
{
	int64_t sum = 0;
	for (int i = 0; i < request->gpus; i++) {
		if (request->share[i] < 0 || request->share[i] > ESTIMATE_SHARE_MAX)
			return error_set(error, ERROR_INVALID,
			                 "the share of GPU %d is %lld: expected 0 to %d", i,
			                 (long long)request->share[i], ESTIMATE_SHARE_MAX);
		sum += request->share[i];
	}
	if (sum > 0 && request->runtime == RUNTIME_VLLM)
		return error_set(error, ERROR_INVALID,
		                 "vllm splits a model evenly; shares are for llama.cpp and ollama");
	return true;
}

static bool estimate_check(const struct blueprint *blueprint,
                           const struct estimate_request *request, struct error *error)
{
	if (blueprint->format != runtimes[request->runtime].format)
		return error_set(
		    error, ERROR_INVALID, "%s is estimated for %s, and this is not one",
		    runtimes[request->runtime].name, runtimes[request->runtime].format_name);
	if (!check_range("the number of GPUs", request->gpus, ESTIMATE_GPUS_MAX, error) ||
	    !check_range("parallel", request->parallel, ESTIMATE_PARALLEL_MAX, error))
		return false;
	if (request->context_tokens == 0)
		return error_set(error, ERROR_INVALID,
		                 "the model does not say how long its context is: give --context");
	if (!check_range("context", request->context_tokens, ESTIMATE_CONTEXT_MAX, error))
		return false;
	if (request->batch_tokens != 0 &&
	    !check_range("batch", request->batch_tokens, ESTIMATE_CONTEXT_MAX, error))
		return false;
	return check_shares(request, error) && check_cache(blueprint, request, error);
}

static bool estimate_add_up(struct estimate *estimate, struct error *error)
{
	for (int i = 0; i < estimate->gpus; i++) {
		struct estimate_gpu *gpu = &estimate->gpu[i];
		for (int part = 0; part < ESTIMATE_PARTS; part++)
			gpu->total_mib = amount_sum(gpu->total_mib, gpu->line[part].mib);
		estimate->total_mib = amount_sum(estimate->total_mib, gpu->total_mib);
		estimate->largest_mib = max64(estimate->largest_mib, gpu->total_mib);
	}
	/* A sum of bytes that came to the end of the numbers is that many MiB. */
	if (estimate->largest_mib < amount_mib(INT64_MAX))
		return true;
	return error_set(error, ERROR_IMPOSSIBLE, "it comes to more memory than can be counted");
}

bool estimate_make(struct estimate *estimate, const struct blueprint *blueprint,
                   const struct estimate_request *request, struct error *error)
{
	INVARIANT(blueprint->layer_count > 0);
	*estimate = (struct estimate){ 0 };
	if (!estimate_check(blueprint, request, error))
		return false;
	estimate->gpus = request->gpus;
	bool made = request->runtime == RUNTIME_VLLM
	                ? estimate_tensors(estimate, blueprint, request, error)
	                : estimate_layers(estimate, blueprint, request, error);
	return made && estimate_add_up(estimate, error);
}
