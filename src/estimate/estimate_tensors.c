/* estimate_tensors.c - the memory of a model whose layers are all divided among the GPUs, as
 * vLLM does with tensor parallelism */
#include <stdio.h>

#include "base/number.h"
#include "estimate/amount.h"
#include "estimate/parts.h"

/* docs/estimates.md says where each of these comes from. */
enum {
	BATCH_TOKENS = 8192,      /* computed at once (max_num_batched_tokens) */
	BLOCK_TOKENS = 16,        /* the cache is given out in blocks of this */
	VALUE_BYTES = 2,          /* it computes in 16 bits */
	LOGIT_BYTES = 40,         /* for each token of the vocabulary, to choose the next one */
	OVERHEAD_MIB = 1856,      /* the CUDA context, libraries, captured graphs */
	COMMUNICATION_MIB = 1856, /* between GPUs, on each */
};

/* The heads of keys and values that each GPU has: where there are fewer than
 * GPUs, several have the same one. */
static int64_t heads_of(const struct blueprint_layer *layer, int gpus)
{
	return layer->kv_heads == 0 ? 0 : amount_quotient_up(layer->kv_heads, gpus);
}

static bool estimate_tensors_check(const struct blueprint *blueprint, int gpus, struct error *error)
{
	if (blueprint->heads % gpus != 0)
		return error_set(error, ERROR_IMPOSSIBLE,
		                 "%lld attention heads cannot be divided among %d GPUs",
		                 (long long)blueprint->heads, gpus);
	for (int64_t i = 0; i < blueprint->layer_count; i++) {
		int64_t heads = blueprint->layers[i].kv_heads;
		if (heads > 0 && heads % gpus != 0 && gpus % heads != 0)
			return error_set(error, ERROR_IMPOSSIBLE,
			                 "%lld heads of keys and values can be neither divided "
			                 "among %d GPUs nor copied evenly",
			                 (long long)heads, gpus);
	}
	return true;
}

static void set_weights(struct estimate_line *line, const struct blueprint *blueprint, int gpus)
{
	int64_t heads = max64(blueprint->layers[0].kv_heads, 1);
	int64_t own = amount_quotient_up(heads, gpus);
	int64_t divided = amount_quotient_up(blueprint->divided_bytes, gpus);
	int64_t kv = muldiv_up(blueprint->kv_bytes, own, heads);
	int64_t bytes = amount_sum(amount_sum(divided, kv), blueprint->copied_bytes);
	estimate_line_set(line, bytes,
	                  "%lld bytes / %d + %lld for keys and values x %lld / %lld heads + %lld "
	                  "that every GPU has; %lld in the files are not loaded",
	                  (long long)blueprint->divided_bytes, gpus, (long long)blueprint->kv_bytes,
	                  (long long)own, (long long)heads, (long long)blueprint->copied_bytes,
	                  (long long)blueprint->unused_bytes);
}

static int64_t batch_of(const struct estimate_request *request)
{
	return request->batch_tokens ? request->batch_tokens : BATCH_TOKENS;
}

/* The tokens that are kept for one request: of a window, what can be seen from
 * the first token of a batch to its last, and a block for where it begins. */
static int64_t tokens_of(const struct estimate_request *request, int64_t window)
{
	int64_t all = amount_padded(request->context_tokens, BLOCK_TOKENS);
	if (window == 0)
		return all;
	int64_t seen = min64(window - 1 + batch_of(request), request->context_tokens);
	return amount_padded(seen, BLOCK_TOKENS) + BLOCK_TOKENS;
}

/* Layers with a window and layers without take their blocks from one pool, in
 * groups of as many layers as the rarer kind has; the last group may be filled
 * with nothing. */
static int64_t grouped(int64_t layers, int64_t others)
{
	if (layers == 0 || others == 0)
		return layers;
	return amount_padded(layers, min64(layers, others));
}

