/* safetensors_config.c - what the config.json beside safetensors files says of a model */
#include <string.h>

#include "base/number.h"
#include "estimate/amount.h"
#include "estimate/safetensors.h"
#include "json/json_reader.h"
#include "json/member.h"

#define NAMES MEMBER_NAMES

/* The number under the first of `names` that has a value. */
static int64_t config_number(struct json_reader *reader, const char *const *names,
                             int64_t otherwise)
{
	const char *name = member_first(reader->object, names);
	return name ? json_get_integer(reader, name, 0, BLUEPRINT_NUMBER_MAX, otherwise)
	            : otherwise;
}

static bool has_layers(const json_t *object)
{
	return member_first(
		   object, NAMES("num_hidden_layers", "n_layer", "num_layers", "n_layers")) != NULL;
}

/* Models for more than text keep what describes the part for text one or two
 * objects deep. */
static const json_t *text_part(const json_t *config)
{
	static const char *const nested[] = { "text_config", "llm_config", "language_config",
		                              "thinker_config" };
	for (size_t i = 0; i < sizeof(nested) / sizeof(nested[0]); i++) {
		const json_t *part = json_object_get(config, nested[i]);
		if (has_layers(part))
			return part;
		if (has_layers(json_object_get(part, "text_config")))
			return json_object_get(part, "text_config");
	}
	return config;
}

static const char *model_type(const json_t *object)
{
	return member_text(object, "model_type");
}

static const char *value_type(const json_t *object)
{
	const char *name = member_first(object, NAMES("torch_dtype", "dtype"));
	return name ? member_text(object, name) : "";
}

/* Every n-th layer looks over all tokens and the others have a window; 0 if
 * which ones have one is not known. */
static int64_t window_period(struct json_reader *reader)
{
	const char *type = model_type(reader->object);
	int64_t usual = 0;
	if (strcmp(type, "gemma2") == 0)
		usual = 2;
	if (strcmp(type, "gemma3_text") == 0)
		usual = 6;
	return config_number(reader, NAMES("sliding_window_pattern", "_sliding_window_pattern"),
	                     usual);
}

/* The window of a layer by its own word for it; -1 if that is not known. */
static int64_t window_by_type(struct json_reader *reader, const char *type)
{
	if (type && strcmp(type, "full_attention") == 0)
		return 0;
	if (type && strcmp(type, "sliding_attention") == 0)
		return config_number(reader, NAMES("sliding_window"), 0);
	if (type && strcmp(type, "chunked_attention") == 0)
		return config_number(reader, NAMES("attention_chunk_size"), 0);
	return -1;
}

/* Windows are believed only where it is said which layers have one; without, a
 * layer counts as looking over all tokens, which is more memory. */
static bool set_windows(struct blueprint *blueprint, struct json_reader *reader)
{
	const json_t *types = json_object_get(reader->object, "layer_types");
	for (int64_t i = 0; json_is_array(types) && i < blueprint->layer_count; i++) {
		const char *type = json_string_value(json_array_get(types, (size_t)i));
		int64_t window = window_by_type(reader, type);
		if (window < 0)
			return error_set(reader->error, ERROR_INVALID,
			                 "layer %lld is of the type %.40s, whose memory is not "
			                 "known: declare the model's memory instead",
			                 (long long)i, type ? type : "(none)");
		blueprint->layers[i].window = window;
	}
	if (json_is_array(types) || !json_get_flag(reader, "use_sliding_window", true))
		return true;
	int64_t period = window_period(reader);
	int64_t window = config_number(reader, NAMES("sliding_window"), 0);
	for (int64_t i = 0; period > 1 && i < blueprint->layer_count; i++)
		blueprint->layers[i].window = (i + 1) % period != 0 ? window : 0;
	return true;
}

/* Keys and values that are kept compressed, for all heads together. */
static bool is_latent(struct json_reader *reader)
{
	return member_has(reader->object, "kv_lora_rank") &&
	       member_has(reader->object, "qk_rope_head_dim") &&
	       strcmp(model_type(reader->object), "minicpm3") != 0;
}

static void set_heads(struct blueprint *blueprint, struct json_reader *reader)
{
	int64_t heads = blueprint->heads;
	int64_t length = heads > 0 ? blueprint->embedding_length / heads : 0;
	int64_t key = config_number(reader, NAMES("head_dim"), length);
	int64_t value = config_number(reader, NAMES("v_head_dim"), key);
	int64_t nope = config_number(reader, NAMES("qk_nope_head_dim"), 0);
	int64_t rope = config_number(reader, NAMES("qk_rope_head_dim"), 0);
	bool shared = json_get_flag(reader, "multi_query", false);
	int64_t kv_heads = config_number(
	    reader, NAMES("num_key_value_heads", "num_kv_heads", "n_head_kv"), shared ? 1 : heads);
	if (is_latent(reader)) {
		kv_heads = 1;
		key = config_number(reader, NAMES("kv_lora_rank"), 0) + rope;
		value = 0;
	} else if (nope > 0) {
		/* Decompressed keys, and values padded to their length. */
		key = nope + rope;
		value = key;
	}
	for (int64_t i = 0; i < blueprint->layer_count; i++) {
		blueprint->layers[i].kv_heads = kv_heads;
		blueprint->layers[i].key_length = key;
		blueprint->layers[i].value_length = value;
	}
	/* An index for sparse attention has a byte per value, and a scale of four
	 * bytes for each 128 of them. */
	int64_t index = config_number(reader, NAMES("index_head_dim"), 0);
	blueprint->index_bytes = index + amount_quotient_up(index, 128) * 4;
}

