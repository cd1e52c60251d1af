/* journal_fuzz.c - whatever a journal's file holds, reading it ends and harms nothing */
#include <stdlib.h>
#include <string.h>

#include "store/journal.h"

static bool journal_hear(void *context, int64_t number, const struct command *command,
                         struct error *error)
{
	struct buffer *text = context;
	(void)number;
	(void)error;
	buffer_clear(text);
	command_print(text, command);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buffer text = { 0 };
	struct error error;
	int64_t next = 1, missing = 0;
	journal_read_bytes(data, size, &next, journal_hear, &text, &missing, &error);
	buffer_free(&text);
	return 0;
}