static void set_cache(struct estimate_line *line, const struct blueprint *blueprint,
                      const struct estimate_request *request)
{
	int64_t full = 0, windowed = 0, window = 0, token = 0;
	const struct blueprint_layer *largest = &blueprint->layers[0];
	for (int64_t i = 0; i < blueprint->layer_count; i++) {
		const struct blueprint_layer *layer = &blueprint->layers[i];
		int64_t heads = heads_of(layer, request->gpus);
		int64_t bytes =
		    amount_sum(estimate_token_bytes(layer, heads, request), blueprint->index_bytes);
		if (layer->window > 0)
			windowed++;
		else
			full++;
		window = max64(window, layer->window);
		if (bytes > token) {
			token = bytes;
			largest = layer;
		}
	}
	int64_t full_tokens = amount_product(grouped(full, windowed), tokens_of(request, 0));
	int64_t windowed_tokens =
	    amount_product(grouped(windowed, full), tokens_of(request, window));
	int64_t tokens =
	    amount_product(amount_sum(full_tokens, windowed_tokens), request->parallel);
	char windows[96] = "", index[48] = "";
	if (windowed > 0)
		snprintf(windows, sizeof(windows), " + %lld with a window x %lld tokens",
		         (long long)grouped(windowed, full), (long long)tokens_of(request, window));
	if (blueprint->index_bytes > 0)
		snprintf(index, sizeof(index), " + %lld of the index",
		         (long long)blueprint->index_bytes);
	estimate_line_set(
	    line, amount_product(tokens, token),
	    "%lld requests x (%lld layers x %lld tokens%s) x %lld bytes: %lld heads x "
	    "(%lld keys %s + %lld values %s)%s",
	    (long long)request->parallel, (long long)grouped(full, windowed),
	    (long long)tokens_of(request, 0), windows, (long long)token,
	    (long long)heads_of(largest, request->gpus), (long long)largest->key_length,
	    request->key_type->name, (long long)largest->value_length, request->value_type->name,
	    index);
}

/* 16-bit values per token at the widest place of a layer, on one GPU. */
static int64_t widest(const struct blueprint *blueprint, int gpus)
{
	const struct blueprint_layer *layer = &blueprint->layers[0];
	int64_t embedding = blueprint->embedding_length;
	int64_t both = amount_sum(layer->key_length, max64(layer->value_length, 0));
	int64_t attention = amount_product(
	    amount_sum(amount_quotient_up(blueprint->heads, gpus), heads_of(layer, gpus)), both);
	int64_t forward =
	    amount_product(3, amount_quotient_up(blueprint->feed_forward_length, gpus));
	if (blueprint->experts > 0) {
		int64_t length = amount_quotient_up(blueprint->expert_feed_forward_length, gpus);
		int64_t expert = amount_sum(max64(amount_product(2, length), embedding), length);
		forward = max64(forward, amount_product(blueprint->experts_used, expert));
	}
	return amount_sum(amount_product(4, embedding), max64(attention, forward));
}

static void set_graph(struct estimate_line *line, const struct blueprint *blueprint,
                      const struct estimate_request *request)
{
	int64_t width = widest(blueprint, request->gpus);
	int64_t forward = amount_product(amount_product(batch_of(request), VALUE_BYTES), width);
	int64_t choice =
	    amount_product(amount_product(request->parallel, LOGIT_BYTES), blueprint->vocabulary);
	estimate_line_set(line, max64(forward, choice),
	                  "the larger of the layers, %lld tokens x %lld values x %d bytes, and the "
	                  "choice of tokens, %lld requests x %lld x %d bytes",
	                  (long long)batch_of(request), (long long)width, VALUE_BYTES,
	                  (long long)request->parallel, (long long)blueprint->vocabulary,
	                  LOGIT_BYTES);
}

static void set_overhead(struct estimate_line *line, int gpus)
{
	int mib = OVERHEAD_MIB + (gpus > 1 ? COMMUNICATION_MIB : 0);
	estimate_line_set(line, (int64_t)mib * BYTES_PER_MIB,
	                  "%d MiB for the CUDA context, libraries and captured graphs%s",
	                  OVERHEAD_MIB,
	                  gpus > 1 ? ", and as much for communication between GPUs" : "");
}

bool estimate_tensors(struct estimate *estimate, const struct blueprint *blueprint,
                      const struct estimate_request *request, struct error *error)
{
	if (!estimate_tensors_check(blueprint, request->gpus, error))
		return false;
	for (int i = 0; i < request->gpus; i++) {
		struct estimate_gpu *gpu = &estimate->gpu[i];
		gpu->layers = blueprint->layer_count;
		gpu->has_output = true;
		set_weights(&gpu->line[ESTIMATE_WEIGHTS], blueprint, request->gpus);
		set_cache(&gpu->line[ESTIMATE_CACHE], blueprint, request);
		set_graph(&gpu->line[ESTIMATE_GRAPH], blueprint, request);
		set_overhead(&gpu->line[ESTIMATE_OVERHEAD], request->gpus);
	}
	return true;
}