static void set_lengths(struct blueprint *blueprint, struct json_reader *reader)
{
	blueprint->embedding_length =
	    config_number(reader, NAMES("hidden_size", "n_embd", "d_model"), 0);
	blueprint->heads =
	    config_number(reader, NAMES("num_attention_heads", "n_head", "n_heads"), 0);
	blueprint->vocabulary = config_number(reader, NAMES("vocab_size"), 0);
	blueprint->context_length =
	    config_number(reader,
	                  NAMES("max_position_embeddings", "n_positions", "max_sequence_length",
	                        "max_seq_len", "seq_length"),
	                  0);
	blueprint->feed_forward_length =
	    config_number(reader, NAMES("intermediate_size", "ffn_hidden_size", "n_inner"),
	                  4 * min64(blueprint->embedding_length, BLUEPRINT_NUMBER_MAX / 4));
	blueprint->experts = config_number(
	    reader,
	    NAMES("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts"), 0);
	blueprint->experts_used = config_number(
	    reader, NAMES("num_experts_per_tok", "num_experts_per_token", "moe_top_k", "moe_topk"),
	    0);
	blueprint->expert_feed_forward_length =
	    config_number(reader, NAMES("moe_intermediate_size"), blueprint->feed_forward_length);
}

static bool safetensors_config_refuse_unknown(const json_t *part, struct error *error)
{
	static const char *const recurrent[] = { "mamba_d_state",
		                                 "ssm_cfg",
		                                 "state_size",
		                                 "linear_num_value_heads",
		                                 "linear_attn_config",
		                                 "layers_block_type",
		                                 "hybrid_override_pattern" };
	for (size_t i = 0; i < sizeof(recurrent) / sizeof(recurrent[0]); i++) {
		if (member_has(part, recurrent[i]))
			return error_set(error, ERROR_INVALID,
			                 "it has recurrent layers (%s), whose memory is not known "
			                 "here: declare the model's memory instead",
			                 recurrent[i]);
	}
	if (member_flag(part, "is_encoder_decoder"))
		return error_set(error, ERROR_INVALID,
		                 "it is an encoder with a decoder, whose memory is not known here: "
		                 "declare the model's memory instead");
	return true;
}

static bool check_lengths(const struct blueprint *blueprint, struct error *error)
{
	const struct {
		const char *name;
		int64_t number;
	} needed[] = { { "hidden_size", blueprint->embedding_length },
		       { "num_attention_heads", blueprint->heads },
		       { "vocab_size", blueprint->vocabulary },
		       { "num_key_value_heads", blueprint->layers[0].kv_heads },
		       { "head_dim", blueprint->layers[0].key_length } };
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		if (needed[i].number == 0)
			return error_set(error, ERROR_INVALID,
			                 "it does not say %s: declare the model's memory instead",
			                 needed[i].name);
	}
	return true;
}

static bool read_part(struct blueprint *blueprint, struct safetensors_config *config,
                      const json_t *part, struct error *error)
{
	struct json_reader reader = json_reader_of(part, "", error);
	if (!safetensors_config_refuse_unknown(part, error))
		return false;
	if (!has_layers(part))
		return error_set(error, ERROR_INVALID, "it does not say num_hidden_layers");
	int64_t layers = config_number(
	    &reader, NAMES("num_hidden_layers", "n_layer", "num_layers", "n_layers"), 0);
	if (reader.failed || !blueprint_set_layers(blueprint, layers, error))
		return false;
	config->nextn_layers =
	    json_get_integer(&reader, "num_nextn_predict_layers", 0, BLUEPRINT_LAYERS_MAX, 0);
	set_lengths(blueprint, &reader);
	set_heads(blueprint, &reader);
	return set_windows(blueprint, &reader) && !reader.failed && check_lengths(blueprint, error);
}

bool safetensors_config_read(struct blueprint *blueprint, struct safetensors_config *config,
                             const struct reader *reader, struct error *error)
{
	*blueprint = (struct blueprint){ .format = MODEL_SAFETENSORS };
	*config = (struct safetensors_config){ 0 };
	if (reader->size_bytes > SAFETENSORS_CONFIG_BYTES_MAX)
		return error_set(error, ERROR_INVALID, "it is larger than %d bytes",
		                 SAFETENSORS_CONFIG_BYTES_MAX);
	json_t *json = safetensors_object_read(reader, 0, reader->size_bytes, error);
	if (!json)
		return false;
	const json_t *part = text_part(json);
	const char *type = value_type(part);
	if (!*type)
		type = value_type(json);
	blueprint_text(blueprint->architecture, model_type(json));
	blueprint_text(blueprint->value_type, type);
	bool made = read_part(blueprint, config, part, error);
	json_decref(json);
	return made;
}
