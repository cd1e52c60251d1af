/* safetensors.c - the headers of safetensors files, and what is done with tensors */
#include "estimate/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "estimate/amount.h"
#include "estimate/tensor_type.h"
#include "json/json_reader.h"

#define JSON_DEPTH 64

/* What tensor parallelism does with a tensor. */
enum treatment { DIVIDED, DIVIDED_BY_KV_HEADS, FUSED_QKV, COPIED };

/* By a part of the tensor's name between dots. What is not listed (norms,
 * routers, compressed projections, encoders of images and sound, and whatever is
 * new) is copied, which is never too little. */
static const struct {
	const char *part;
	enum treatment treatment;
} treatments[] = {
	{ "k_proj", DIVIDED_BY_KV_HEADS },
	{ "v_proj", DIVIDED_BY_KV_HEADS },
	{ "wk", DIVIDED_BY_KV_HEADS },
	{ "wv", DIVIDED_BY_KV_HEADS },
	{ "qkv_proj", FUSED_QKV },
	{ "query_key_value", FUSED_QKV },
	{ "Wqkv", FUSED_QKV },
	{ "c_attn", FUSED_QKV },
	{ "q_proj", DIVIDED },
	{ "o_proj", DIVIDED },
	{ "wq", DIVIDED },
	{ "wo", DIVIDED },
	{ "q_b_proj", DIVIDED },
	{ "kv_b_proj", DIVIDED },
	{ "gate_proj", DIVIDED },
	{ "up_proj", DIVIDED },
	{ "gate_up_proj", DIVIDED },
	{ "down_proj", DIVIDED },
	{ "experts", DIVIDED },
	{ "w1", DIVIDED },
	{ "w2", DIVIDED },
	{ "w3", DIVIDED },
	{ "fc1", DIVIDED },
	{ "fc2", DIVIDED },
	{ "c_fc", DIVIDED },
	{ "c_proj", DIVIDED },
	{ "dense_h_to_4h", DIVIDED },
	{ "dense_4h_to_h", DIVIDED },
	{ "out_proj", DIVIDED },
	{ "embed_tokens", DIVIDED },
	{ "wte", DIVIDED },
	{ "word_embeddings", DIVIDED },
	{ "lm_head", DIVIDED },
};

static const char *const encoder_parts[] = { "vision_tower", "vision_model",   "visual",
	                                     "audio_tower",  "vision_encoder", "audio_encoder" };

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static bool is_part(const char *at, size_t length, const char *part)
{
	return strlen(part) == length && memcmp(at, part, length) == 0;
}

static bool is_encoder_part(const char *at, size_t length)
{
	for (size_t i = 0; i < LENGTH(encoder_parts); i++) {
		if (is_part(at, length, encoder_parts[i]))
			return true;
	}
	return false;
}

static enum treatment treatment_of_part(const char *at, size_t length)
{
	for (size_t i = 0; i < LENGTH(treatments); i++) {
		if (is_part(at, length, treatments[i].part))
			return treatments[i].treatment;
	}
	return COPIED;
}

/* The first part that says something decides: the projections of an expert are
 * those of an expert. */
static enum treatment treatment_of(const char *name, size_t dimensions)
{
	enum treatment found = COPIED;
	/* Vectors (biases, scales) are small, and some of them are copied. */
	if (dimensions < 2)
		return COPIED;
	for (const char *at = name; *at != '\0';) {
		size_t length = strcspn(at, ".");
		if (is_encoder_part(at, length))
			return COPIED;
		if (found == COPIED)
			found = treatment_of_part(at, length);
		at += length + (at[length] == '.');
	}
	return found;
}

/* The number behind ".layers." in the name; -1 if there is none. */
static int64_t layer_of(const char *name)
{
	const char *at = strstr(name, "layers.");
	if (!at)
		return -1;
	at += 7;
	int64_t layer = 0;
	int digits = 0;
	for (; *at >= '0' && *at <= '9' && digits < 9; at++, digits++)
		layer = layer * 10 + (*at - '0');
	return digits > 0 && *at == '.' ? layer : -1;
}

static void add_bytes(int64_t *to, int64_t bytes)
{
	*to = amount_sum(*to, bytes);
}

/* One matrix for queries, keys and values: the part of the latter two is divided
 * as they are. */
