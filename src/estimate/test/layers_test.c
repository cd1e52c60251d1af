/* layers_test.c - GGUF models, estimated for llama.cpp and ollama, against hand calculations */
#include "made.h"

#include <stdio.h>

#include "bytes.h"

enum { F32 = 0, F16 = 1, Q4_K = 12, Q6_K = 14 };

/* Reads what was built into a blueprint; both are to be freed. */
static bool layers_finish(struct gguf_builder *builder, struct blueprint *blueprint,
                          struct error *error)
{
	struct header_only file;
	struct gguf gguf;
	int64_t size = build_finish(builder);
	struct reader reader = reader_of_header(&file, &builder->file, size);
	*error = (struct error){ 0 };
	assert_true(gguf_read(&gguf, &reader, error));
	bool made = gguf_blueprint(blueprint, &gguf, 1, error);
	gguf_free(&gguf);
	build_free(builder);
	*builder = (struct gguf_builder){ 0 };
	return made;
}

static void finish_refused(struct gguf_builder *builder, const char *because)
{
	struct blueprint blueprint;
	struct error error;
	assert_false(layers_finish(builder, &blueprint, &error));
	assert_says(&error, because);
	blueprint_free(&blueprint);
}

static struct blueprint finished(struct gguf_builder *builder)
{
	struct blueprint blueprint;
	struct error error;
	if (!layers_finish(builder, &blueprint, &error))
		fail_msg("%s", error.text);
	return blueprint;
}

static void build_number(struct gguf_builder *builder, const char *architecture, const char *name,
                         uint32_t number)
{
	char key[128];
	snprintf(key, sizeof(key), "%s.%s", architecture, name);
	build_u32(builder, key, number);
}

static void build_layer_tensor(struct gguf_builder *builder, int layer, const char *name,
                               uint32_t type, uint64_t columns, uint64_t rows)
{
	char full[64];
	snprintf(full, sizeof(full), "blk.%d.%s.weight", layer, name);
	build_tensor(builder, full, type, columns, rows, 0);
}

/* Four layers, each with one matrix of 256 x 4096 f16 = 2 MiB for keys; an
 * embedding and an output of 256 x 32768 f16 = 16 MiB each. Embedding 256, 4
 * heads of 64, 2 of them for keys and values. */
static void build_small(struct gguf_builder *builder, const char *architecture)
{
	build_string(builder, "general.architecture", architecture);
	build_string(builder, "general.name", "Small");
	build_number(builder, architecture, "block_count", 4);
	build_number(builder, architecture, "context_length", 4096);
	build_number(builder, architecture, "embedding_length", 256);
	build_number(builder, architecture, "feed_forward_length", 1024);
	build_number(builder, architecture, "attention.head_count", 4);
	build_tensor(builder, "token_embd.weight", F16, 256, 32768, 0);
	for (int i = 0; i < 4; i++)
		build_layer_tensor(builder, i, "attn_k", F16, 256, 4096);
}

static struct blueprint small_llama(void)
{
	struct gguf_builder builder = { 0 };
	build_small(&builder, "llama");
	build_number(&builder, "llama", "attention.head_count_kv", 2);
	build_tensor(&builder, "output.weight", F16, 256, 32768, 0);
	return finished(&builder);
}

static void what_the_file_says_is_in_the_blueprint(void **state)
{
	(void)state;
	struct blueprint blueprint = small_llama();
	assert_string_equal(blueprint.architecture, "llama");
	assert_string_equal(blueprint.name, "Small");
	assert_int_equal(blueprint.layer_count, 4);
	assert_int_equal(blueprint.context_length, 4096);
	assert_int_equal(blueprint.vocabulary, 32768);
	assert_int_equal(blueprint.layers[3].weight_bytes, 2 << 20);
	assert_int_equal(blueprint.layers[3].kv_heads, 2);
	assert_int_equal(blueprint.layers[3].key_length, 64);
	assert_int_equal(blueprint.input_bytes, 16 << 20);
	assert_int_equal(blueprint.output_bytes, 16 << 20);
	assert_int_equal(blueprint.parameters, 2 * 256 * 32768 + 4 * 256 * 4096);
	blueprint_free(&blueprint);
}

