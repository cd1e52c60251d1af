/* tensors_test.c - safetensors models, estimated for vLLM, against hand calculations */
#include "made.h"

#include <stdlib.h>

#include "bytes.h"
#include "estimate/safetensors.h"

/* Reads a config.json; the blueprint is to be freed. */
static bool read_config(struct blueprint *blueprint, struct safetensors_config *config,
                        const char *text, struct error *error)
{
	struct memory_bytes memory = { text, strlen(text) };
	struct reader reader = reader_of_memory(&memory);
	*error = (struct error){ 0 };
	return safetensors_config_read(blueprint, config, &reader, error);
}

static struct blueprint configured(const char *text, struct safetensors_config *config)
{
	struct blueprint blueprint;
	struct error error;
	if (!read_config(&blueprint, config, text, &error))
		fail_msg("%s", error.text);
	return blueprint;
}

static void refuse_config(const char *text, const char *because)
{
	struct blueprint blueprint;
	struct safetensors_config config;
	struct error error;
	assert_false(read_config(&blueprint, &config, text, &error));
	assert_says(&error, because);
	blueprint_free(&blueprint);
}

/* Adds the tensors of a header that is followed by the given number of bytes of data. */
static bool add_header(struct blueprint *blueprint, const struct safetensors_config *config,
                       const char *json, int64_t data_bytes, struct text_map *seen,
                       struct error *error)
{
	struct buffer header = { 0 };
	struct header_only file;
	put_number(&header, strlen(json), 8);
	buffer_bytes(&header, json, strlen(json));
	struct reader reader = reader_of_header(&file, &header, (int64_t)header.size + data_bytes);
	*error = (struct error){ 0 };
	bool added = safetensors_add(blueprint, config, &reader, seen, error);
	assert_true(file.furthest <= (int64_t)header.size);
	buffer_free(&header);
	return added;
}

#define SMALL                                                                                      \
	"{\"model_type\":\"llama\",\"hidden_size\":1024,\"num_hidden_layers\":2,"                  \
	"\"num_attention_heads\":8,\"num_key_value_heads\":2,\"intermediate_size\":4096,"          \
	"\"vocab_size\":32768,\"max_position_embeddings\":4096,\"torch_dtype\":\"bfloat16\"}"

/* Adds tensors of bf16: matrices of 1024 x 1024, which are 2 MiB, and norms of
 * 1024 values. The list of names ends with NULL. */
static void add_tensors(struct blueprint *blueprint, const struct safetensors_config *config,
                        const char *const *names)
{
	struct buffer json = { 0 };
	struct text_map seen = { 0 };
	struct error error;
	int offset = 0;
	buffer_text(&json, "{\"__metadata__\":{\"format\":\"pt\"}");
	for (; *names; names++) {
		bool norm = strstr(*names, "norm") != NULL;
		int end = offset + (norm ? 1024 : 1024 * 1024) * 2;
		buffer_print(&json,
		             ",\"%s\":{\"dtype\":\"BF16\",\"shape\":%s,"
		             "\"data_offsets\":[%d,%d]}",
		             *names, norm ? "[1024]" : "[1024,1024]", offset, end);
		offset = end;
	}
	buffer_text(&json, "}");
	if (!add_header(blueprint, config, json.data, offset, &seen, &error))
		fail_msg("%s", error.text);
	text_map_free(&seen);
	buffer_free(&json);
}

#define TENSORS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void config_is_read_into_the_blueprint(void **state)
{
	(void)state;
	struct safetensors_config config;
	struct blueprint blueprint = configured(SMALL, &config);
	assert_string_equal(blueprint.architecture, "llama");
	assert_string_equal(blueprint.value_type, "bfloat16");
	assert_int_equal(blueprint.layer_count, 2);
	assert_int_equal(blueprint.embedding_length, 1024);
	assert_int_equal(blueprint.layers[1].kv_heads, 2);
	assert_int_equal(blueprint.layers[1].key_length, 128);
	assert_int_equal(blueprint.layers[1].value_length, 128);
	assert_int_equal(blueprint.context_length, 4096);
	blueprint_free(&blueprint);
}

static struct blueprint small(void)
{
	struct safetensors_config config;
	struct blueprint blueprint = configured(SMALL, &config);
	add_tensors(&blueprint, &config,
	            TENSORS("model.layers.0.self_attn.q_proj.weight",
	                    "model.layers.0.self_attn.k_proj.weight",
	                    "model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.gate.weight",
	                    "model.norm.weight"));
	return blueprint;
}

