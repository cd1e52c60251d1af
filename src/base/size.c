/* size.c - amounts of memory in MiB, as people write and read them */
#include "base/size.h"

#include <inttypes.h>

#include "base/number.h"
#include "base/number_text.h"

enum { PLACES = 3, THOUSAND = 1000, KIB_PER_MIB = 1024 };

/* The unit is all of `text`: a letter, then B, i or iB at will. */
static bool size_unit(struct text text, int64_t *kib)
{
	static const struct {
		const char *letter;
		int64_t kib;
	} units[] = { { "k", 1 }, { "m", 1 << 10 }, { "g", 1 << 20 }, { "t", 1 << 30 } };
	struct text letter = { text.data, 1 };
	struct text rest = text_from(text, 1);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (!text_is_any_case(letter, units[i].letter))
			continue;
		*kib = units[i].kib;
		return rest.size == 0 || text_is_any_case(rest, "b") ||
		       text_is_any_case(rest, "i") || text_is_any_case(rest, "ib");
	}
	return false;
}

bool size_read(struct text text, int64_t *mib)
{
	int64_t thousandths, kib = KIB_PER_MIB;

	if (!number_take_decimal(&text, PLACES, SIZE_MAX_MIB * THOUSAND, &thousandths))
		return false;
	/* 0.5 without a unit is more likely to be a part of something than half a MiB. */
	if (text.size == 0 ? thousandths % THOUSAND != 0 : !size_unit(text, &kib))
		return false;
	int64_t size = muldiv_up(thousandths, kib, THOUSAND * KIB_PER_MIB);
	if (size == 0 || size > SIZE_MAX_MIB)
		return false;
	*mib = size;
	return true;
}

/* With one digit after the point if it is short and not a whole number. */
static void print_in_units(struct buffer *to, int64_t mib, int64_t unit, char letter)
{
	int64_t tenths = muldiv_down(mib, 10, unit);

	if (tenths < 1000 && tenths % 10 != 0)
		buffer_print(to, "%" PRId64 ".%" PRId64 "%c", tenths / 10, tenths % 10, letter);
	else
		buffer_print(to, "%" PRId64 "%c", tenths / 10, letter);
}

void size_print(struct buffer *to, int64_t mib)
{
	if (mib == 0)
		buffer_text(to, "0");
	else if (mib < 1 << 10)
		buffer_print(to, "%" PRId64 "M", mib);
	else if (mib < 1 << 20)
		print_in_units(to, mib, 1 << 10, 'G');
	else
		print_in_units(to, mib, 1 << 20, 'T');
}
