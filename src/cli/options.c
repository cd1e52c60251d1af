/* options.c - numbers in options of gpu-cli, as people write them */
#include "cli/options.h"

#include "base/number_text.h"

/* Takes a number from 1 to `most` off the front, with k or m for powers of 1024. */
static bool options_take_number(struct text *text, int64_t most, int64_t *number)
{
	struct text rest = *text;
	int64_t unit = 1, value;

	if (!number_take(&rest, most, &value))
		return false;
	if (text_starts(rest, "k") || text_starts(rest, "K"))
		unit = 1 << 10;
	else if (text_starts(rest, "m") || text_starts(rest, "M"))
		unit = 1 << 20;
	if (value < 1 || value > most / unit)
		return false;
	*number = value * unit;
	*text = text_from(rest, unit > 1);
	return true;
}

bool options_number(const char *name, const char *text, int64_t most, int64_t *number,
                    struct error *error)
{
	struct text rest = text_of(text);

	if (options_take_number(&rest, most, number) && rest.size == 0)
		return true;
	return error_set(error, ERROR_INVALID,
	                 "invalid %s '%.40s': expected a number from 1 to %lld, such as 4096 or 8k",
	                 name, text, (long long)most);
}

int options_numbers(const char *name, const char *text, int64_t most, int64_t *numbers,
                    int numbers_max, struct error *error)
{
	struct text rest = text_of(text);
	int count = 0;

	while (count < numbers_max && options_take_number(&rest, most, &numbers[count])) {
		count++;
		if (rest.size == 0)
			return count;
		if (!text_starts(rest, ","))
			break;
		rest = text_from(rest, 1);
	}
	error_set(
	    error, ERROR_INVALID,
	    "invalid %s '%.40s': expected up to %d numbers from 1 to %lld with commas between "
	    "them, such as 1,2,4",
	    name, text, numbers_max, (long long)most);
	return -1;
}