/* Queries and the way up are divided, keys by their 2 heads, the router and the
 * norm are copied: 2 + 2, 2, and 2 MiB with 2048 bytes. */
static void tensors_are_divided_or_copied_by_their_names(void **state)
{
	(void)state;
	struct blueprint blueprint = small();
	assert_int_equal(blueprint.divided_bytes, 4 << 20);
	assert_int_equal(blueprint.kv_bytes, 2 << 20);
	assert_int_equal(blueprint.copied_bytes, (2 << 20) + 2048);
	assert_int_equal(blueprint.weight_bytes, 8390656);
	assert_int_equal(blueprint.parameters, 4 * 1024 * 1024 + 1024);
	blueprint_free(&blueprint);
}

static void weights_are_divided_among_the_gpus(void **state)
{
	(void)state;
	struct blueprint blueprint = small();
	struct estimate_request request = estimate_defaults(&blueprint);
	struct estimate one = made(&blueprint, &request);
	/* 8 MiB and 2048 bytes. */
	assert_int_equal(mib_of(&one, 0, ESTIMATE_WEIGHTS), 9);
	request.gpus = 2;
	struct estimate two = made(&blueprint, &request);
	/* 4 / 2 + 2 / 2 + 2 MiB and 2048 bytes. */
	assert_int_equal(mib_of(&two, 0, ESTIMATE_WEIGHTS), 6);
	request.gpus = 4;
	struct estimate four = made(&blueprint, &request);
	/* 4 / 4 + 2 x 1 / 2 (a head at least) + 2 MiB and 2048 bytes. */
	assert_int_equal(mib_of(&four, 0, ESTIMATE_WEIGHTS), 5);
	assert_int_equal(four.total_mib, 4 * four.gpu[3].total_mib);
	blueprint_free(&blueprint);
}

/* 2 layers x 4096 tokens x 2 heads x (128 + 128) x 2 bytes = 8 MiB on one GPU; a
 * head each on two; and still a head each on four and eight. */
static void heads_of_keys_and_values_are_copied_when_there_are_too_few(void **state)
{
	(void)state;
	static const struct {
		int gpus;
		int64_t mib;
	} splits[] = { { 1, 8 }, { 2, 4 }, { 4, 4 }, { 8, 4 } };
	struct blueprint blueprint = small();
	struct estimate_request request = estimate_defaults(&blueprint);
	for (size_t i = 0; i < 4; i++) {
		request.gpus = splits[i].gpus;
		struct estimate estimate = made(&blueprint, &request);
		assert_int_equal(mib_of(&estimate, 0, ESTIMATE_CACHE), splits[i].mib);
	}
	blueprint_free(&blueprint);
}

/* 1000 tokens are 63 blocks of 16: 1008. 2 layers x 3 requests x 1008 x 2 x 256
 * bytes of fp8 = 3096576, 2.95 MiB. */
static void context_is_kept_in_blocks_for_each_request(void **state)
{
	(void)state;
	struct blueprint blueprint = small();
	struct estimate_request request = estimate_defaults(&blueprint);
	request.context_tokens = 1000;
	request.parallel = 3;
	request.key_type = request.value_type = tensor_type_of_cache("fp8");
	struct estimate estimate = made(&blueprint, &request);
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_CACHE), 3);
	assert_non_null(strstr(estimate.gpu[0].line[ESTIMATE_CACHE].text,
	                       "3 requests x (2 layers x 1008 tokens) x 512 bytes"));
	blueprint_free(&blueprint);
}

/* The layers: 8192 tokens x (4 x 1024 + 3 x 4096) x 2 bytes = 256 MiB, on two GPUs
 * 8192 x (4096 + 3 x 2048) x 2 = 160. To choose for 512 requests: 512 x 32768 x 40
 * = 640 MiB. */
static void the_graph_is_the_larger_of_layers_and_choice(void **state)
{
	(void)state;
	struct blueprint blueprint = small();
	struct estimate_request request = estimate_defaults(&blueprint);
	struct estimate one = made(&blueprint, &request);
	assert_int_equal(mib_of(&one, 0, ESTIMATE_GRAPH), 256);
	request.gpus = 2;
	struct estimate two = made(&blueprint, &request);
	assert_int_equal(mib_of(&two, 0, ESTIMATE_GRAPH), 160);
	request.parallel = 512;
	struct estimate many = made(&blueprint, &request);
	assert_int_equal(mib_of(&many, 0, ESTIMATE_GRAPH), 640);
	request.parallel = 1;
	request.batch_tokens = 2048;
	struct estimate little = made(&blueprint, &request);
	assert_int_equal(mib_of(&little, 0, ESTIMATE_GRAPH), 40);
	blueprint_free(&blueprint);
}

