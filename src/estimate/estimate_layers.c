/* estimate_layers.c - the memory of a model whose layers are dealt out to the GPUs, as
 * llama.cpp and ollama do */
#include <stdio.h>

#include "base/number.h"
#include "estimate/amount.h"
#include "estimate/parts.h"

/* docs/estimates.md says where each of these comes from. */
enum {
	BATCH_TOKENS = 512,  /* computed at once (n_ubatch) */
	CELL_MULTIPLE = 256, /* the cache's length is rounded up to this */
	PIPELINE_COPIES = 4, /* of each input, where layers are on several GPUs */
	F32_BYTES = 4,
	F16_BYTES = 2,
	OVERHEAD_MIB = 768, /* the CUDA context, cuBLAS, and memory pools */
};

/* The model and its launch, with what follows from both for all GPUs. */
struct dealing {
	const struct blueprint *blueprint;
	const struct estimate_request *request;
	int64_t share[ESTIMATE_GPUS_MAX];
	int64_t batch;
	int64_t full_cells; /* tokens kept in a layer that looks over all of them */
};

/* The GPU that a layer is on; the output counts as one more layer. GPU j has the
 * layers i with sum(share before j) / sum <= i / (layers + 1). */
static int estimate_layers_gpu_of(const struct dealing *dealing, int64_t layer)
{
	int64_t total = 0, before = 0;
	int gpus = dealing->request->gpus;
	for (int i = 0; i < gpus; i++)
		total += dealing->share[i];
	for (int i = 0; i < gpus - 1; i++) {
		before += dealing->share[i];
		if (before * (dealing->blueprint->layer_count + 1) > layer * total)
			return i;
	}
	return gpus - 1;
}

/* The tokens kept in a layer: for one with a window, that and the batch that is
 * being computed, for each request. */
static int64_t cells_of(const struct dealing *dealing, const struct blueprint_layer *layer)
{
	if (layer->window == 0)
		return dealing->full_cells;
	int64_t one = amount_padded(layer->window + dealing->batch, CELL_MULTIPLE);
	return min64(amount_product(one, dealing->request->parallel), dealing->full_cells);
}

static void deal_layers(struct estimate *estimate, const struct dealing *dealing)
{
	for (int64_t i = 0; i < dealing->blueprint->layer_count; i++) {
		struct estimate_gpu *gpu = &estimate->gpu[estimate_layers_gpu_of(dealing, i)];
		if (gpu->layers == 0)
			gpu->first_layer = i;
		gpu->layers++;
	}
	estimate->gpu[estimate_layers_gpu_of(dealing, dealing->blueprint->layer_count)].has_output =
	    true;
}

static void set_weights(struct estimate_gpu *gpu, const struct dealing *dealing)
{
	const struct blueprint *blueprint = dealing->blueprint;
	int64_t layers = 0;
	for (int64_t i = 0; i < gpu->layers; i++)
		layers = amount_sum(layers, blueprint->layers[gpu->first_layer + i].weight_bytes);
	int64_t output = gpu->has_output ? blueprint->output_bytes : 0;
	int64_t bytes = amount_sum(amount_sum(layers, output), blueprint->other_bytes);
	estimate_line_set(&gpu->line[ESTIMATE_WEIGHTS], bytes,
	                  "%lld layers: %lld bytes, output: %lld, neither: %lld; the embedding of "
	                  "tokens (%lld) stays in the host's memory",
	                  (long long)gpu->layers, (long long)layers, (long long)output,
	                  (long long)blueprint->other_bytes, (long long)blueprint->input_bytes);
}

/* The caches of some layers of a GPU, and an example: the others may differ. */
struct cache_sum {
	int64_t layers, tokens, token_bytes, bytes;
	const struct blueprint_layer *first;
	bool differ;
};

static void add_cache(struct cache_sum *sum, const struct dealing *dealing,
                      const struct blueprint_layer *layer)
{
	int64_t token = estimate_token_bytes(layer, layer->kv_heads, dealing->request);
	if (!sum->first)
		sum->first = layer;
	sum->differ |= layer->kv_heads != sum->first->kv_heads ||
	               layer->key_length != sum->first->key_length ||
	               layer->value_length != sum->first->value_length;
	sum->layers++;
	sum->tokens = cells_of(dealing, layer);
	sum->token_bytes = amount_sum(sum->token_bytes, token);
	sum->bytes = amount_sum(sum->bytes, amount_product(sum->tokens, token));
}

