/* gguf_blueprint.c - what a model is made of, from the headers of its GGUF files */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "estimate/amount.h"
#include "estimate/gguf.h"

/* Reads the values of one architecture, whose keys begin with its name. The
 * first thing that is wrong is kept; what is wrong reads as 0. */
struct values {
	const struct gguf *gguf;
	const char *architecture;
	struct error *error;
	bool failed;
};

static const struct gguf_value *gguf_blueprint_find(const struct values *values, const char *name)
{
	char key[256];
	snprintf(key, sizeof(key), "%s.%s", values->architecture, name);
	return gguf_find(values->gguf, key);
}

static int64_t gguf_blueprint_check(struct values *values, const char *name, int64_t number)
{
	if (number >= 0 && number <= BLUEPRINT_NUMBER_MAX)
		return number;
	if (!values->failed)
		error_set(values->error, ERROR_INVALID, "%.60s.%s is %lld: expected 0 to %d",
		          values->architecture, name, (long long)number, BLUEPRINT_NUMBER_MAX);
	values->failed = true;
	return 0;
}

static bool is_number(const struct gguf_value *value)
{
	return value && value->kind != GGUF_ARRAY && value->kind != GGUF_TEXT &&
	       value->kind != GGUF_F32 && value->kind != GGUF_F64;
}

/* A number that may be missing. */
static int64_t number_or(struct values *values, const char *name, int64_t otherwise)
{
	const struct gguf_value *value = gguf_blueprint_find(values, name);
	return is_number(value) ? gguf_blueprint_check(values, name, value->number) : otherwise;
}

/* A number that may be given for each layer; a list that is too short is repeated, as runtimes do.
 */
static int64_t layer_number_or(struct values *values, const char *name, int64_t layer,
                               int64_t otherwise)
{
	const struct gguf_value *value = gguf_blueprint_find(values, name);
	if (value && value->kind == GGUF_ARRAY && value->numbers && value->count > 0)
		return gguf_blueprint_check(values, name, value->numbers[layer % value->count]);
	return is_number(value) ? gguf_blueprint_check(values, name, value->number) : otherwise;
}

/* The largest over all layers. */
static int64_t largest_or(struct values *values, const char *name, int64_t layers,
                          int64_t otherwise)
{
	int64_t largest = 0;
	for (int64_t i = 0; i < layers; i++)
		largest = max64(largest, layer_number_or(values, name, i, otherwise));
	return largest;
}

/* Which tensors of a layer decide what it keeps for each token or request. */
struct layer_tensors {
	bool keys, recurrent;
};

/* The layer that a tensor belongs to, from "blk.7.attn_k.weight" (or, of an
 * encoder, "enc.blk.7. ..."), with what it is there; -1 if to none. */