static void add_fused(struct blueprint *blueprint, int64_t bytes)
{
	int64_t kv_heads = 2 * blueprint->layers[0].kv_heads;
	int64_t kv_bytes = muldiv_up(bytes, kv_heads, blueprint->heads + kv_heads);
	add_bytes(&blueprint->kv_bytes, kv_bytes);
	add_bytes(&blueprint->divided_bytes, bytes - kv_bytes);
}

static void safetensors_insert(struct blueprint *blueprint, const struct safetensors_config *config,
                               const char *name, size_t dimensions, int64_t bytes)
{
	int64_t layer = layer_of(name);
	add_bytes(&blueprint->weight_bytes, bytes);
	if (layer >= blueprint->layer_count &&
	    layer < blueprint->layer_count + config->nextn_layers) {
		add_bytes(&blueprint->unused_bytes, bytes);
		return;
	}
	switch (treatment_of(name, dimensions)) {
	case DIVIDED:
		add_bytes(&blueprint->divided_bytes, bytes);
		break;
	case DIVIDED_BY_KV_HEADS:
		add_bytes(&blueprint->kv_bytes, bytes);
		break;
	case FUSED_QKV:
		add_fused(blueprint, bytes);
		break;
	case COPIED:
		add_bytes(&blueprint->copied_bytes, bytes);
		break;
	}
}

/* The product of a shape; -1 if it is not a list of sizes, or beyond counting. */
static int64_t values_of(const json_t *shape)
{
	int64_t values = 1;
	size_t i;
	const json_t *length;
	if (!json_is_array(shape) || json_array_size(shape) > SAFETENSORS_DIMENSIONS_MAX)
		return -1;
	json_array_foreach(shape, i, length)
	{
		if (!json_is_integer(length) || json_integer_value(length) < 0)
			return -1;
		values = amount_product(values, json_integer_value(length));
	}
	return values == INT64_MAX ? -1 : values;
}

/* The bytes between a tensor's offsets; -1 if these are not two numbers in order
 * within the data. */
static int64_t bytes_of(const json_t *offsets, int64_t data_bytes, int64_t *end)
{
	const json_t *from = json_array_get(offsets, 0);
	const json_t *to = json_array_get(offsets, 1);
	if (json_array_size(offsets) != 2 || !json_is_integer(from) || !json_is_integer(to) ||
	    json_integer_value(from) < 0 || json_integer_value(to) < json_integer_value(from))
		return -1;
	*end = json_integer_value(to);
	return *end > data_bytes ? -2 : json_integer_value(to) - json_integer_value(from);
}

static bool add_entry(struct blueprint *blueprint, const struct safetensors_config *config,
                      const char *name, const json_t *entry, int64_t data_bytes,
                      struct error *error)
{
	const json_t *shape = json_object_get(entry, "shape");
	const char *type_name = json_string_value(json_object_get(entry, "dtype"));
	int64_t end = 0;
	int64_t bytes = bytes_of(json_object_get(entry, "data_offsets"), data_bytes, &end);
	int64_t values = values_of(shape);
	if (!type_name || values < 0 || bytes == -1)
		return error_set(
		    error, ERROR_INVALID,
		    "tensor %.60s lacks a dtype, a shape or data_offsets that make sense", name);
	if (bytes == -2)
		return error_set(error, ERROR_INVALID,
		                 "it has %lld bytes of data, and tensor %.60s ends at %lld: is it "
		                 "downloaded in full?",
		                 (long long)data_bytes, name, (long long)end);
	const struct tensor_type *type = tensor_type_of_safetensors(type_name);
	if (!type)
		return error_set(error, ERROR_INVALID,
		                 "tensor %.60s is of type %.20s, whose size is not known", name,
		                 type_name);
	if (tensor_type_row_bytes(type, values) != bytes)
		return error_set(
		    error, ERROR_INVALID,
		    "tensor %.60s has %lld values of type %s, which are not %lld bytes", name,
		    (long long)values, type->name, (long long)bytes);
	add_bytes(&blueprint->parameters, values);
	safetensors_insert(blueprint, config, name, json_array_size(shape), bytes);
	return true;
}

