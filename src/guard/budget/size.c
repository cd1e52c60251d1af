/* size.c - sizes of memory as people write them */
#include "guard/budget/size.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool size_parse(const char *text, int64_t *bytes)
{
	int64_t number = 0;
	const char *at = text;
	for (; *at >= '0' && *at <= '9'; at++) {
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, *at - '0', &number))
			return false;
	}
	const char *unit = *at != '\0' ? strchr("KMGT", *at) : NULL;
	if (at == text || (*at != '\0' && (unit == NULL || at[1] != '\0')))
		return false;
	int64_t factor = 1;
	if (unit != NULL) {
		factor = 1024;
		for (const char *letter = "KMGT"; *letter != *unit; letter++)
			factor *= 1024;
	}
	return !__builtin_mul_overflow(number, factor, bytes);
}

void size_format(int64_t bytes, char text[32])
{
	if (bytes == INT64_MAX)
		snprintf(text, 32, "no limit");
	else
		snprintf(text, 32, "%" PRId64 " MiB", bytes >> 20);
}