static void print_cache(char *text, size_t size, const struct cache_sum *sum,
                        const struct dealing *dealing)
{
	const struct estimate_request *request = dealing->request;
	const char *kind = sum->first && sum->first->window > 0 ? " with a window" : "";
	if (sum->layers == 0)
		snprintf(text, size, "no layers that keep all tokens");
	else if (sum->differ)
		snprintf(text, size,
		         "%lld layers%s, which differ: %lld tokens x %lld bytes for keys %s and "
		         "values %s = %lld bytes",
		         (long long)sum->layers, kind, (long long)sum->tokens,
		         (long long)sum->token_bytes, request->key_type->name,
		         request->value_type->name, (long long)sum->bytes);
	else
		snprintf(text, size,
		         "%lld layers%s x %lld tokens x %lld heads x (%lld keys %s + %lld values "
		         "%s) = %lld bytes",
		         (long long)sum->layers, kind, (long long)sum->tokens,
		         (long long)sum->first->kv_heads, (long long)sum->first->key_length,
		         request->key_type->name, (long long)sum->first->value_length,
		         request->value_type->name, (long long)sum->bytes);
}

static void set_cache(struct estimate_gpu *gpu, const struct dealing *dealing)
{
	struct cache_sum full = { 0 }, windowed = { 0 };
	int64_t states = 0, state_bytes = 0;
	char full_text[160], windowed_text[160] = "", state_text[96] = "";
	for (int64_t i = 0; i < gpu->layers; i++) {
		const struct blueprint_layer *layer =
		    &dealing->blueprint->layers[gpu->first_layer + i];
		if (layer->kv_heads > 0)
			add_cache(layer->window > 0 ? &windowed : &full, dealing, layer);
		int64_t state = amount_product(layer->state_values, F32_BYTES);
		state_bytes =
		    amount_sum(state_bytes, amount_product(state, dealing->request->parallel));
		states += layer->state_values > 0;
	}
	print_cache(full_text, sizeof(full_text), &full, dealing);
	if (windowed.layers > 0)
		print_cache(windowed_text, sizeof(windowed_text), &windowed, dealing);
	if (states > 0)
		snprintf(state_text, sizeof(state_text), "; states of %lld layers: %lld bytes",
		         (long long)states, (long long)state_bytes);
	int64_t bytes = amount_sum(amount_sum(full.bytes, windowed.bytes), state_bytes);
	estimate_line_set(&gpu->line[ESTIMATE_CACHE], bytes, "%s%s%s%s", full_text,
	                  windowed.layers > 0 ? "; " : "", windowed_text, state_text);
}

/* f32 values per token at the widest place of a layer. */
static int64_t widest(const struct blueprint *blueprint, const struct blueprint_layer *layer)
{
	int64_t embedding = blueprint->embedding_length;
	int64_t both = amount_sum(layer->key_length, layer->value_length);
	int64_t attention = amount_product(amount_sum(blueprint->heads, layer->kv_heads), both);
	int64_t forward = amount_product(2, blueprint->feed_forward_length);
	if (blueprint->experts > 0) {
		int64_t expert =
		    amount_sum(amount_product(2, blueprint->expert_feed_forward_length), embedding);
		int64_t all =
		    amount_sum(amount_product(blueprint->experts_used, expert), blueprint->experts);
		forward = max64(forward, all);
	}
	return amount_sum(amount_product(2, embedding), max64(attention, forward));
}

/* What the way through the layers of one GPU needs, in bytes. */
struct graph {
	int64_t layer;      /* the widest place of a layer */
	int64_t inputs;     /* which tokens see which, and what came from the last GPU */
	int64_t scores;     /* of each head for each token, without flash attention */
	int64_t output;     /* scores of all tokens of the vocabulary */
	int64_t conversion; /* a layer's cache as f16, for flash attention */
};