static void one_gpu_has_all_but_the_embedding(void **state)
{
	(void)state;
	struct blueprint blueprint = small_llama();
	struct estimate_request request = estimate_defaults(&blueprint);
	struct estimate estimate = made(&blueprint, &request);
	/* 4 layers x 2 MiB + 16 MiB of output. */
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_WEIGHTS), 24);
	/* 4 layers x 4096 tokens x 2 heads x (64 + 64) values x 2 bytes = 8 MiB. */
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_CACHE), 8);
	/* The output is the largest: 512 tokens x 4 bytes x (32768 + 256) = 64.5 MiB.
	 * The layers: 512 x 4 x (2 x 256 + 2 x 1024) = 5 MiB, their inputs 512 x 4 x
	 * (4096 + 256) = 8.5 MiB, and the mask as f16 512 x 2 x 4096 = 4 MiB. */
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_GRAPH), 65);
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_OVERHEAD), 768);
	assert_int_equal(estimate.gpu[0].total_mib, 24 + 8 + 65 + 768);
	assert_int_equal(estimate.total_mib, 24 + 8 + 65 + 768);
	assert_int_equal(estimate.host_mib, 16);
	blueprint_free(&blueprint);
}

/* Five places (four layers and the output) on two GPUs: place i is on the first
 * while i / 5 < 1 / 2, so 0, 1, 2 are, and 3 and the output are on the second. */
static void the_output_counts_as_a_layer_when_they_are_dealt_out(void **state)
{
	(void)state;
	struct blueprint blueprint = small_llama();
	struct estimate_request request = estimate_defaults(&blueprint);
	request.gpus = 2;
	struct estimate estimate = made(&blueprint, &request);
	assert_int_equal(estimate.gpu[0].layers, 3);
	assert_int_equal(estimate.gpu[1].first_layer, 3);
	assert_int_equal(estimate.gpu[1].layers, 1);
	assert_true(estimate.gpu[1].has_output);
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_WEIGHTS), 3 * 2);
	assert_int_equal(mib_of(&estimate, 1, ESTIMATE_WEIGHTS), 2 + 16);
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_CACHE), 3 * 2);
	assert_int_equal(mib_of(&estimate, 1, ESTIMATE_CACHE), 2);
	/* Inputs now have 4 copies: 4 x 8.5 = 34 MiB, and stay. Beside them the first
	 * GPU needs 5 + 4 for its layers, the second 64.5 for the output. */
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_GRAPH), 34 + 9);
	assert_int_equal(mib_of(&estimate, 1, ESTIMATE_GRAPH), 34 + 65);
	assert_int_equal(estimate.largest_mib, estimate.gpu[1].total_mib);
	blueprint_free(&blueprint);
}

/* Shares of 4 and 1: place i is on the first GPU while i / 5 < 4 / 5. */
static void shares_deal_layers_out_unevenly(void **state)
{
	(void)state;
	struct blueprint blueprint = small_llama();
	struct estimate_request request = estimate_defaults(&blueprint);
	request.gpus = 2;
	request.share[0] = 4;
	request.share[1] = 1;
	struct estimate estimate = made(&blueprint, &request);
	assert_int_equal(estimate.gpu[0].layers, 4);
	assert_int_equal(estimate.gpu[1].layers, 0);
	assert_int_equal(mib_of(&estimate, 1, ESTIMATE_WEIGHTS), 16);
	assert_int_equal(mib_of(&estimate, 1, ESTIMATE_CACHE), 0);
	blueprint_free(&blueprint);
}

/* Per token and layer there are 2 heads of 64 keys and 64 values: 8 blocks of 32,
 * or 256 values. 4 layers x 4096 tokens are 16384. */
static void the_cache_has_the_bytes_of_its_type(void **state)
{
	(void)state;
	static const struct {
		const char *type;
		int64_t mib;
	} types[] = {
		{ "f32", 16 },                  /* 16384 x 256 x 4 */
		{ "f16", 8 },                   /* 16384 x 256 x 2 */
		{ "bf16", 8 },   { "q8_0", 5 }, /* 16384 x 8 x 34 = 4.25 MiB */
		{ "q5_1", 3 },                  /* 16384 x 8 x 24 = 3 MiB */
		{ "q5_0", 3 },                  /* 16384 x 8 x 22 = 2.75 MiB */
		{ "q4_1", 3 },                  /* 16384 x 8 x 20 = 2.5 MiB */
		{ "q4_0", 3 },                  /* 16384 x 8 x 18 = 2.25 MiB */
		{ "iq4_nl", 3 },
	};
	struct blueprint blueprint = small_llama();
	struct estimate_request request = estimate_defaults(&blueprint);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		request.key_type = request.value_type = tensor_type_of_cache(types[i].type);
		struct estimate estimate = made(&blueprint, &request);
		assert_int_equal(mib_of(&estimate, 0, ESTIMATE_CACHE), types[i].mib);
	}
	/* Keys and values of their own types: 16384 x 4 x 34 + 16384 x 4 x 18 = 3.25 MiB. */
	request.key_type = tensor_type_of_cache("q8_0");
	request.value_type = tensor_type_of_cache("q4_0");
	struct estimate estimate = made(&blueprint, &request);
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_CACHE), 4);
	blueprint_free(&blueprint);
}

