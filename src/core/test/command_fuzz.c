/* command_fuzz.c - whatever the bytes, a command is refused or is written back as it was read */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/record/command.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The command that was read from `start` to `at` must be those bytes and nothing else. */
static void command_check(const struct command *command, const uint8_t *start, const uint8_t *at)
{
	struct buffer buffer = { 0 };
	command_encode(&buffer, command);
	INVARIANT(buffer.size == (size_t)(at - start));
	INVARIANT(memcmp(buffer.data, start, buffer.size) == 0);
	buffer_clear(&buffer);
	command_print(&buffer, command);
	INVARIANT(!memchr(buffer.data, '\n', buffer.size));
	buffer_free(&buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *at = data;
	struct arena arena = { 0 };
	struct error error = { 0 };
	const struct command *command = command_decode(&arena, &at, data + size, &error);
	INVARIANT(!command == (error.code != ERROR_NONE));
	INVARIANT(command || at == data);
	if (command)
		command_check(command, data, at);
	arena_free(&arena);
	return 0;
}
