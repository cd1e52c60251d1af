/* calendar.c - dates and times of day in UTC, as text and as numbers */
#include "base/calendar.h"

#include <string.h>

#include "base/error.h"
#include "base/number_text.h"

#define SECOND_US INT64_C(1000000)
#define DAY_S INT64_C(86400)
#define LAST_S (INT64_C(253402300800) - 1) /* 9999-12-31T23:59:59Z */

/* Years are counted from March, so that a leap day is the last day of its year. Then 400 years,
 * an era, always have the same days, and the months follow each other in a regular pattern. */
enum { ERA_DAYS = 146097, DAYS_TO_1970 = 719468 };

struct calendar calendar_of(int64_t unix_s)
{
	int64_t s = unix_s < 0 ? 0 : unix_s > LAST_S ? LAST_S : unix_s;
	int64_t days = s / DAY_S, of_day = s % DAY_S, shifted = days + DAYS_TO_1970;
	int64_t era = shifted / ERA_DAYS, of_era = shifted % ERA_DAYS;
	int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
	int64_t from_march = (5 * of_year + 2) / 153;
	int64_t month = from_march < 10 ? from_march + 3 : from_march - 9;

	return (struct calendar){
		.year = year + era * 400 + (month <= 2),
		.month = (int)month,
		.day = (int)(of_year - (153 * from_march + 2) / 5 + 1),
		.weekday = (int)((days + 4) % 7), /* 1970-01-01 was a Thursday */
		.hour = (int)(of_day / 3600),
		.minute = (int)(of_day / 60 % 60),
		.second = (int)(of_day % 60),
	};
}

/* Days since 1970-01-01. */
static int64_t calendar_day_number(int64_t year, int64_t month, int64_t day)
{
	int64_t from_march = month > 2 ? month - 3 : month + 9;
	int64_t of_year = month > 2 ? year : year - 1;

	return of_year * 365 + of_year / 4 - of_year / 100 + of_year / 400 +
	       (153 * from_march + 2) / 5 + day - 1 - DAYS_TO_1970;
}

static int64_t calendar_month_days(int64_t year, int64_t month)
{
	static const int64_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && is_leap);
}

/* Writes `count` digits of a number that has no more, and what separates them from the next. */
static char *digits_to(char *out, int64_t value, int count, char separator)
{
	for (int i = count - 1; i >= 0; i--) {
		out[i] = (char)('0' + value % 10);
		value /= 10;
	}
	out[count] = separator;
	return out + count + 1;
}

size_t calendar_write(int64_t unix_us, int digits, char out[CALENDAR_TEXT_MAX])
{
	int64_t last_us = LAST_S * SECOND_US + SECOND_US - 1;
	int64_t us = unix_us < 0 ? 0 : unix_us > last_us ? last_us : unix_us;
	struct calendar date = calendar_of(us / SECOND_US);
	char *at = out;

	INVARIANT(digits == 0 || digits == 3 || digits == 6);
	at = digits_to(at, date.year, 4, '-');
	at = digits_to(at, date.month, 2, '-');
	at = digits_to(at, date.day, 2, 'T');
	at = digits_to(at, date.hour, 2, ':');
	at = digits_to(at, date.minute, 2, ':');
	at = digits_to(at, date.second, 2, digits == 0 ? 'Z' : '.');
	if (digits > 0)
		at = digits_to(at, us % SECOND_US / (digits == 3 ? 1000 : 1), digits, 'Z');
	*at = '\0';
	return (size_t)(at - out);
}

void calendar_print(struct buffer *to, int64_t unix_ms)
{
	char text[CALENDAR_TEXT_MAX];

	calendar_write(unix_ms > LAST_S * 1000 ? INT64_MAX : unix_ms * 1000, 0, text);
	buffer_text(to, text);
}

void calendar_print_mail(struct buffer *to, int64_t unix_ms)
{
	static const char *const days[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
		                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	struct calendar date = calendar_of(unix_ms / 1000);

	buffer_print(to, "%s, %02d %s %04lld %02d:%02d:%02d", days[date.weekday], date.day,
	             months[date.month - 1], (long long)date.year, date.hour, date.minute,
	             date.second);
}

/* Takes one of these characters off the front. */
static bool take_one_of(struct text *text, const char *characters)
{
	if (text->size == 0 || !*text->data || !strchr(characters, *text->data))
		return false;
	*text = text_from(*text, 1);
	return true;
}

static bool take_day(struct text *text, int64_t *unix_ms)
{
	int64_t year, month, day;

	if (!number_take_digits(text, 4, &year) || !take_one_of(text, "-") ||
	    !number_take_digits(text, 2, &month) || !take_one_of(text, "-") ||
	    !number_take_digits(text, 2, &day))
		return false;
	if (year < 1970 || month < 1 || month > 12 || day < 1 ||
	    day > calendar_month_days(year, month))
		return false;
	*unix_ms = calendar_day_number(year, month, day) * DAY_S * 1000;
	return true;
}

/* Digits after the third do not count. */
static bool take_fraction(struct text *text, int64_t *ms)
{
	int64_t digit, unit = 100;

	*ms = 0;
	if (!take_one_of(text, "."))
		return true;
	if (!number_take_digits(text, 1, &digit))
		return false;
	do {
		*ms += digit * unit;
		unit /= 10;
	} while (number_take_digits(text, 1, &digit));
	return true;
}

/* A leap second is the first of the next minute. */
static bool take_time_of_day(struct text *text, int64_t *of_day_ms)
{
	int64_t hour, minute, second, fraction_ms;

	if (!number_take_digits(text, 2, &hour) || !take_one_of(text, ":") ||
	    !number_take_digits(text, 2, &minute) || !take_one_of(text, ":") ||
	    !number_take_digits(text, 2, &second) || !take_fraction(text, &fraction_ms))
		return false;
	*of_day_ms = (hour * 3600 + minute * 60 + second) * 1000 + fraction_ms;
	return hour < 24 && minute < 60 && second < 61;
}

static bool take_zone(struct text *text, int64_t *ahead_ms)
{
	bool is_behind = text_starts(*text, "-");
	int64_t hour, minute;

	*ahead_ms = 0;
	if (take_one_of(text, "Zz"))
		return true;
	if (!take_one_of(text, "+-") || !number_take_digits(text, 2, &hour) ||
	    !take_one_of(text, ":") || !number_take_digits(text, 2, &minute))
		return false;
	*ahead_ms = (hour * 3600 + minute * 60) * (is_behind ? -1000 : 1000);
	return hour < 24 && minute < 60;
}

bool calendar_read(struct text text, int64_t *unix_ms)
{
	int64_t day_ms, of_day_ms, ahead_ms;

	if (!take_day(&text, &day_ms) || !take_one_of(&text, "Tt ") ||
	    !take_time_of_day(&text, &of_day_ms) || !take_zone(&text, &ahead_ms) || text.size > 0)
		return false;
	if (day_ms + of_day_ms < ahead_ms)
		return false;
	*unix_ms = day_ms + of_day_ms - ahead_ms;
	return true;
}

bool calendar_read_day(struct text text, int64_t *unix_ms)
{
	struct text rest = text;
	int64_t day_ms;

	if (!take_day(&rest, &day_ms) || rest.size > 0)
		return calendar_read(text, unix_ms);
	*unix_ms = day_ms;
	return true;
}