/* A context of 1000 is kept as 1024 tokens for each request: 4 layers x 3 x 1024
 * x 2 x 128 x 2 bytes = 6 MiB. */
static void context_is_padded_and_counts_for_each_request(void **state)
{
	(void)state;
	struct blueprint blueprint = small_llama();
	struct estimate_request request = estimate_defaults(&blueprint);
	request.context_tokens = 1000;
	request.parallel = 3;
	struct estimate estimate = made(&blueprint, &request);
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_CACHE), 6);
	assert_non_null(strstr(estimate.gpu[0].line[ESTIMATE_CACHE].text,
	                       "4 layers x 3072 tokens x 2 heads x (64 keys f16 + 64 values f16) = "
	                       "6291456 bytes"));
	blueprint_free(&blueprint);
}

/* Scores of 4 heads: 512 x 4 x 4096 x 4 = 32 MiB, and the layers' 5 + 8.5. The
 * output's 64.5 is still more; at 16384 tokens it is 128 + 5 + 32.5. */
static void without_flash_attention_scores_are_counted(void **state)
{
	(void)state;
	struct blueprint blueprint = small_llama();
	struct estimate_request request = estimate_defaults(&blueprint);
	request.plain_attention = true;
	struct estimate small = made(&blueprint, &request);
	assert_int_equal(mib_of(&small, 0, ESTIMATE_GRAPH), 65);
	request.context_tokens = 16384;
	struct estimate large = made(&blueprint, &request);
	assert_int_equal(mib_of(&large, 0, ESTIMATE_GRAPH), 166);
	blueprint_free(&blueprint);
}

/* A layer's cache is made f16 for flash attention: 4096 tokens x 256 x 2 = 2 MiB. */
static void a_cache_that_is_not_f16_is_converted_a_layer_at_a_time(void **state)
{
	(void)state;
	struct blueprint blueprint = small_llama();
	struct estimate_request request = estimate_defaults(&blueprint);
	request.key_type = request.value_type = tensor_type_of_cache("q8_0");
	struct estimate estimate = made(&blueprint, &request);
	/* 64.5 + 2 MiB. */
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_GRAPH), 67);
	blueprint_free(&blueprint);
}

static void a_model_without_an_output_has_its_embedding_twice(void **state)
{
	(void)state;
	struct gguf_builder builder = { 0 };
	build_small(&builder, "llama");
	struct blueprint blueprint = finished(&builder);
	struct estimate_request request = estimate_defaults(&blueprint);
	struct estimate estimate = made(&blueprint, &request);
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_WEIGHTS), 4 * 2 + 16);
	assert_int_equal(estimate.host_mib, 16);
	blueprint_free(&blueprint);
}

/* gemma3: every sixth layer looks over all tokens; of four, none does. 512
 * tokens of window and 512 of a batch are kept: 4 x 1024 x 4 heads x 128 x 2 = 4 MiB. */
static void layers_with_a_window_keep_only_that_and_a_batch(void **state)
{
	(void)state;
	struct gguf_builder builder = { 0 };
	build_small(&builder, "gemma3");
	build_number(&builder, "gemma3", "attention.sliding_window", 512);
	struct blueprint blueprint = finished(&builder);
	struct estimate_request request = estimate_defaults(&blueprint);
	struct estimate estimate = made(&blueprint, &request);
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_CACHE), 4);
	assert_string_equal(
	    estimate.gpu[0].line[ESTIMATE_CACHE].text,
	    "no layers that keep all tokens; 4 layers with a window x 1024 tokens x 4 "
	    "heads x (64 keys f16 + 64 values f16) = 4194304 bytes");
	blueprint_free(&blueprint);
}

