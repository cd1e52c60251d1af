/* yaml_read_fuzz.c - whatever the file, it is refused with its place or becomes values */
#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "cli/text/yaml_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error error = { 0 };
	json_t *documents = yaml_read("f", (const char *)data, size, &error);

	INVARIANT((documents != NULL) == (error.code == ERROR_NONE));
	INVARIANT(documents || strncmp(error.text, "f:", 2) == 0);
	INVARIANT(!documents || json_is_array(documents));
	json_decref(documents);
	return 0;
}
