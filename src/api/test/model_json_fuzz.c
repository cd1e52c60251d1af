/* model_json_fuzz.c - a model is refused with a sentence, or can be written */
#include <stdint.h>

#include "api/model/model_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	struct roster roster = { 0 };
	struct identity identity = { 0 };
	struct error error = { 0 };
	struct model_record model = model_json_default();
	struct model_reading reading = { .arena = &arena,
		                         .roster = &roster,
		                         .identity = &identity };
	roster_put(&roster, &(struct tenant_record){ .id = 1, .name = "lab" });
	bool read =
	    model_json_read((struct text){ (const char *)data, size }, &reading, &model, &error);
	INVARIANT(read == (error.code == ERROR_NONE));
	if (read) {
		struct buffer text = { 0 };
		struct json_writer json = json_writer_to(&text);
		INVARIANT(*model.name && model.tenant_id == 1 && model.memory_mib > 0);
		model_json_write(&json, &model, &(struct model_load){ 0 }, NULL, size % 2 == 0,
		                 &arena);
		json_t *again = json_read((struct text){ text.data, text.size }, NULL, &error);
		INVARIANT(again);
		json_decref(again);
		buffer_free(&text);
	}
	roster_free(&roster);
	arena_free(&arena);
	return 0;
}