static void a_pattern_says_which_layers_have_a_window(void **state)
{
	(void)state;
	struct gguf_builder builder = { 0 };
	build_small(&builder, "llama");
	build_number(&builder, "llama", "attention.sliding_window", 512);
	build_list(&builder, "llama.attention.sliding_window_pattern", (const uint32_t[]){ 0, 1 },
	           2);
	struct blueprint blueprint = finished(&builder);
	assert_int_equal(blueprint.layers[0].window, 0);
	assert_int_equal(blueprint.layers[1].window, 512);
	assert_int_equal(blueprint.layers[3].window, 512);
	blueprint_free(&blueprint);

	build_small(&builder, "llama");
	build_number(&builder, "llama", "attention.sliding_window", 512);
	build_number(&builder, "llama", "attention.sliding_window_pattern", 2);
	blueprint = finished(&builder);
	assert_int_equal(blueprint.layers[0].window, 512);
	assert_int_equal(blueprint.layers[1].window, 0);
	blueprint_free(&blueprint);
}

/* llama.cpp ignores the window of most architectures. */
static void a_window_without_a_known_pattern_does_not_count(void **state)
{
	(void)state;
	struct gguf_builder builder = { 0 };
	build_small(&builder, "llama");
	build_number(&builder, "llama", "attention.sliding_window", 512);
	struct blueprint blueprint = finished(&builder);
	assert_int_equal(blueprint.layers[0].window, 0);
	blueprint_free(&blueprint);
}

/* Two layers keep 1 head each, one 4, one none: 6 heads x 4096 x 128 x 2 = 6 MiB. */
static void heads_of_keys_and_values_may_differ_by_layer(void **state)
{
	(void)state;
	struct gguf_builder builder = { 0 };
	build_small(&builder, "llama");
	build_list(&builder, "llama.attention.head_count_kv", (const uint32_t[]){ 1, 1, 4, 0 }, 4);
	struct blueprint blueprint = finished(&builder);
	struct estimate_request request = estimate_defaults(&blueprint);
	struct estimate estimate = made(&blueprint, &request);
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_CACHE), 6);
	assert_string_equal(
	    estimate.gpu[0].line[ESTIMATE_CACHE].text,
	    "3 layers, which differ: 4096 tokens x 1536 bytes for keys f16 and values "
	    "f16 = 6291456 bytes");
	blueprint_free(&blueprint);
}

static void lengths_of_a_layer_without_a_cache_do_not_matter(void **state)
{
	(void)state;
	struct blueprint blueprint = small_llama();
	struct estimate_request request = estimate_defaults(&blueprint);
	blueprint.layers[1].kv_heads = 0;
	blueprint.layers[1].key_length = 80;
	request.key_type = tensor_type_of_cache("q8_0");
	struct estimate estimate = made(&blueprint, &request);
	/* 3 x 4096 x 2 heads x (2 x 34 + 64 x 2) bytes = 4.6 MiB. */
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_CACHE), 5);
	blueprint_free(&blueprint);
}

/* Compressed keys and values (DeepSeek): one head of 576 keys and 512 values.
 * 4 layers x 4096 x (576 + 512) x 2 = 34 MiB. */
static void lengths_of_keys_and_values_may_differ(void **state)
{
	(void)state;
	struct gguf_builder builder = { 0 };
	build_small(&builder, "deepseek2");
	build_number(&builder, "deepseek2", "attention.head_count_kv", 1);
	build_number(&builder, "deepseek2", "attention.key_length", 576);
	build_number(&builder, "deepseek2", "attention.value_length", 512);
	struct blueprint blueprint = finished(&builder);
	struct estimate_request request = estimate_defaults(&blueprint);
	struct estimate estimate = made(&blueprint, &request);
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_CACHE), 34);
	blueprint_free(&blueprint);
}

/* Each request's state in a recurrent layer: (4 - 1) x (512 + 2 x 1 x 128) +
 * 128 x 512 = 67840 values of 4 bytes. Of two layers and 8 requests, that is
 * 4341760 bytes; the two others keep 2 x 8 x 4096 x 4 x 128 x 2 = 64 MiB. */
