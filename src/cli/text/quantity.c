/* quantity.c - sizes, durations and moments as people write and read them */
#include "cli/text/quantity.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/number.h"

enum { SECOND_MS = 1000, MINUTE_MS = 60 * SECOND_MS, HOUR_MS = 60 * MINUTE_MS };
#define DAY_MS (INT64_C(24) * HOUR_MS)
#define MEMORY_MAX_MIB (INT64_C(1) << 40)
#define DURATION_MAX_MS (36500 * DAY_MS)

/* Takes digits, and a point with more of them, off the front, in thousandths; digits behind
 * the third are an error. */
static bool take_decimal(const char **text, int64_t most, int64_t *thousandths)
{
	const char *at = *text;
	int64_t value = 0, unit = 1000;
	if (!isdigit((unsigned char)*at) && !(*at == '.' && isdigit((unsigned char)at[1])))
		return false;
	for (; isdigit((unsigned char)*at); at++) {
		if (value > (most - 9) / 10)
			return false;
		value = value * 10 + (*at - '0');
	}
	value *= 1000;
	if (*at == '.') {
		at++;
		if (!isdigit((unsigned char)*at))
			return false;
		for (; isdigit((unsigned char)*at); at++) {
			unit /= 10;
			if (unit == 0)
				return false;
			value += unit * (*at - '0');
		}
	}
	*text = at;
	*thousandths = value;
	return true;
}

/* MiB in thousandths of one of the unit; 0: it is no unit. */
static bool memory_unit(const char *text, int64_t *kib)
{
	static const struct {
		char letter;
		int64_t kib;
	} units[] = { { 'k', 1 }, { 'm', 1 << 10 }, { 'g', 1 << 20 }, { 't', 1 << 30 } };
	if (!*text) {
		*kib = 1 << 10; /* of a whole number alone: 0.5 is a part of something */
		return true;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (tolower((unsigned char)*text) != units[i].letter)
			continue;
		*kib = units[i].kib;
		return !text[1] || strcasecmp(text + 1, "b") == 0 ||
		       strcasecmp(text + 1, "i") == 0 || strcasecmp(text + 1, "ib") == 0;
	}
	return false;
}

bool quantity_memory(const char *name, const char *text, int64_t *mib, struct error *error)
{
	const char *at = text;
	int64_t thousandths, kib;
	if (take_decimal(&at, MEMORY_MAX_MIB, &thousandths) && memory_unit(at, &kib) &&
	    (*at || thousandths % 1000 == 0)) {
		int64_t size = muldiv_up(thousandths, kib, 1000 * 1024);
		if (size > 0 && size <= MEMORY_MAX_MIB) {
			*mib = size;
			return true;
		}
	}
	return error_set(error, ERROR_INVALID,
	                 "%s is '%.40s', and should be a size such as 20G, 512M or 1.5T", name,
	                 text);
}

/* Takes a number and its unit off the front. */
static bool take_part(const char **text, int64_t *ms)
{
	static const struct {
		const char *unit;
		int64_t ms;
	} units[] = { { "ms", 1 },      { "s", SECOND_MS }, { "m", MINUTE_MS },
		      { "h", HOUR_MS }, { "d", DAY_MS },    { "w", 7 * DAY_MS } };
	const char *at = *text;
	int64_t thousandths;
	if (!take_decimal(&at, DURATION_MAX_MS, &thousandths))
		return false;
	size_t letters = 0;
	while (isalpha((unsigned char)at[letters]))
		letters++;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strlen(units[i].unit) != letters || strncmp(units[i].unit, at, letters) != 0)
			continue;
		*text = at + letters;
		*ms = muldiv_up(thousandths, units[i].ms, 1000);
		return true;
	}
	return false;
}

/* The forms of Slurm in which no number can be taken for another: H:MM:SS and D-HH:MM:SS. */
static bool read_clock(const char *text, int64_t *ms)
{
	unsigned days = 0, hours, minutes, seconds;
	int used = 0;
	if (sscanf(text, "%5u-%2u:%2u:%2u%n", &days, &hours, &minutes, &seconds, &used) != 4) {
		days = 0;
		if (sscanf(text, "%5u:%2u:%2u%n", &hours, &minutes, &seconds, &used) != 3)
			return false;
	}
	if (text[used] != '\0' || strspn(text, "0123456789:-") != strlen(text) || minutes > 59 ||
	    seconds > 59 || (days > 0 && hours > 23))
		return false;
	*ms = days * DAY_MS + hours * (int64_t)HOUR_MS + minutes * (int64_t)MINUTE_MS +
	      seconds * (int64_t)SECOND_MS;
	return true;
}