static int64_t layer_of(const char *name, const char **part)
{
	const char *at = strncmp(name, "blk.", 4) == 0 ? name : strstr(name, ".blk.");
	if (!at)
		return -1;
	at = *at == '.' ? at + 5 : at + 4;
	int64_t layer = 0;
	int digits = 0;
	for (; *at >= '0' && *at <= '9' && digits < 9; at++, digits++)
		layer = layer * 10 + (*at - '0');
	if (digits == 0 || *at != '.')
		return -1;
	*part = at + 1;
	return layer;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static bool add_tensor(struct blueprint *blueprint, struct layer_tensors *found,
                       const struct gguf_tensor *tensor, struct error *error)
{
	const char *part = "";
	int64_t layer = layer_of(tensor->name, &part);
	int64_t *bytes = &blueprint->other_bytes;
	if (layer >= blueprint->layer_count)
		return error_set(error, ERROR_INVALID,
		                 "tensor %.60s is of layer %lld, and there are %lld layers",
		                 tensor->name, (long long)layer, (long long)blueprint->layer_count);
	if (layer >= 0) {
		bytes = &blueprint->layers[layer].weight_bytes;
		found[layer].keys |= begins(part, "attn_k.") || begins(part, "attn_kv");
		found[layer].recurrent |= begins(part, "ssm_");
	} else if (begins(tensor->name, "token_embd.") ||
	           begins(tensor->name, "per_layer_token_embd.")) {
		bytes = &blueprint->input_bytes;
	} else if (begins(tensor->name, "output.") || begins(tensor->name, "output_norm.")) {
		bytes = &blueprint->output_bytes;
	}
	if (begins(tensor->name, "token_embd.") || begins(tensor->name, "output."))
		blueprint->vocabulary = max64(blueprint->vocabulary, tensor->length[1]);
	*bytes = amount_sum(*bytes, tensor->bytes);
	blueprint->weight_bytes = amount_sum(blueprint->weight_bytes, tensor->bytes);
	blueprint->parameters = amount_sum(blueprint->parameters, tensor->values);
	return true;
}

/* A model without a head of its own uses the embedding of its tokens once more,
 * as a second copy beside the last layer. */
static void tie_output(struct blueprint *blueprint, const struct gguf *files, size_t count)
{
	int64_t embedding = 0;
	for (size_t file = 0; file < count; file++) {
		for (size_t i = 0; i < files[file].tensor_count; i++) {
			const struct gguf_tensor *tensor = &files[file].tensors[i];
			if (begins(tensor->name, "output."))
				return;
			if (begins(tensor->name, "token_embd."))
				embedding = amount_sum(embedding, tensor->bytes);
		}
	}
	blueprint->output_bytes = amount_sum(blueprint->output_bytes, embedding);
}

static bool add_tensors(struct blueprint *blueprint, struct layer_tensors *found,
                        const struct gguf *files, size_t count, struct error *error)
{
	for (size_t file = 0; file < count; file++) {
		for (size_t i = 0; i < files[file].tensor_count; i++) {
			if (!add_tensor(blueprint, found, &files[file].tensors[i], error))
				return false;
		}
	}
	if (blueprint->weight_bytes == 0)
		return error_set(error, ERROR_INVALID, "it has no tensors: is it a vocabulary?");
	if (blueprint->weight_bytes == INT64_MAX)
		return error_set(error, ERROR_INVALID, "its tensors are beyond counting");
	if (blueprint->vocabulary > BLUEPRINT_NUMBER_MAX)
		return error_set(error, ERROR_INVALID, "its vocabulary of %lld tokens is absurd",
		                 (long long)blueprint->vocabulary);
	tie_output(blueprint, files, count);
	return true;
}

/* Architectures whose files do not say which layers have a window, and the
 * runtimes know: all but every n-th. */
static int64_t usual_window_period(const char *architecture)
{
	static const struct {
		const char *architecture;
		int64_t period;
	} usual[] = { { "gemma2", 2 },
		      { "gemma3", 6 },
		      { "gemma3n", 5 },
		      { "gpt-oss", 2 },
		      { "cohere2", 4 } };
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
		if (strcmp(architecture, usual[i].architecture) == 0)
			return usual[i].period;
	}
	return 1;
}

/* The window of a layer. An unknown window counts as none, which means more memory. */
static int64_t window_of(struct values *values, int64_t layer)
{
	int64_t window = number_or(values, "attention.sliding_window", 0);
	const struct gguf_value *pattern =
	    gguf_blueprint_find(values, "attention.sliding_window_pattern");
	if (pattern && pattern->kind == GGUF_ARRAY) {
		bool has = pattern->numbers && pattern->count > 0 &&
		           pattern->numbers[layer % pattern->count] != 0;
		return has ? window : 0;
	}
	int64_t period = number_or(values, "attention.sliding_window_pattern",
	                           usual_window_period(values->architecture));
	if (period == 0)
		return window;
	return layer % period < period - 1 ? window : 0;
}

/* What a recurrent layer keeps for a request: the last inputs of its convolution
 * and its state. */
static int64_t state_values(struct values *values)
{
	int64_t inner = number_or(values, "ssm.inner_size", 0);
	int64_t state = number_or(values, "ssm.state_size", 0);
	int64_t groups = number_or(values, "ssm.group_count", 0);
	int64_t kernel = number_or(values, "ssm.conv_kernel", 0);
	int64_t row = amount_sum(inner, amount_product(2, amount_product(groups, state)));
	int64_t convolution = amount_product(max64(kernel - 1, 0), row);
	return amount_sum(convolution, amount_product(state, inner));
}