static void recurrent_layers_keep_a_state_for_each_request(void **state)
{
	(void)state;
	struct gguf_builder builder = { 0 };
	build_string(&builder, "general.architecture", "hybrid");
	build_number(&builder, "hybrid", "block_count", 4);
	build_number(&builder, "hybrid", "embedding_length", 256);
	build_number(&builder, "hybrid", "attention.head_count", 4);
	build_number(&builder, "hybrid", "ssm.conv_kernel", 4);
	build_number(&builder, "hybrid", "ssm.inner_size", 512);
	build_number(&builder, "hybrid", "ssm.state_size", 128);
	build_number(&builder, "hybrid", "ssm.group_count", 1);
	for (int i = 0; i < 4; i++)
		build_layer_tensor(&builder, i, i % 2 ? "attn_k" : "ssm_in", F16, 256, 256);
	struct blueprint blueprint = finished(&builder);
	struct estimate_request request = estimate_defaults(&blueprint);
	request.context_tokens = 4096;
	request.parallel = 8;
	struct estimate estimate = made(&blueprint, &request);
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_CACHE), 64 + 5);
	blueprint_free(&blueprint);
}

/* Eight of 64 experts are used: 512 x 4 x (2 x 256 + 8 x (2 x 4096 + 256) + 64) =
 * 133 MiB, and the inputs' 8.5 and the mask's 4. */
static void the_experts_that_are_used_are_computed_at_once(void **state)
{
	(void)state;
	struct gguf_builder builder = { 0 };
	build_small(&builder, "moe");
	build_number(&builder, "moe", "expert_count", 64);
	build_number(&builder, "moe", "expert_used_count", 8);
	build_number(&builder, "moe", "expert_feed_forward_length", 4096);
	struct blueprint blueprint = finished(&builder);
	struct estimate_request request = estimate_defaults(&blueprint);
	struct estimate estimate = made(&blueprint, &request);
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_GRAPH), 146);
	blueprint_free(&blueprint);
}

/* The tensors of Llama 3 8B as Q4_K_M has them: q6_k for the values and the way
 * down in the first and last eighth of the layers and in every third between,
 * and for the output; q4_k otherwise. */
static void build_llama_3_8b(struct gguf_builder *builder)
{
	build_string(builder, "general.architecture", "llama");
	build_u32(builder, "llama.block_count", 32);
	build_u32(builder, "llama.context_length", 8192);
	build_u32(builder, "llama.embedding_length", 4096);
	build_u32(builder, "llama.feed_forward_length", 14336);
	build_u32(builder, "llama.attention.head_count", 32);
	build_u32(builder, "llama.attention.head_count_kv", 8);
	build_tensor(builder, "token_embd.weight", Q4_K, 4096, 128256, 0);
	build_tensor(builder, "output.weight", Q6_K, 4096, 128256, 0);
	build_tensor(builder, "output_norm.weight", F32, 4096, 0, 0);
	for (int i = 0; i < 32; i++) {
		uint32_t better = i < 4 || i >= 28 || (i - 4) % 3 == 2 ? Q6_K : Q4_K;
		build_layer_tensor(builder, i, "attn_norm", F32, 4096, 0);
		build_layer_tensor(builder, i, "attn_q", Q4_K, 4096, 4096);
		build_layer_tensor(builder, i, "attn_k", Q4_K, 4096, 1024);
		build_layer_tensor(builder, i, "attn_v", better, 4096, 1024);
		build_layer_tensor(builder, i, "attn_output", Q4_K, 4096, 4096);
		build_layer_tensor(builder, i, "ffn_norm", F32, 4096, 0);
		build_layer_tensor(builder, i, "ffn_gate", Q4_K, 4096, 14336);
		build_layer_tensor(builder, i, "ffn_up", Q4_K, 4096, 14336);
		build_layer_tensor(builder, i, "ffn_down", better, 14336, 4096);
	}
}

/* What llama.cpp itself logs for this model: 4403.49 MiB of weights on the GPU,
 * 281.81 MiB on the host, a cache of 64 MiB for 512 tokens of f16 (so 1 GiB for
 * 8192), and a compute buffer of 258.50 MiB. */
static void llama_3_8b_takes_what_llama_cpp_logs(void **state)
{
	(void)state;
	struct gguf_builder builder = { 0 };
	build_llama_3_8b(&builder);
	struct blueprint blueprint = finished(&builder);
	assert_int_equal(blueprint.parameters, 8030261248);
	struct estimate_request request = estimate_defaults(&blueprint);
	struct estimate estimate = made(&blueprint, &request);
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_WEIGHTS), 4404);
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_CACHE), 1024);
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_GRAPH), 259);
	assert_int_equal(estimate.host_mib, 282);
	request.context_tokens = 512;
	struct estimate small = made(&blueprint, &request);
	assert_int_equal(mib_of(&small, 0, ESTIMATE_CACHE), 64);
	assert_int_equal(mib_of(&small, 0, ESTIMATE_GRAPH), 259);
	blueprint_free(&blueprint);
}

