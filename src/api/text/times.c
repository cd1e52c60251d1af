/* times.c - times and durations as people write them */
#include "api/text/times.h"

#include "core/why/why_text.h"

#define SECOND_MS INT64_C(1000)
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS (60 * MINUTE_MS)
#define DAY_MS (24 * HOUR_MS)
#define DURATION_MAX_MS (10000 * DAY_MS)

/* Exactly `count` digits at the start of `text`, which moves on. */
static bool digits(struct text *text, int count, int64_t *value)
{
	*value = 0;
	for (int i = 0; i < count; i++) {
		if (text->size == 0 || *text->data < '0' || *text->data > '9')
			return false;
		*value = *value * 10 + (*text->data - '0');
		*text = text_from(*text, 1);
	}
	return true;
}

static bool one_of(struct text *text, const char *bytes)
{
	if (text->size == 0 || !*text->data || !strchr(bytes, *text->data))
		return false;
	*text = text_from(*text, 1);
	return true;
}

static int64_t days_of_month(int64_t year, int64_t month)
{
	static const int64_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	return days[month - 1] + (month == 2 && leap);
}

/* Days since 1970-01-01; the year is taken to begin in March. */
static int64_t day_number(int64_t year, int64_t month, int64_t day)
{
	int64_t from_march = month > 2 ? month - 3 : month + 9;
	int64_t of_year = month > 2 ? year : year - 1;
	return of_year * 365 + of_year / 4 - of_year / 100 + of_year / 400 +
	       (153 * from_march + 2) / 5 + day - 1 - 719468;
}

static bool day_read(struct text *text, int64_t *unix_ms)
{
	int64_t year, month, day;
	if (!digits(text, 4, &year) || !one_of(text, "-") || !digits(text, 2, &month) ||
	    !one_of(text, "-") || !digits(text, 2, &day))
		return false;
	if (year < 1970 || month < 1 || month > 12 || day < 1 || day > days_of_month(year, month))
		return false;
	*unix_ms = day_number(year, month, day) * DAY_MS;
	return true;
}

static bool clock_read(struct text *text, int64_t *of_day_ms)
{
	int64_t hour, minute, second, fraction = 0, place = 100;
	if (!digits(text, 2, &hour) || !one_of(text, ":") || !digits(text, 2, &minute) ||
	    !one_of(text, ":") || !digits(text, 2, &second))
		return false;
	if (one_of(text, ".")) {
		int64_t digit;
		if (!digits(text, 1, &digit))
			return false;
		do {
			fraction += digit * place;
			place /= 10;
		} while (digits(text, 1, &digit));
	}
	*of_day_ms = hour * HOUR_MS + minute * MINUTE_MS + second * SECOND_MS + fraction;
	return hour < 24 && minute < 60 && second < 61;
}

static bool zone_read(struct text *text, int64_t *ahead_ms)
{
	int64_t hour, minute;
	*ahead_ms = 0;
	if (one_of(text, "Zz"))
		return true;
	bool behind = text->size > 0 && *text->data == '-';
	if (!one_of(text, "+-") || !digits(text, 2, &hour) || !one_of(text, ":") ||
	    !digits(text, 2, &minute))
		return false;
	*ahead_ms = (hour * HOUR_MS + minute * MINUTE_MS) * (behind ? -1 : 1);
	return hour < 24 && minute < 60;
}

bool time_read(struct text text, int64_t *unix_ms)
{
	int64_t day, clock, ahead;
	if (!day_read(&text, &day) || !one_of(&text, "Tt ") || !clock_read(&text, &clock) ||
	    !zone_read(&text, &ahead) || text.size > 0)
		return false;
	*unix_ms = day + clock - ahead;
	return *unix_ms >= 0;
}

bool time_or_day_read(struct text text, int64_t *unix_ms)
{
	struct text day = text;
	return (day_read(&day, unix_ms) && day.size == 0) || time_read(text, unix_ms);
}

static int64_t unit_read(struct text *text)
{
	static const struct {
		const char *name;
		int64_t ms;
	} units[] = { { "ms", 1 },
		      { "d", DAY_MS },
		      { "h", HOUR_MS },
		      { "m", MINUTE_MS },
		      { "s", SECOND_MS } };
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (!text_starts(*text, units[i].name))
			continue;
		*text = text_from(*text, strlen(units[i].name));
		return units[i].ms;
	}
	return text->size == 0 ? SECOND_MS : 0;
}

bool duration_read(struct text text, int64_t *duration_ms)
{
	int64_t sum = 0;
	if (text.size == 0)
		return false;
	while (text.size > 0) {
		int64_t whole = 0, fraction = 0, place = 1000, digit;
		if (!digits(&text, 1, &digit))
			return false;
		do {
			whole = whole * 10 + digit;
		} while (whole <= DURATION_MAX_MS && digits(&text, 1, &digit));
		if (one_of(&text, ".")) {
			while (digits(&text, 1, &digit)) {
				place /= 10;
				fraction += digit * place;
			}
			if (place == 1000)
				return false;
		}
		int64_t unit = unit_read(&text);
		if (unit == 0 || whole > DURATION_MAX_MS / unit)
			return false;
		sum += whole * unit + fraction * unit / 1000;
		if (sum > DURATION_MAX_MS)
			return false;
	}
	*duration_ms = sum;
	return true;
}

void json_put_duration(struct json_writer *json, const char *key, int64_t duration_ms)
{
	char text[64];
	struct buffer buffer = { 0 };

	if (duration_ms < 0) {
		json_put_null(json, key);
		return;
	}
	text_duration(&buffer, duration_ms);
	size_t size = buffer.size < sizeof(text) ? buffer.size : sizeof(text);
	memcpy(text, buffer.data, size);
	buffer_free(&buffer);
	json_put_text(json, key, (struct text){ text, size });
}

void json_put_moment(struct json_writer *json, const char *key, int64_t unix_ms)
{
	if (unix_ms <= 0)
		json_put_null(json, key);
	else
		json_put_time(json, key, unix_ms * 1000);
}
