/* record_fuzz.c - whatever the bytes, a record is refused or is written back as it was read */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/record/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The record that was read from `start` to `at` must be those bytes and nothing else. */
static void record_verify(struct arena *arena, enum record_kind kind, const void *record,
                          const uint8_t *start, const uint8_t *at)
{
	struct buffer buffer = { 0 };
	record_encode(&buffer, kind, record);
	INVARIANT(buffer.size == (size_t)(at - start));
	INVARIANT(memcmp(buffer.data, start, buffer.size) == 0);
	INVARIANT(record_equal(kind, record, record_copy(arena, kind, record)));
	buffer_clear(&buffer);
	record_print(&buffer, kind, record);
	INVARIANT(!memchr(buffer.data, '\n', buffer.size));
	buffer_free(&buffer);
}

/* The first byte chooses the kind. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	enum record_kind kind = data[0] % RECORD_KINDS;
	const uint8_t *start = data + 1, *at = start;
	struct arena arena = { 0 };
	struct error error = { 0 };
	const void *record = record_decode(&arena, kind, &at, data + size, &error);
	INVARIANT(!record == (error.code != ERROR_NONE));
	INVARIANT(record || at == start);
	if (record)
		record_verify(&arena, kind, record, start, at);
	arena_free(&arena);
	return 0;
}
