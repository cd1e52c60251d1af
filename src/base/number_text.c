/* number_text.c - numbers from text, by one grammar: decimal digits and nothing around them */
#include "base/number_text.h"

#include "base/error.h"
#include "base/number.h"

enum { PLACES_MAX = 9, DIGITS_MAX = 18, DIGITS_READ_MAX = 19, PORT_MAX = 65535 };

static bool starts_with_digit(struct text text)
{
	return text.size > 0 && *text.data >= '0' && *text.data <= '9';
}

/* Appends a digit unless the number becomes larger than `most`. */
static bool append_digit(int64_t *number, char digit, int64_t most)
{
	int64_t value = digit - '0';

	if (*number > most / 10 || *number * 10 > most - value)
		return false;
	*number = *number * 10 + value;
	return true;
}

bool number_take(struct text *text, int64_t most, int64_t *number)
{
	struct text rest = *text;
	int64_t value = 0;

	INVARIANT(most >= 0);
	if (!starts_with_digit(rest))
		return false;
	for (; starts_with_digit(rest); rest = text_from(rest, 1))
		if (!append_digit(&value, *rest.data, most))
			return false;
	*text = rest;
	*number = value;
	return true;
}

bool number_take_decimal(struct text *text, int places, int64_t most, int64_t *number)
{
	struct text rest = *text;
	int64_t value = 0;
	int left = places;

	INVARIANT(most >= 0 && places >= 0 && places <= PLACES_MAX);
	bool has_whole = number_take(&rest, most, &value);
	if (!has_whole && starts_with_digit(rest))
		return false;
	if (places > 0 && text_starts(rest, ".")) {
		rest = text_from(rest, 1);
		if (!starts_with_digit(rest))
			return false;
		for (; left > 0 && starts_with_digit(rest); left--, rest = text_from(rest, 1))
			if (!append_digit(&value, *rest.data, most))
				return false;
	} else if (!has_whole) {
		return false;
	}
	for (; left > 0; left--)
		if (!append_digit(&value, '0', most))
			return false;
	*text = rest;
	*number = value;
	return true;
}

bool number_take_digits(struct text *text, int count, int64_t *number)
{
	struct text rest = *text;
	int64_t value = 0;

	INVARIANT(count > 0 && count <= DIGITS_MAX);
	for (int i = 0; i < count; i++, rest = text_from(rest, 1)) {
		if (!starts_with_digit(rest))
			return false;
		value = value * 10 + (*rest.data - '0');
	}
	*text = rest;
	*number = value;
	return true;
}

bool number_read_decimal(struct text text, int places, int64_t least, int64_t most, int64_t *number)
{
	bool is_negative = text_starts(text, "-");
	struct text rest = is_negative ? text_from(text, 1) : text;
	int64_t value;

	if (!number_take_decimal(&rest, places, INT64_MAX, &value) || rest.size > 0)
		return false;
	value = is_negative ? -value : value;
	if (value < least || value > most)
		return false;
	*number = value;
	return true;
}

bool number_read(struct text text, int64_t least, int64_t most, int64_t *number)
{
	bool is_negative = text_starts(text, "-");
	size_t i = is_negative;
	uint64_t value = 0, largest = (uint64_t)INT64_MAX + is_negative;

	/* 19 digits fit into the unsigned number, and are enough for all others. */
	if (i == text.size || text.size - i > DIGITS_READ_MAX)
		return false;
	for (; i < text.size; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return false;
		value = value * 10 + (uint64_t)(text.data[i] - '0');
	}
	if (value > largest)
		return false;
	int64_t result = is_negative ? (int64_t)-value : (int64_t)value;
	if (result < least || result > most)
		return false;
	*number = result;
	return true;
}

bool number_read_port(struct text text, int64_t *port)
{
	return text.size <= 5 && number_read(text, 1, PORT_MAX, port);
}