/* Llama 2 7B as f16; llama.cpp logs 12603.02 MiB on the GPU, 250.00 MiB on the
 * host, 256.00 MiB of cache for 512 tokens, a compute buffer of 70.50 MiB. */
static void llama_2_7b_takes_what_llama_cpp_logs(void **state)
{
	(void)state;
	struct gguf_builder builder = { 0 };
	build_string(&builder, "general.architecture", "llama");
	build_u32(&builder, "llama.block_count", 32);
	build_u32(&builder, "llama.context_length", 4096);
	build_u32(&builder, "llama.embedding_length", 4096);
	build_u32(&builder, "llama.feed_forward_length", 11008);
	build_u32(&builder, "llama.attention.head_count", 32);
	build_tensor(&builder, "token_embd.weight", F16, 4096, 32000, 0);
	build_tensor(&builder, "output.weight", F16, 4096, 32000, 0);
	build_tensor(&builder, "output_norm.weight", F32, 4096, 0, 0);
	for (int i = 0; i < 32; i++) {
		static const char *const square[] = { "attn_q", "attn_k", "attn_v", "attn_output" };
		build_layer_tensor(&builder, i, "attn_norm", F32, 4096, 0);
		build_layer_tensor(&builder, i, "ffn_norm", F32, 4096, 0);
		for (int j = 0; j < 4; j++)
			build_layer_tensor(&builder, i, square[j], F16, 4096, 4096);
		build_layer_tensor(&builder, i, "ffn_gate", F16, 4096, 11008);
		build_layer_tensor(&builder, i, "ffn_up", F16, 4096, 11008);
		build_layer_tensor(&builder, i, "ffn_down", F16, 11008, 4096);
	}
	struct blueprint blueprint = finished(&builder);
	struct estimate_request request = estimate_defaults(&blueprint);
	request.context_tokens = 512;
	struct estimate estimate = made(&blueprint, &request);
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_WEIGHTS), 12604);
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_CACHE), 256);
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_GRAPH), 71);
	assert_int_equal(estimate.host_mib, 250);
	blueprint_free(&blueprint);
}

static void a_file_that_does_not_say_enough_is_refused(void **state)
{
	(void)state;
	struct gguf_builder builder = { 0 };
	build_tensor(&builder, "blk.0.attn_k.weight", F16, 32, 32, 0);
	finish_refused(&builder, "general.architecture");
	build_string(&builder, "general.architecture", "llama");
	finish_refused(&builder, "llama.block_count");
	build_string(&builder, "general.architecture", "llama");
	build_u32(&builder, "llama.block_count", 1000000);
	finish_refused(&builder, "1000000 layers");
	build_string(&builder, "general.architecture", "llama");
	build_u32(&builder, "llama.block_count", 2);
	finish_refused(&builder, "no tensors");
	build_string(&builder, "general.architecture", "llama");
	build_u32(&builder, "llama.block_count", 1);
	build_tensor(&builder, "blk.0.attn_k.weight", F16, 32, 32, 0);
	finish_refused(&builder, "llama.embedding_length");
	build_string(&builder, "general.architecture", "rwkv7");
	build_u32(&builder, "rwkv7.block_count", 1);
	build_u32(&builder, "rwkv7.embedding_length", 32);
	build_tensor(&builder, "blk.0.time_mix.weight", F16, 32, 32, 0);
	finish_refused(&builder, "declare the model's memory");
	build_string(&builder, "general.architecture", "clip");
	finish_refused(&builder, "image encoder");
}

static void numbers_that_are_absurd_are_refused(void **state)
{
	(void)state;
	struct gguf_builder builder = { 0 };
	build_small(&builder, "llama");
	build_u32(&builder, "llama.expert_count", UINT32_MAX);
	finish_refused(&builder, "llama.expert_count is 4294967295");
	build_small(&builder, "llama");
	build_tensor(&builder, "blk.4.attn_k.weight", F16, 32, 32, 0);
	finish_refused(&builder, "layer 4");
}