bool quantity_duration(const char *name, const char *text, int64_t *ms, struct error *error)
{
	const char *at = text;
	int64_t total = 0, part;
	if (*text && strspn(text, "0123456789") == strlen(text)) {
		if (take_decimal(&at, DURATION_MAX_MS / SECOND_MS, &part))
			total = part;
	} else if (read_clock(text, &total)) {
		at += strlen(at);
	} else {
		while (*at && total <= DURATION_MAX_MS && take_part(&at, &part))
			total += min64(part, DURATION_MAX_MS + 1);
	}
	if (*at == '\0' && total > 0 && total <= DURATION_MAX_MS) {
		*ms = total;
		return true;
	}
	return error_set(error, ERROR_INVALID,
	                 "%s is '%.40s', and should be a duration such as 90m, 2h30m or 1d", name,
	                 text);
}

bool quantity_thousandths(const char *name, const char *text, int64_t most, int64_t *thousandths,
                          struct error *error)
{
	const char *at = text;
	int64_t value;
	if (take_decimal(&at, INT64_MAX / 100000, &value) && *at == '\0' && value <= most) {
		*thousandths = value;
		return true;
	}
	return error_set(error, ERROR_INVALID,
	                 "%s is '%.40s', and should be a number from 0 to %lld with at most three "
	                 "digits behind the point",
	                 name, text, (long long)(most / 1000));
}

bool quantity_integer(const char *name, const char *text, int64_t least, int64_t most,
                      int64_t *number, struct error *error)
{
	bool negative = *text == '-';
	const char *at = text + negative;
	int64_t value;
	if (strspn(at, "0123456789") == strlen(at) &&
	    take_decimal(&at, INT64_MAX / 10000, &value)) {
		value = negative ? -(value / 1000) : value / 1000;
		if (value >= least && value <= most) {
			*number = value;
			return true;
		}
	}
	return error_set(error, ERROR_INVALID,
	                 "%s is '%.40s', and should be a whole number from %lld to %lld", name,
	                 text, (long long)least, (long long)most);
}

/* With one digit behind the point where it is small and not a whole number. */
static void print_in_units(struct buffer *to, int64_t mib, int64_t unit, char letter)
{
	int64_t tenths = muldiv_down(mib, 10, unit);
	if (tenths < 1000 && tenths % 10 != 0)
		buffer_print(to, "%lld.%lld%c", (long long)(tenths / 10), (long long)(tenths % 10),
		             letter);
	else
		buffer_print(to, "%lld%c", (long long)(tenths / 10), letter);
}

void quantity_print_memory(struct buffer *to, int64_t mib)
{
	if (mib == 0)
		buffer_text(to, "0");
	else if (mib < 1024)
		buffer_print(to, "%lldM", (long long)mib);
	else if (mib < INT64_C(1024) * 1024)
		print_in_units(to, mib, 1024, 'G');
	else
		print_in_units(to, mib, INT64_C(1024) * 1024, 'T');
}

void quantity_print_duration(struct buffer *to, int64_t ms)
{
	static const struct {
		char letter;
		int64_t ms;
	} units[] = { { 'd', DAY_MS }, { 'h', HOUR_MS }, { 'm', MINUTE_MS }, { 's', SECOND_MS } };
	if (ms < SECOND_MS) {
		buffer_text(to, "0s");
		return;
	}
	for (size_t i = 0; i < 4; i++) {
		int64_t count = ms / units[i].ms;
		if (count == 0)
			continue;
		buffer_print(to, "%lld%c", (long long)count, units[i].letter);
		int64_t rest = i < 3 ? (ms - count * units[i].ms) / units[i + 1].ms : 0;
		if (rest > 0)
			buffer_print(to, "%lld%c", (long long)rest, units[i + 1].letter);
		return;
	}
}

int64_t quantity_moment(const char *text)
{
	struct tm parts = { 0 };
	int used = 0;
	if (!text ||
	    sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
	           &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &used) != 6)
		return -1;
	parts.tm_year -= 1900;
	parts.tm_mon -= 1;
	int64_t ms = (int64_t)timegm(&parts) * SECOND_MS;
	const char *at = text + used;
	if (*at == '.') {
		at++;
		for (int64_t unit = 100; isdigit((unsigned char)*at); at++, unit /= 10)
			ms += unit * (*at - '0');
	}
	return strcmp(at, "Z") == 0 ? ms : -1;
}

void quantity_print_moment(struct buffer *to, int64_t ms)
{
	time_t moment = (time_t)(ms / SECOND_MS), now = (time_t)(clock_unix_ms() / SECOND_MS);
	struct tm then_parts, now_parts;
	char text[64];
	localtime_r(&moment, &then_parts);
	localtime_r(&now, &now_parts);
	bool today =
	    then_parts.tm_yday == now_parts.tm_yday && then_parts.tm_year == now_parts.tm_year;
	strftime(text, sizeof(text),
	         today                                     ? "%H:%M:%S"
	         : then_parts.tm_year == now_parts.tm_year ? "%e %b %H:%M"
	                                                   : "%Y-%m-%d",
	         &then_parts);
	buffer_text(to, text[0] == ' ' ? text + 1 : text);
}