static struct graph graph_of(const struct estimate_gpu *gpu, const struct dealing *dealing)
{
	const struct blueprint *blueprint = dealing->blueprint;
	const struct estimate_request *request = dealing->request;
	int64_t row = amount_product(dealing->batch, F32_BYTES);
	int64_t full = 0, windowed = 0;
	struct graph graph = { 0 };
	bool is_f16 = request->key_type->block_bytes == F16_BYTES &&
	              request->key_type == request->value_type &&
	              request->key_type == tensor_type_of_cache("f16");
	for (int64_t i = 0; i < gpu->layers; i++) {
		const struct blueprint_layer *layer = &blueprint->layers[gpu->first_layer + i];
		int64_t cells = layer->kv_heads > 0 ? cells_of(dealing, layer) : 0;
		int64_t token = amount_product(layer->kv_heads,
		                               amount_sum(layer->key_length, layer->value_length));
		if (layer->window > 0)
			windowed = max64(windowed, cells);
		else
			full = max64(full, cells);
		graph.layer = max64(graph.layer, amount_product(row, widest(blueprint, layer)));
		if (!is_f16 && !request->plain_attention)
			graph.conversion =
			    max64(graph.conversion,
			          amount_product(amount_product(cells, token), F16_BYTES));
	}
	int64_t mask = amount_sum(full, windowed);
	graph.inputs = amount_product(row, amount_sum(mask, blueprint->embedding_length));
	if (request->plain_attention)
		graph.scores =
		    amount_product(amount_product(row, max64(full, windowed)), blueprint->heads);
	else /* it wants the mask as f16 */
		graph.layer = amount_sum(graph.layer, amount_product(row / 2, mask));
	if (gpu->has_output)
		graph.output = amount_product(
		    row, amount_sum(blueprint->vocabulary, blueprint->embedding_length));
	return graph;
}

/* The output and the layers use the same memory one after the other. Inputs share
 * it too on one GPU; on several they have copies that stay. */
static void set_graph(struct estimate_gpu *gpu, const struct dealing *dealing)
{
	struct graph graph = graph_of(gpu, dealing);
	int64_t copies = dealing->request->gpus > 1 ? PIPELINE_COPIES : 1;
	int64_t inputs = amount_product(graph.inputs, copies);
	int64_t layer = amount_sum(graph.layer, graph.scores);
	int64_t bytes;
	if (copies == 1)
		bytes = max64(graph.output, amount_sum(layer, inputs));
	else
		bytes = amount_sum(inputs, max64(graph.output, layer));
	estimate_line_set(&gpu->line[ESTIMATE_GRAPH], amount_sum(bytes, graph.conversion),
	                  "a batch of %lld tokens; %s: output %lld, widest layer %lld, "
	                  "attention scores %lld, inputs %lld x %lld bytes; cache as f16: %lld",
	                  (long long)dealing->batch,
	                  copies == 1 ? "the larger of the output and the rest"
	                              : "inputs, and the larger of the output and the rest",
	                  (long long)graph.output, (long long)graph.layer, (long long)graph.scores,
	                  (long long)copies, (long long)graph.inputs, (long long)graph.conversion);
}

static void set_overhead(struct estimate_gpu *gpu)
{
	estimate_line_set(&gpu->line[ESTIMATE_OVERHEAD], (int64_t)OVERHEAD_MIB * BYTES_PER_MIB,
	                  "%d MiB for the CUDA context, cuBLAS and memory pools", OVERHEAD_MIB);
}

static bool estimate_layers_start(struct dealing *dealing, struct error *error)
{
	const struct estimate_request *request = dealing->request;
	int64_t sum = 0;
	for (int i = 0; i < request->gpus; i++)
		sum += dealing->share[i] = request->share[i];
	for (int i = 0; sum == 0 && i < request->gpus; i++)
		dealing->share[i] = 1;
	int64_t cells = amount_padded(request->context_tokens, CELL_MULTIPLE);
	dealing->full_cells = amount_product(cells, request->parallel);
	dealing->batch = min64(request->batch_tokens ? request->batch_tokens : BATCH_TOKENS,
	                       dealing->full_cells);
	if (request->gpus > dealing->blueprint->layer_count)
		return error_set(error, ERROR_IMPOSSIBLE,
		                 "%lld layers cannot be dealt out to %d GPUs",
		                 (long long)dealing->blueprint->layer_count, request->gpus);
	return true;
}

bool estimate_layers(struct estimate *estimate, const struct blueprint *blueprint,
                     const struct estimate_request *request, struct error *error)
{
	struct dealing dealing = { .blueprint = blueprint, .request = request };
	if (!estimate_layers_start(&dealing, error))
		return false;
	deal_layers(estimate, &dealing);
	for (int i = 0; i < request->gpus; i++) {
		struct estimate_gpu *gpu = &estimate->gpu[i];
		set_weights(gpu, &dealing);
		set_cache(gpu, &dealing);
		set_graph(gpu, &dealing);
		set_overhead(gpu);
	}
	estimate->host_mib = amount_mib(blueprint->input_bytes);
	return true;
}