static void communication_counts_from_two_gpus_on(void **state)
{
	(void)state;
	struct blueprint blueprint = small();
	struct estimate_request request = estimate_defaults(&blueprint);
	struct estimate one = made(&blueprint, &request);
	assert_int_equal(mib_of(&one, 0, ESTIMATE_OVERHEAD), 1856);
	request.gpus = 2;
	struct estimate two = made(&blueprint, &request);
	assert_int_equal(mib_of(&two, 0, ESTIMATE_OVERHEAD), 2 * 1856);
	blueprint_free(&blueprint);
}

/* DeepSeek-V3: 512 + 64 values for all heads together, in each of 61 layers. The
 * paper says 70.272 KB per token: 61 x 576 x 2 = 70272. All GPUs have all of it:
 * 131072 x 70272 = 8784 MiB. */
static void compressed_keys_and_values_are_on_every_gpu(void **state)
{
	(void)state;
	struct safetensors_config config;
	struct blueprint blueprint = configured(
	    "{\"model_type\":\"deepseek_v3\",\"hidden_size\":7168,\"num_hidden_layers\":61,"
	    "\"num_attention_heads\":128,\"num_key_value_heads\":128,\"kv_lora_rank\":512,"
	    "\"qk_rope_head_dim\":64,\"qk_nope_head_dim\":128,\"v_head_dim\":128,"
	    "\"intermediate_size\":18432,\"vocab_size\":129280,\"n_routed_experts\":256,"
	    "\"num_experts_per_tok\":8,\"moe_intermediate_size\":2048,"
	    "\"num_nextn_predict_layers\":1,\"max_position_embeddings\":163840}",
	    &config);
	struct estimate_request request = estimate_defaults(&blueprint);
	request.context_tokens = 131072;
	for (int gpus = 1; gpus <= 16; gpus *= 2) {
		request.gpus = gpus;
		struct estimate estimate = made(&blueprint, &request);
		assert_int_equal(mib_of(&estimate, 0, ESTIMATE_CACHE), 8784);
	}
	assert_int_equal(config.nextn_layers, 1);
	blueprint_free(&blueprint);
}

/* Published bytes of cache per token, bf16: Llama 3.1 405B 516.096 KB = 126 x 8 x
 * 256 x 2, Qwen 2.5 72B 327.680 KB = 80 x 8 x 256 x 2 (DeepSeek, 2025). 16 tokens of
 * 65536 requests are 2^20 tokens, so the MiB are the bytes per token. */
static void published_caches_per_token_are_met(void **state)
{
	(void)state;
	static const struct {
		const char *config;
		int64_t bytes_per_token;
	} models[] = {
		{ "{\"hidden_size\":16384,\"num_hidden_layers\":126,\"num_attention_heads\":128,"
		  "\"num_key_value_heads\":8,\"vocab_size\":128256,\"intermediate_size\":53248}",
		  516096 },
		{ "{\"hidden_size\":8192,\"num_hidden_layers\":80,\"num_attention_heads\":64,"
		  "\"num_key_value_heads\":8,\"vocab_size\":152064,\"intermediate_size\":29568}",
		  327680 },
	};
	for (size_t i = 0; i < 2; i++) {
		struct safetensors_config config;
		struct blueprint blueprint = configured(models[i].config, &config);
		struct estimate_request request = estimate_defaults(&blueprint);
		request.context_tokens = 16;
		request.parallel = 65536;
		struct estimate estimate = made(&blueprint, &request);
		assert_int_equal(mib_of(&estimate, 0, ESTIMATE_CACHE), models[i].bytes_per_token);
		blueprint_free(&blueprint);
	}
}

/* Tensors of the layers behind the last are for guessing ahead, and not loaded. */
static void layers_that_guess_ahead_are_not_loaded(void **state)
{
	(void)state;
	struct safetensors_config config;
	struct blueprint blueprint = configured(SMALL, &config);
	config.nextn_layers = 1;
	add_tensors(
	    &blueprint, &config,
	    TENSORS("model.layers.1.mlp.up_proj.weight", "model.layers.2.mlp.up_proj.weight"));
	assert_int_equal(blueprint.divided_bytes, 2 << 20);
	assert_int_equal(blueprint.unused_bytes, 2 << 20);
	blueprint_free(&blueprint);
}

