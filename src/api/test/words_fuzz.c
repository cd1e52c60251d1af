/* words_fuzz.c - ids, times, durations and ranges are read within their bounds, or refused */
#include <stdint.h>

#include "api/text/array_range.h"
#include "api/text/ids.h"
#include "api/text/times.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct text text = { (const char *)data, size };
	struct error error = { 0 };
	struct array_range range;
	char written[ID_TEXT_MAX];
	int64_t number, again;

	if (id_read(text, ID_JOB, &number)) {
		size_t length = id_write(written, ID_JOB, number);
		INVARIANT(number > 0);
		INVARIANT(id_read((struct text){ written, length }, ID_JOB, &again));
		INVARIANT(again == number);
	}
	if (calendar_read(text, &number))
		INVARIANT(number >= 0 && number < INT64_C(253402300800000) + 86400000);
	if (calendar_read_day(text, &number))
		INVARIANT(number >= 0);
	if (duration_read(text, DURATION_MAX_MS, &number))
		INVARIANT(number >= 0 && number <= INT64_C(10000) * 86400000);
	struct arena arena = { 0 };
	if (array_range_read(text, &arena, &range, &error)) {
		INVARIANT(range.from >= 0 && range.to >= range.from && range.count > 0 &&
		          range.count <= ARRAY_JOBS_MAX && range.limit >= 0);
		for (int64_t i = 1; range.indices && i < range.count; i++)
			INVARIANT(range.indices[i - 1] < range.indices[i]);
		INVARIANT(range.indices || range.to - range.from + 1 == range.count);
	} else {
		INVARIANT(error.text[0]);
	}
	arena_free(&arena);
	return 0;
}