static void describe_layer(struct blueprint *blueprint, struct values *values, int64_t i,
                           const struct layer_tensors *tensors)
{
	struct blueprint_layer *layer = &blueprint->layers[i];
	int64_t heads = layer_number_or(values, "attention.head_count", i, 0);
	int64_t length = heads > 0 ? blueprint->embedding_length / heads : 0;
	layer->window = window_of(values, i);
	layer->kv_heads = layer_number_or(values, "attention.head_count_kv", i, heads);
	layer->key_length = number_or(values, "attention.key_length", length);
	layer->value_length = number_or(values, "attention.value_length", length);
	if (layer->window > 0) {
		layer->key_length =
		    number_or(values, "attention.key_length_swa", layer->key_length);
		layer->value_length =
		    number_or(values, "attention.value_length_swa", layer->value_length);
	}
	if (tensors->recurrent) {
		layer->state_values = state_values(values);
		if (!tensors->keys)
			layer->kv_heads = 0;
	}
}

static bool gguf_blueprint_describe(struct blueprint *blueprint, struct values *values,
                                    const struct layer_tensors *found)
{
	int64_t layers = blueprint->layer_count;
	blueprint->embedding_length = number_or(values, "embedding_length", 0);
	blueprint->context_length = number_or(values, "context_length", 0);
	blueprint->heads = largest_or(values, "attention.head_count", layers, 0);
	blueprint->feed_forward_length = largest_or(values, "feed_forward_length", layers, 0);
	blueprint->experts = number_or(values, "expert_count", 0);
	blueprint->experts_used = number_or(values, "expert_used_count", 0);
	blueprint->expert_feed_forward_length =
	    number_or(values, "expert_feed_forward_length", blueprint->feed_forward_length);
	if (blueprint->vocabulary == 0)
		blueprint->vocabulary = number_or(values, "vocab_size", 0);
	for (int64_t i = 0; i < layers; i++)
		describe_layer(blueprint, values, i, &found[i]);
	if (values->failed)
		return false;
	if (blueprint->embedding_length == 0)
		return error_set(values->error, ERROR_INVALID,
		                 "it does not say %.60s.embedding_length", values->architecture);
	for (int64_t i = 0; i < layers; i++) {
		const struct blueprint_layer *layer = &blueprint->layers[i];
		bool attends = layer->kv_heads > 0 && layer->key_length > 0;
		bool said_none = layer->kv_heads == 0 && blueprint->heads > 0;
		if (!attends && !said_none && layer->state_values == 0)
			return error_set(values->error, ERROR_INVALID,
			                 "what layer %lld of a %.60s model keeps for each request "
			                 "is not known: declare the model's memory instead",
			                 (long long)i, values->architecture);
	}
	return true;
}

static const char *text_or(const struct gguf *gguf, const char *key, const char *otherwise)
{
	const struct gguf_value *value = gguf_find(gguf, key);
	return value && value->text ? value->text : otherwise;
}

bool gguf_blueprint(struct blueprint *blueprint, const struct gguf *files, size_t count,
                    struct error *error)
{
	struct values values = { &files[0], text_or(&files[0], "general.architecture", ""), error,
		                 false };
	*blueprint = (struct blueprint){ .format = MODEL_GGUF };
	if (*values.architecture == '\0')
		return error_set(error, ERROR_INVALID, "it does not say its general.architecture");
	blueprint_text(blueprint->architecture, values.architecture);
	blueprint_text(blueprint->name, text_or(&files[0], "general.name", ""));
	if (strcmp(values.architecture, "clip") == 0)
		return error_set(error, ERROR_INVALID,
		                 "it is the image encoder of a model: give "
		                 "the model's own file");
	int64_t layers = number_or(&values, "block_count", 0);
	if (values.failed)
		return false;
	if (layers == 0)
		return error_set(error, ERROR_INVALID, "it does not say %.60s.block_count",
		                 values.architecture);
	if (!blueprint_set_layers(blueprint, layers, error))
		return false;
	struct layer_tensors *found = memory_zero((size_t)layers, sizeof(*found));
	bool made = add_tensors(blueprint, found, files, count, error) &&
	            gguf_blueprint_describe(blueprint, &values, found);
	free(found);
	return made;
}
