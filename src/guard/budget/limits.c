/* limits.c - limits of GPU memory as text */
#include "guard/budget/limits.h"

#include <string.h>

#include "guard/budget/size.h"
#include "guard/budget/uuid.h"

enum { WORD_MAX = 48 };

/* Copies what is before `end` as text; false if it is too long. */
static bool copy_word(const char *from, const char *end, char word[WORD_MAX])
{
	size_t length = (size_t)(end - from);
	if (length >= WORD_MAX)
		return false;
	for (size_t i = 0; i < length; i++)
		word[i] = from[i];
	word[length] = '\0';
	return true;
}

static void read_entry(const char *from, const char *end, struct segment *segment)
{
	char name[WORD_MAX];
	char size[WORD_MAX];
	uint8_t uuid[16];
	int64_t bytes;
	const char *equals = memchr(from, '=', (size_t)(end - from));
	if (equals == NULL || !copy_word(from, equals, name) || !copy_word(equals + 1, end, size) ||
	    !size_parse(size, &bytes))
		return;
	uint32_t count = segment_gpu_count(segment);
	if (strcmp(name, "others") == 0)
		segment_set(&segment->others_limit_bytes, bytes);
	else if (uuid_parse(name, uuid) && count < SEGMENT_GPUS_MAX) {
		memcpy(segment->gpus[count].uuid, uuid, sizeof uuid);
		segment_set(&segment->gpus[count].limit_bytes, bytes);
		atomic_store_explicit(&segment->gpu_count, count + 1, memory_order_release);
	}
}

void limits_read(const char *text, struct segment *segment)
{
	while (*text != '\0') {
		const char *end = strchr(text, ',');
		if (end == NULL)
			end = text + strlen(text);
		read_entry(text, end, segment);
		text = *end == ',' ? end + 1 : end;
	}
}