static void launches_that_cannot_be_are_refused(void **state)
{
	(void)state;
	struct blueprint blueprint = small_llama();
	const struct estimate_request fine = estimate_defaults(&blueprint);
	struct estimate_request request = fine;
	request.runtime = RUNTIME_VLLM;
	refused(&blueprint, &request, "safetensors");
	request = fine;
	request.context_tokens = 0;
	refused(&blueprint, &request, "--context");
	request = fine;
	request.context_tokens = INT64_MAX;
	refused(&blueprint, &request, "context is");
	request = fine;
	request.parallel = 0;
	refused(&blueprint, &request, "parallel is 0");
	request = fine;
	request.batch_tokens = -1;
	refused(&blueprint, &request, "batch is -1");
	request = fine;
	request.gpus = ESTIMATE_GPUS_MAX + 1;
	refused(&blueprint, &request, "the number of GPUs");
	request = fine;
	request.gpus = 5;
	refused(&blueprint, &request, "4 layers cannot be dealt out to 5 GPUs");
	request = fine;
	request.share[0] = -1;
	refused(&blueprint, &request, "share of GPU 0");
	request = fine;
	request.key_type = tensor_type_of_cache("fp8");
	refused(&blueprint, &request, "llama.cpp has no cache of fp8");
	request = fine;
	request.runtime = RUNTIME_OLLAMA;
	request.key_type = tensor_type_of_cache("q8_0");
	refused(&blueprint, &request, "one type");
	request = fine;
	request.plain_attention = true;
	request.value_type = tensor_type_of_cache("q8_0");
	refused(&blueprint, &request, "need flash attention");
	blueprint.layers[2].key_length = 80;
	request = fine;
	request.key_type = tensor_type_of_cache("q8_0");
	refused(&blueprint, &request, "whole blocks of 32");
	blueprint_free(&blueprint);
}

/* Every number at its largest: the sums stop at the end of the numbers. */
static void what_is_beyond_counting_is_refused_and_never_small(void **state)
{
	(void)state;
	struct blueprint blueprint = small_llama();
	struct estimate_request request = estimate_defaults(&blueprint);
	request.context_tokens = ESTIMATE_CONTEXT_MAX;
	request.parallel = ESTIMATE_PARALLEL_MAX;
	for (int64_t i = 0; i < blueprint.layer_count; i++) {
		blueprint.layers[i].kv_heads = BLUEPRINT_NUMBER_MAX;
		blueprint.layers[i].key_length = BLUEPRINT_NUMBER_MAX;
		blueprint.layers[i].value_length = BLUEPRINT_NUMBER_MAX;
	}
	refused(&blueprint, &request, "more memory than can be counted");
	blueprint_free(&blueprint);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_file_says_is_in_the_blueprint),
		cmocka_unit_test(one_gpu_has_all_but_the_embedding),
		cmocka_unit_test(the_output_counts_as_a_layer_when_they_are_dealt_out),
		cmocka_unit_test(shares_deal_layers_out_unevenly),
		cmocka_unit_test(the_cache_has_the_bytes_of_its_type),
		cmocka_unit_test(context_is_padded_and_counts_for_each_request),
		cmocka_unit_test(without_flash_attention_scores_are_counted),
		cmocka_unit_test(a_cache_that_is_not_f16_is_converted_a_layer_at_a_time),
		cmocka_unit_test(a_model_without_an_output_has_its_embedding_twice),
		cmocka_unit_test(layers_with_a_window_keep_only_that_and_a_batch),
		cmocka_unit_test(a_pattern_says_which_layers_have_a_window),
		cmocka_unit_test(a_window_without_a_known_pattern_does_not_count),
		cmocka_unit_test(heads_of_keys_and_values_may_differ_by_layer),
		cmocka_unit_test(lengths_of_a_layer_without_a_cache_do_not_matter),
		cmocka_unit_test(lengths_of_keys_and_values_may_differ),
		cmocka_unit_test(recurrent_layers_keep_a_state_for_each_request),
		cmocka_unit_test(the_experts_that_are_used_are_computed_at_once),
		cmocka_unit_test(llama_3_8b_takes_what_llama_cpp_logs),
		cmocka_unit_test(llama_2_7b_takes_what_llama_cpp_logs),
		cmocka_unit_test(a_file_that_does_not_say_enough_is_refused),
		cmocka_unit_test(numbers_that_are_absurd_are_refused),
		cmocka_unit_test(launches_that_cannot_be_are_refused),
		cmocka_unit_test(what_is_beyond_counting_is_refused_and_never_small),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