/* One matrix for 8 heads of queries and 2 each of keys and values: a third of it
 * is for the latter. */
static void fused_projections_are_divided_part_by_part(void **state)
{
	(void)state;
	struct safetensors_config config;
	struct text_map seen = { 0 };
	struct error error;
	struct blueprint blueprint = configured(SMALL, &config);
	assert_true(add_header(&blueprint, &config,
	                       "{\"model.layers.0.self_attn.qkv_proj.weight\":{\"dtype\":\"BF16\","
	                       "\"shape\":[1536,1024],\"data_offsets\":[0,3145728]}}",
	                       3145728, &seen, &error));
	assert_int_equal(blueprint.kv_bytes, 1 << 20);
	assert_int_equal(blueprint.divided_bytes, 2 << 20);
	text_map_free(&seen);
	blueprint_free(&blueprint);
}

static void encoders_of_images_are_copied(void **state)
{
	(void)state;
	struct safetensors_config config;
	struct blueprint blueprint = configured(SMALL, &config);
	add_tensors(&blueprint, &config,
	            TENSORS("vision_tower.encoder.layers.0.self_attn.q_proj.weight"));
	assert_int_equal(blueprint.copied_bytes, 2 << 20);
	blueprint_free(&blueprint);
}

static void the_text_part_of_a_larger_model_is_found(void **state)
{
	(void)state;
	struct safetensors_config config;
	struct blueprint once = configured("{\"model_type\":\"gemma3\",\"text_config\":" SMALL
	                                   ",\"vision_config\":{\"num_hidden_layers\":27}}",
	                                   &config);
	assert_int_equal(once.layer_count, 2);
	assert_string_equal(once.architecture, "gemma3");
	blueprint_free(&once);
	struct blueprint twice =
	    configured("{\"thinker_config\":{\"text_config\":" SMALL "}}", &config);
	assert_int_equal(twice.layer_count, 2);
	blueprint_free(&twice);
}

/* Every second layer has a window of 1024. With batches of 512 it keeps 1024 - 1 +
 * 512 = 1535 tokens: 96 blocks, and one: 1552. 2 + 2 layers: (2 x 4096 + 2 x 1552) x
 * 2 heads x 256 x 2 bytes = 11.03 MiB. */
static void layers_with_a_window_keep_that_and_a_batch(void **state)
{
	(void)state;
	struct safetensors_config config;
	struct blueprint blueprint = configured(
	    "{\"hidden_size\":1024,\"num_hidden_layers\":4,\"num_attention_heads\":8,"
	    "\"num_key_value_heads\":2,\"vocab_size\":1000,\"max_position_embeddings\":4096,"
	    "\"sliding_window\":1024,\"layer_types\":[\"sliding_attention\",\"full_attention\","
	    "\"sliding_attention\",\"full_attention\"]}",
	    &config);
	struct estimate_request request = estimate_defaults(&blueprint);
	request.batch_tokens = 512;
	struct estimate estimate = made(&blueprint, &request);
	assert_int_equal(mib_of(&estimate, 0, ESTIMATE_CACHE), 12);
	blueprint_free(&blueprint);
}

/* gemma3: five of six layers have a window, in groups of as many as do not: of
 * 8 layers 1 does not, so 7 do. */
static void windows_follow_the_pattern_that_is_given(void **state)
{
	(void)state;
	struct safetensors_config config;
	struct blueprint blueprint =
	    configured("{\"hidden_size\":1024,\"num_hidden_layers\":8,\"num_attention_heads\":8,"
	               "\"vocab_size\":1000,\"sliding_window\":512,\"sliding_window_pattern\":6}",
	               &config);
	for (int i = 0; i < 8; i++)
		assert_int_equal(blueprint.layers[i].window, i == 5 ? 0 : 512);
	blueprint_free(&blueprint);
	struct blueprint off =
	    configured("{\"hidden_size\":1024,\"num_hidden_layers\":8,\"num_attention_heads\":8,"
	               "\"vocab_size\":1000,\"sliding_window\":512,\"sliding_window_pattern\":6,"
	               "\"use_sliding_window\":false}",
	               &config);
	assert_int_equal(off.layers[0].window, 0);
	blueprint_free(&off);
}

