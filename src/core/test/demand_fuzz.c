/* demand_fuzz.c - resources, rules and marks of any text are refused with a reason or understood */
#include <stdlib.h>
#include <string.h>

#include "core/queue/demand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *parts[3];
	struct error error = { 0 };

	memcpy(text, data, size);
	text[size] = '\0';
	parts[0] = text;
	for (int i = 1; i < 3; i++) {
		char *end = strchr(parts[i - 1], '#');
		if (end)
			*end++ = '\0';
		parts[i] = end ? end : text + size;
	}
	if (demand_check(parts[0], parts[1], parts[2], "", &error)) {
		struct demand *demand = demand_new(parts[0], parts[1], parts[2], "");
		for (int i = 0; demand && i < demand->rule_count; i++)
			selector_takes(&demand->rules[i].selector, demand->marks);
		demand_free(demand);
	} else if (!error.text[0]) {
		abort();
	}
	free(text);
	return 0;
}
