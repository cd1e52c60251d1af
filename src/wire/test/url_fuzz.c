/* url_fuzz.c - whatever the target, it is refused or its parts are clean */
#include <stdint.h>

#include "base/memory.h"
#include "wire/text/query.h"
#include "wire/text/url.h"
#include "wire/text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_clean(struct text text)
{
	INVARIANT(utf8_is_valid(text));
	INVARIANT(text.data[text.size] == '\0');
	for (size_t i = 0; i < text.size; i++)
		INVARIANT((unsigned char)text.data[i] >= ' ' && text.data[i] != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct text target = { (const char *)data, size };
	struct url url;
	struct error error = { 0 };
	struct buffer storage = { 0 };
	struct url_segments segments;
	struct query query;
	struct query_parameter list[QUERY_PARAMETERS_MAX];
	bool is_fine = url_parse(target, &url, &error);
	INVARIANT(is_fine == (error.code == ERROR_NONE));
	if (is_fine && url_segments(url.path, &storage, &segments, &error))
		for (size_t i = 0; i < segments.count; i++)
			check_clean(segments.of[i]);
	if (is_fine && query_parse(url.query, &storage, list, &query, &error)) {
		for (size_t i = 0; i < query.count; i++) {
			int64_t number;
			bool flag;
			check_clean(query.of[i].name);
			check_clean(query.of[i].value);
			query_integer(&query, query.of[i].name.data, -5, 5, 0, &number, &error);
			INVARIANT(number >= -5 && number <= 5);
			query_flag(&query, query.of[i].name.data, false, &flag, &error);
		}
	}
	buffer_free(&storage);
	return 0;
}
