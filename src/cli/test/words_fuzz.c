/* words_fuzz.c - what people type and what others called things: taken or refused, never more */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/client/address.h"
#include "cli/text/quantity.h"
#include "cli/text/text_width.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_width(const char *text)
{
	struct buffer clean = { 0 };
	text_clean(&clean, text);
	for (size_t i = 0; i < clean.size; i++)
		INVARIANT((unsigned char)clean.data[i] >= 0x20 && clean.data[i] != 0x7f);
	int width = text_width(clean.data);
	for (int columns = 0; columns <= width; columns++) {
		char *front = memory_text(clean.data);
		front[text_fits(clean.data, columns)] = '\0';
		INVARIANT(text_width(front) <= columns);
		free(front);
		if (columns > 40)
			columns += width / 8;
	}
	buffer_free(&clean);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = memory_alloc(size + 1);
	struct address address;
	struct error error = { 0 };
	int64_t number = 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (quantity_memory("--m", text, &number, &error))
		INVARIANT(number > 0);
	if (quantity_duration("--d", text, &number, &error))
		INVARIANT(number > 0);
	if (quantity_integer("--i", text, -5, 5, &number, &error))
		INVARIANT(number >= -5 && number <= 5);
	if (quantity_thousandths("--t", text, 1000, &number, &error))
		INVARIANT(number >= 0 && number <= 1000);
	quantity_moment(text);
	quantity_local_moment(text);
	if (address_read(text, &address, &error))
		INVARIANT(*address.host && *address.port);
	check_width(text);
	free(text);
	return 0;
}
