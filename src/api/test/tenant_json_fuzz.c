/* tenant_json_fuzz.c - a tenant is refused with a sentence, or can be written and read again */
#include <stdint.h>

#include "api/tenant/tenant_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	struct roster roster = { 0 };
	struct error error = { 0 };
	struct tenant_record tenant = tenant_json_default();
	roster_put(&roster, &(struct tenant_record){ .id = 1, .name = "lab" });
	bool read = tenant_json_read((struct text){ (const char *)data, size }, &roster, &arena,
	                             &tenant, &error);
	INVARIANT(read == (error.code == ERROR_NONE));
	if (read) {
		struct buffer text = { 0 };
		struct json_writer json = json_writer_to(&text);
		struct tenant_record again = tenant_json_default();
		INVARIANT(*tenant.name && tenant.limit_gpu >= 0 && tenant.quota_gpu >= QUOTA_UNSET);
		tenant_json_write(&json, NULL, &tenant, &(struct tenant_figures){ 0 }, 0);
		if (!tenant_json_read((struct text){ text.data, text.size }, &roster, &arena,
		                      &again, &error))
			panic("%.*s: %s", (int)text.size, text.data, error.text);
		INVARIANT(again.limit_gpu == tenant.limit_gpu &&
		          again.quota_host == tenant.quota_host);
		buffer_free(&text);
	}
	roster_free(&roster);
	arena_free(&arena);
	return 0;
}
