/* json_scan_fuzz.c - what is scanned is JSON exactly where json_read says that it is */
#include <stdint.h>

#include "wire/text/json_scan.h"
#include "json/json_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* json_read wants numbers that fit 64 bits; to skip one, that does not matter. */
static bool is_about_numbers(const struct error *error)
{
	return strstr(error->text, "too big") || strstr(error->text, "real number overflow");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct text text = { (const char *)data, size };
	struct arena arena = { 0 };
	struct error error = { 0 }, other = { 0 };
	struct json_limits limits = { .bytes = 1 << 20,
		                      .depth = JSON_SCAN_DEPTH_MAX,
		                      .values = 1 << 20 };

	struct json_scan scan = json_scan_of(text, &arena, &error);
	enum json_kind kind = json_scan_kind(&scan);
	if (kind == JSON_KIND_OBJECT || kind == JSON_KIND_ARRAY) {
		bool ours = json_scan_skip(&scan, NULL) && json_scan_end(&scan);
		json_t *json = json_read(text, &limits, &other);
		INVARIANT(ours == (error.code == ERROR_NONE));
		INVARIANT(ours == (json != NULL) || (ours && is_about_numbers(&other)));
		json_decref(json);
	}
	arena_free(&arena);
	return 0;
}