static void splits_that_do_not_divide_heads_are_refused(void **state)
{
	(void)state;
	struct safetensors_config config;
	struct blueprint blueprint = configured(
	    "{\"hidden_size\":1536,\"num_hidden_layers\":4,\"num_attention_heads\":12,"
	    "\"num_key_value_heads\":6,\"vocab_size\":1000,\"max_position_embeddings\":4096}",
	    &config);
	struct estimate_request request = estimate_defaults(&blueprint);
	request.gpus = 5;
	refused(&blueprint, &request, "12 attention heads cannot be divided among 5 GPUs");
	request.gpus = 4;
	refused(&blueprint, &request, "6 heads of keys and values");
	request.gpus = 2;
	request.share[0] = 1;
	refused(&blueprint, &request, "evenly");
	request = estimate_defaults(&blueprint);
	request.runtime = RUNTIME_LLAMA_CPP;
	refused(&blueprint, &request, "GGUF");
	request = estimate_defaults(&blueprint);
	request.key_type = request.value_type = tensor_type_of_cache("q8_0");
	refused(&blueprint, &request, "vllm has no cache of q8_0");
	request = estimate_defaults(&blueprint);
	request.plain_attention = true;
	refused(&blueprint, &request, "flash attention");
	blueprint_free(&blueprint);
}

static void configs_that_make_no_sense_are_refused(void **state)
{
	(void)state;
	refuse_config("", "too short");
	refuse_config("[]", "not an object");
	refuse_config("{\"a\":1,\"a\":2}", "duplicate");
	refuse_config("{}", "num_hidden_layers");
	refuse_config("{\"num_hidden_layers\":0}", "0 layers");
	refuse_config("{\"num_hidden_layers\":\"two\"}",
	              "num_hidden_layers must be a whole number");
	refuse_config("{\"num_hidden_layers\":2}", "hidden_size");
	refuse_config("{\"num_hidden_layers\":2,\"hidden_size\":64}", "num_attention_heads");
	refuse_config("{\"num_hidden_layers\":2,\"hidden_size\":64,\"num_attention_heads\":-1}",
	              "num_attention_heads must be a whole number");
	refuse_config("{\"num_hidden_layers\":2,\"hidden_size\":64,\"num_attention_heads\":4}",
	              "vocab_size");
	refuse_config("{\"num_hidden_layers\":2,\"hidden_size\":64,\"num_attention_heads\":128,"
	              "\"vocab_size\":10}",
	              "head_dim");
	refuse_config("{\"num_hidden_layers\":2,\"hidden_size\":64,\"num_attention_heads\":4,"
	              "\"vocab_size\":10,\"layer_types\":[\"linear_attention\"]}",
	              "linear_attention");
	refuse_config("{\"num_hidden_layers\":2,\"mamba_d_state\":128}", "recurrent");
	refuse_config("{\"num_hidden_layers\":2,\"is_encoder_decoder\":true}", "encoder");
}

static void json_that_is_nested_too_deep_is_refused(void **state)
{
	(void)state;
	enum { DEPTH = 100000 };
	char *text = memory_alloc(DEPTH + 1);
	memset(text, '[', DEPTH);
	text[DEPTH] = '\0';
	refuse_config(text, "nested more than 64 levels");
	free(text);
}

static void refuse_header(const char *json, int64_t data_bytes, const char *because)
{
	struct safetensors_config config;
	struct text_map seen = { 0 };
	struct error error;
	struct blueprint blueprint = configured(SMALL, &config);
	assert_false(add_header(&blueprint, &config, json, data_bytes, &seen, &error));
	assert_says(&error, because);
	text_map_free(&seen);
	blueprint_free(&blueprint);
}

static void headers_that_make_no_sense_are_refused(void **state)
{
	(void)state;
	refuse_header("{\"t\":", 0, "JSON");
	refuse_header("[]", 0, "not an object");
	refuse_header("{\"t\":5}", 8, "lacks a dtype");
	refuse_header("{\"t\":{\"dtype\":\"F32\",\"shape\":[1]}}", 8, "data_offsets");
	refuse_header("{\"t\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 8,
	              "a shape");
	refuse_header("{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 8,
	              "data_offsets");
	refuse_header("{\"t\":{\"dtype\":\"Q9\",\"shape\":[1],\"data_offsets\":[0,4]}}", 8,
	              "type Q9");
	refuse_header("{\"t\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,4]}}", 8,
	              "are not 4 bytes");
	refuse_header("{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 3,
	              "downloaded in full");
	refuse_header("{\"t\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],"
	              "\"data_offsets\":[0,4]}}",
	              8, "a shape");
	refuse_header("{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
	              "\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
	              8, "duplicate");
}

