/* config_fuzz.c - whatever the file, it is refused with its place or can be written again */
#include <stdint.h>
#include <string.h>

#include "cli/config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config config = { 0 }, again = { 0 };
	struct error error = { 0 };
	struct buffer text = { 0 };
	bool taken = config_parse(&config, "f", (const char *)data, size, &error);
	INVARIANT(taken == (error.code == ERROR_NONE));
	INVARIANT(taken || strncmp(error.text, "f:", 2) == 0);
	if (taken) {
		config_print(&config, &text);
		INVARIANT(config_parse(&again, "f", text.data, text.size, &error));
		INVARIANT(again.count == config.count);
	}
	buffer_free(&text);
	config_free(&config);
	config_free(&again);
	return 0;
}