static bool add_entries(struct blueprint *blueprint, const struct safetensors_config *config,
                        json_t *header, int64_t data_bytes, struct text_map *seen,
                        struct error *error)
{
	const char *name;
	json_t *entry;
	json_object_foreach(header, name, entry)
	{
		if (strcmp(name, "__metadata__") == 0)
			continue;
		if (text_map_get(seen, name))
			return error_set(error, ERROR_INVALID,
			                 "tensor %.60s is in another file too", name);
		text_map_put(seen, name, seen);
		if (!add_entry(blueprint, config, name, entry, data_bytes, error))
			return false;
	}
	return true;
}

json_t *safetensors_object_read(const struct reader *reader, int64_t offset, int64_t size,
                                struct error *error)
{
	if (offset < 0 || size < 1 || offset > reader->size_bytes ||
	    size > reader->size_bytes - offset) {
		error_set(error, ERROR_INVALID,
		          "it is too short for the JSON that should be there");
		return NULL;
	}
	char *text = memory_alloc((size_t)size);
	struct json_limits limits = { (size_t)size, JSON_DEPTH, (size_t)size };
	json_t *json = reader_bytes(reader, offset, text, size, error)
	                   ? json_read((struct text){ text, (size_t)size }, &limits, error)
	                   : NULL;
	free(text);
	if (json && !json_is_object(json)) {
		error_set(error, ERROR_INVALID, "its JSON is not an object");
		json_decref(json);
		json = NULL;
	}
	return json;
}

bool safetensors_add(struct blueprint *blueprint, const struct safetensors_config *config,
                     const struct reader *reader, struct text_map *seen, struct error *error)
{
	unsigned char length[8];
	uint64_t size = 0;
	if (reader->size_bytes < (int64_t)sizeof(length))
		return error_set(error, ERROR_INVALID, "it is too short to be a safetensors file");
	if (!reader_bytes(reader, 0, length, sizeof(length), error))
		return false;
	for (int i = 7; i >= 0; i--)
		size = size << 8 | length[i];
	int64_t rest = reader->size_bytes - (int64_t)sizeof(length);
	if (size > SAFETENSORS_HEADER_BYTES_MAX || (int64_t)size > rest)
		return error_set(error, ERROR_INVALID,
		                 "its header should be %llu bytes, and at most %lld are possible: "
		                 "it is not a safetensors file, or not all of one",
		                 (unsigned long long)size,
		                 (long long)min64(SAFETENSORS_HEADER_BYTES_MAX, rest));
	json_t *header = safetensors_object_read(reader, sizeof(length), (int64_t)size, error);
	if (!header)
		return false;
	bool added = add_entries(blueprint, config, header, rest - (int64_t)size, seen, error);
	json_decref(header);
	return added;
}

/* A file's name and nothing else. */
static bool safetensors_is_plain(const char *name)
{
	return *name != '\0' && *name != '.' && !strchr(name, '/');
}

static bool list_files(json_t *files, const json_t *map, struct error *error)
{
	struct text_map seen = { 0 };
	bool fine = true;
	for (void *at = json_object_iter((json_t *)map); at && fine;
	     at = json_object_iter_next((json_t *)map, at)) {
		const char *name = json_string_value(json_object_iter_value(at));
		if (!name || !safetensors_is_plain(name)) {
			fine = error_set(error, ERROR_INVALID,
			                 "tensor %.60s is not in a file of this directory",
			                 json_object_iter_key(at));
		} else if (!text_map_get(&seen, name)) {
			text_map_put(&seen, name, files);
			json_array_append_new(files, json_string(name));
		}
	}
	text_map_free(&seen);
	return fine;
}

json_t *safetensors_index_read(const struct reader *reader, struct error *error)
{
	if (reader->size_bytes > SAFETENSORS_HEADER_BYTES_MAX) {
		error_set(error, ERROR_INVALID, "it is larger than %d bytes",
		          SAFETENSORS_HEADER_BYTES_MAX);
		return NULL;
	}
	json_t *index = safetensors_object_read(reader, 0, reader->size_bytes, error);
	if (!index)
		return NULL;
	const json_t *map = json_object_get(index, "weight_map");
	json_t *files = json_array();
	bool listed = json_is_object(map) && json_object_size(map) > 0;
	if (!listed)
		error_set(error, ERROR_INVALID, "it has no weight_map, or an empty one");
	else
		listed = list_files(files, map, error);
	if (!listed) {
		json_decref(files);
		files = NULL;
	}
	json_decref(index);
	return files;
}
