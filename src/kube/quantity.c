/* quantity.c - amounts as Kubernetes writes them: 100m, 1.5, 20Gi, 1e3 */
#include "kube/quantity.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#define MOST (INT64_C(1) << 53)
#define DIGITS_MAX 30

static const struct suffix {
	const char *text;
	int decimal, binary; /* powers of 10 and of 2 */
} suffixes[] = {
	{ "", 0, 0 },    { "n", -9, 0 },  { "u", -6, 0 },  { "m", -3, 0 },
	{ "k", 3, 0 },   { "M", 6, 0 },   { "G", 9, 0 },   { "T", 12, 0 },
	{ "P", 15, 0 },  { "E", 18, 0 },  { "Ki", 0, 10 }, { "Mi", 0, 20 },
	{ "Gi", 0, 30 }, { "Ti", 0, 40 }, { "Pi", 0, 50 }, { "Ei", 0, 60 },
};

/* Reads digits with a point into a number and the power of 10 that it is to be multiplied by. */
static bool read_digits(const char **text, uint128 *number, int *power)
{
	bool point = false;
	int digits = 0;

	for (; (**text >= '0' && **text <= '9') || (**text == '.' && !point); (*text)++) {
		if (**text == '.') {
			point = true;
			continue;
		}
		if (++digits > DIGITS_MAX)
			return false;
		*number = *number * 10 + (uint128)(unsigned char)(**text - '0');
		*power -= point;
	}
	return digits > 0;
}

/* An exponent (e3, E-2) or a suffix. */
static bool read_scale(const char *text, int *power, int *binary)
{
	if ((*text == 'e' || *text == 'E') && text[1] != '\0' && text[1] != 'i') {
		const char *digits = text + 1 + (text[1] == '-' || text[1] == '+');
		size_t count = strspn(digits, "0123456789");
		if (count == 0 || count > 2 || digits[count])
			return false;
		int exponent = atoi(digits);
		*power += text[1] == '-' ? -exponent : exponent;
		return true;
	}
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (strcmp(text, suffixes[i].text) == 0) {
			*power += suffixes[i].decimal;
			*binary = suffixes[i].binary;
			return true;
		}
	return false;
}

static bool quantity_read(const char *text, int power, int64_t *amount)
{
	uint128 number = 0, most = (uint128)MOST;
	int binary = 0;
	bool rest = false;

	text += *text == '+';
	if (!read_digits(&text, &number, &power) || !read_scale(text, &power, &binary))
		return false;
	for (; binary > 0 && number <= most << 40; binary--)
		number *= 2;
	if (binary > 0) { /* beyond 2^93: no fraction brings that below the most */
		*amount = MOST;
		return true;
	}
	for (; power > 0 && number <= most; power--)
		number *= 10;
	for (; power < 0 && number > 0; power++) {
		rest |= number % 10 != 0;
		number /= 10;
	}
	number += rest;
	*amount = number > most ? MOST : (int64_t)number;
	return true;
}

bool quantity_milli(const char *text, int64_t *amount)
{
	return quantity_read(text, 3, amount);
}

bool quantity_units(const char *text, int64_t *amount)
{
	return quantity_read(text, 0, amount);
}
