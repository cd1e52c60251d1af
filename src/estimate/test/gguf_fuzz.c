/* gguf_fuzz.c - whatever the bytes, a GGUF header is refused with a reason or gives an estimate */
#include "bytes.h"
#include "estimate/estimate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void estimate_all(const struct blueprint *blueprint)
{
	static const char *const types[] = { "f16", "q8_0" };
	for (int i = 0; i < 8; i++) {
		struct estimate_request request = estimate_defaults(blueprint);
		struct estimate estimate;
		struct error error = { 0 };
		request.gpus = i + 1;
		request.plain_attention = i % 2 == 1;
		request.key_type = tensor_type_of_cache(types[i / 4]);
		if (!estimate_make(&estimate, blueprint, &request, &error)) {
			INVARIANT(error.code != ERROR_NONE);
			continue;
		}
		INVARIANT(estimate.largest_mib > 0 && estimate.total_mib >= estimate.largest_mib);
	}
}

static void gguf_check(const struct reader *reader)
{
	struct gguf gguf;
	struct blueprint blueprint = { 0 };
	struct error error = { 0 };
	bool read = gguf_read(&gguf, reader, &error);
	INVARIANT(read == (error.code == ERROR_NONE));
	if (read) {
		bool made = gguf_blueprint(&blueprint, &gguf, 1, &error);
		INVARIANT(made == (error.code == ERROR_NONE));
		if (made)
			estimate_all(&blueprint);
	}
	blueprint_free(&blueprint);
	gguf_free(&gguf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* As all of a file, and as the beginning of one with room for any tensor. */
	struct memory_bytes memory = { data, size };
	struct reader whole = reader_of_memory(&memory);
	gguf_check(&whole);
	struct buffer bytes = { 0 };
	struct header_only file;
	buffer_bytes(&bytes, data, size);
	struct reader large = reader_of_header(&file, &bytes, INT64_C(1) << 42);
	gguf_check(&large);
	buffer_free(&bytes);
	return 0;
}
