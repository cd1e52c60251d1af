/* array_range.c - which jobs an array has: "1-100%8" */
#include "api/text/array_range.h"

enum { INDEX_MAX = 1000000000, COUNT_MAX = 10000 };

static bool array_range_number(struct text *text, int64_t *value)
{
	size_t count = 0;
	*value = 0;
	while (text->size > 0 && *text->data >= '0' && *text->data <= '9') {
		*value = *value * 10 + (*text->data - '0');
		if (*value > INDEX_MAX)
			return false;
		*text = text_from(*text, 1);
		count++;
	}
	return count > 0;
}

static bool byte(struct text *text, char wanted)
{
	if (text->size == 0 || *text->data != wanted)
		return false;
	*text = text_from(*text, 1);
	return true;
}

bool array_range_read(struct text text, struct array_range *range, struct error *error)
{
	struct text rest = text;
	*range = (struct array_range){ 0 };
	bool read = array_range_number(&rest, &range->from) && byte(&rest, '-') &&
	            array_range_number(&rest, &range->to);
	bool limited = read && byte(&rest, '%');
	if (limited)
		read = array_range_number(&rest, &range->limit) && range->limit > 0;
	if (!read || rest.size > 0)
		return error_set(
		    error, ERROR_INVALID,
		    "array must be a range such as \"1-100\", or \"1-100%%8\" for 8 at "
		    "a time");
	if (range->to < range->from || range->to == 0 || range->to - range->from >= COUNT_MAX)
		return error_set(error, ERROR_INVALID,
		                 "array must rise, end above 0 and have at most %d jobs",
		                 COUNT_MAX);
	return true;
}
