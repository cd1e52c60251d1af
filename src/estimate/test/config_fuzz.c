/* config_fuzz.c - whatever the bytes, a config.json is refused with a reason or gives an estimate
 */
#include "estimate/estimate.h"
#include "estimate/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memory_bytes memory = { data, size };
	struct reader reader = reader_of_memory(&memory);
	struct blueprint blueprint;
	struct safetensors_config config;
	struct error error = { 0 };
	bool read = safetensors_config_read(&blueprint, &config, &reader, &error);
	INVARIANT(read == (error.code == ERROR_NONE));
	for (int gpus = 1; read && gpus <= 8; gpus *= 2) {
		struct estimate_request request = estimate_defaults(&blueprint);
		struct estimate estimate;
		struct error reason = { 0 };
		request.gpus = gpus;
		bool made = estimate_make(&estimate, &blueprint, &request, &reason);
		INVARIANT(made == (reason.code == ERROR_NONE));
		INVARIANT(!made || estimate.largest_mib > 0);
	}
	blueprint_free(&blueprint);
	return 0;
}
