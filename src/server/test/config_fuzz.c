/* config_fuzz.c - whatever the file, it is refused with a place and a reason or can be used */
#include <stdint.h>
#include <string.h>

#include "server/settings/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config *config = config_new();
	struct error error = { 0 };
	bool taken = config_read_yaml(config, "f", (const char *)data, size, &error);
	INVARIANT(taken == (error.code == ERROR_NONE));
	INVARIANT(taken || strncmp(error.text, "f:", 2) == 0);
	if (taken && config_validate(config, &error)) {
		struct config_record record = config_default();
		struct error ignored;
		config_to_record(config, &record);
		INVARIANT(config_check(&record, &ignored));
		INVARIANT(strlen(config_database(config)) > 0);
	}
	config_free(config);
	return 0;
}
