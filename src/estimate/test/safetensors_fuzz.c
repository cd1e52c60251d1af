/* safetensors_fuzz.c - whatever the bytes, a header or an index is read or refused with a reason */
#include "bytes.h"
#include "estimate/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_header(const struct reader *reader)
{
	struct blueprint_layer layers[2] = { { .kv_heads = 2 }, { .kv_heads = 2 } };
	struct blueprint blueprint = { .layers = layers, .layer_count = 2, .heads = 8 };
	const struct safetensors_config config = { .nextn_layers = 1 };
	struct text_map seen = { 0 };
	struct error error = { 0 };
	bool read = safetensors_add(&blueprint, &config, reader, &seen, &error);
	INVARIANT(read == (error.code == ERROR_NONE));
	int64_t sum = blueprint.divided_bytes + blueprint.kv_bytes + blueprint.copied_bytes +
	              blueprint.unused_bytes;
	/* Sums stay exact as long as nothing is beyond counting. */
	INVARIANT(blueprint.weight_bytes > (INT64_C(1) << 60) || sum == blueprint.weight_bytes);
	text_map_free(&seen);
}

static void check_index(const struct reader *reader)
{
	struct error error = { 0 };
	json_t *files = safetensors_index_read(reader, &error);
	INVARIANT((files != NULL) == (error.code == ERROR_NONE));
	json_decref(files);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memory_bytes memory = { data, size };
	struct reader whole = reader_of_memory(&memory);
	check_header(&whole);
	check_index(&whole);
	/* As a header's text, with room for any tensor behind it. */
	struct buffer bytes = { 0 };
	struct header_only file;
	put_number(&bytes, size, 8);
	buffer_bytes(&bytes, data, size);
	struct reader large = reader_of_header(&file, &bytes, INT64_C(1) << 42);
	check_header(&large);
	buffer_free(&bytes);
	return 0;
}