static void a_tensor_in_two_files_is_refused(void **state)
{
	(void)state;
	const char *header = "{\"t\":{\"dtype\":\"F4\",\"shape\":[8],\"data_offsets\":[0,4]}}";
	struct safetensors_config config;
	struct text_map seen = { 0 };
	struct error error;
	struct blueprint blueprint = configured(SMALL, &config);
	assert_true(add_header(&blueprint, &config, header, 4, &seen, &error));
	assert_false(add_header(&blueprint, &config, header, 4, &seen, &error));
	assert_non_null(strstr(error.text, "another file"));
	text_map_free(&seen);
	blueprint_free(&blueprint);
}

static void a_header_longer_than_its_file_is_refused(void **state)
{
	(void)state;
	static const unsigned char bytes[16] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f };
	struct safetensors_config config;
	struct text_map seen = { 0 };
	struct error error = { 0 };
	struct blueprint blueprint = configured(SMALL, &config);
	struct memory_bytes memory = { bytes, sizeof(bytes) };
	struct reader reader = reader_of_memory(&memory);
	assert_false(safetensors_add(&blueprint, &config, &reader, &seen, &error));
	assert_non_null(strstr(error.text, "its header should be 9223372036854775807 bytes"));
	memory.size = 5;
	reader = reader_of_memory(&memory);
	assert_false(safetensors_add(&blueprint, &config, &reader, &seen, &error));
	assert_non_null(strstr(error.text, "too short"));
	blueprint_free(&blueprint);
}

static void refuse_index(const char *text, const char *because)
{
	struct memory_bytes memory = { text, strlen(text) };
	struct reader reader = reader_of_memory(&memory);
	struct error error = { 0 };
	assert_null(safetensors_index_read(&reader, &error));
	assert_says(&error, because);
}

static void an_index_lists_each_file_once(void **state)
{
	(void)state;
	const char *text = "{\"metadata\":{},\"weight_map\":{\"a\":\"one.safetensors\","
			   "\"b\":\"two.safetensors\",\"c\":\"one.safetensors\"}}";
	struct memory_bytes memory = { text, strlen(text) };
	struct reader reader = reader_of_memory(&memory);
	struct error error = { 0 };
	json_t *files = safetensors_index_read(&reader, &error);
	assert_non_null(files);
	assert_int_equal(json_array_size(files), 2);
	json_decref(files);
}

static void an_index_that_leads_elsewhere_is_refused(void **state)
{
	(void)state;
	refuse_index("{}", "weight_map");
	refuse_index("{\"weight_map\":{}}", "weight_map");
	refuse_index("{\"weight_map\":{\"a\":\"../../secret\"}}",
	             "not in a file of this directory");
	refuse_index("{\"weight_map\":{\"a\":7}}", "not in a file of this directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(config_is_read_into_the_blueprint),
		cmocka_unit_test(tensors_are_divided_or_copied_by_their_names),
		cmocka_unit_test(weights_are_divided_among_the_gpus),
		cmocka_unit_test(heads_of_keys_and_values_are_copied_when_there_are_too_few),
		cmocka_unit_test(context_is_kept_in_blocks_for_each_request),
		cmocka_unit_test(the_graph_is_the_larger_of_layers_and_choice),
		cmocka_unit_test(communication_counts_from_two_gpus_on),
		cmocka_unit_test(compressed_keys_and_values_are_on_every_gpu),
		cmocka_unit_test(published_caches_per_token_are_met),
		cmocka_unit_test(layers_that_guess_ahead_are_not_loaded),
		cmocka_unit_test(fused_projections_are_divided_part_by_part),
		cmocka_unit_test(encoders_of_images_are_copied),
		cmocka_unit_test(the_text_part_of_a_larger_model_is_found),
		cmocka_unit_test(layers_with_a_window_keep_that_and_a_batch),
		cmocka_unit_test(windows_follow_the_pattern_that_is_given),
		cmocka_unit_test(splits_that_do_not_divide_heads_are_refused),
		cmocka_unit_test(configs_that_make_no_sense_are_refused),
		cmocka_unit_test(json_that_is_nested_too_deep_is_refused),
		cmocka_unit_test(headers_that_make_no_sense_are_refused),
		cmocka_unit_test(a_tensor_in_two_files_is_refused),
		cmocka_unit_test(a_header_longer_than_its_file_is_refused),
		cmocka_unit_test(an_index_lists_each_file_once),
		cmocka_unit_test(an_index_that_leads_elsewhere_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
