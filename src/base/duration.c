/* duration.c - durations, as people write and read them */
#include "base/duration.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/number.h"
#include "base/number_text.h"

#define LONGEST_MS (36500 * DAY_MS)
enum { PLACES = 6, MILLION = 1000000, EXACT_MS = 8, BUCKET_PARTS = 4 };

static const struct duration_unit {
	const char *name;
	int64_t ms;
} units[] = { { "ms", 1 },      { "w", 7 * DAY_MS }, { "d", DAY_MS },
	      { "h", HOUR_MS }, { "m", MINUTE_MS },  { "s", SECOND_MS } };

static bool take_unit(struct text *text, int64_t *unit_ms)
{
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (!text_starts(*text, units[i].name))
			continue;
		*text = text_from(*text, strlen(units[i].name));
		*unit_ms = units[i].ms;
		return true;
	}
	return false;
}

/* A number in millionths. Digits after those do not count. */
static bool take_millionths(struct text *text, int64_t *millionths)
{
	int64_t digit;

	if (!number_take_decimal(text, PLACES, LONGEST_MS * MILLION, millionths))
		return false;
	while (number_take_digits(text, 1, &digit))
		;
	return true;
}

/* Parts with units, or one number of seconds without. */
static bool read_parts(struct text text, int64_t most_ms, int64_t *duration_ms)
{
	int64_t sum_ms = 0, millionths, unit_ms;

	for (bool is_first = true; text.size > 0 || is_first; is_first = false) {
		if (!take_millionths(&text, &millionths))
			return false;
		if (is_first && text.size == 0)
			unit_ms = SECOND_MS;
		else if (!take_unit(&text, &unit_ms))
			return false;
		int64_t part_ms = muldiv_up(millionths, unit_ms, MILLION);
		if (part_ms > most_ms - sum_ms)
			return false;
		sum_ms += part_ms;
	}
	*duration_ms = sum_ms;
	return true;
}

/* Takes a colon and a number below 60. */
static bool take_sixtieths(struct text *text, int64_t *number)
{
	if (!text_starts(*text, ":"))
		return false;
	*text = text_from(*text, 1);
	return number_take(text, 59, number);
}

/* Of Slurm's forms those in which no number can be taken for another: H:MM:SS and D-HH:MM:SS. */
static bool read_slurm(struct text text, int64_t most_ms, int64_t *duration_ms)
{
	const int64_t most = LONGEST_MS / HOUR_MS;
	int64_t days = 0, hours, minutes, seconds;

	if (!number_take(&text, most, &hours))
		return false;
	if (text_starts(text, "-")) {
		days = hours;
		text = text_from(text, 1);
		if (!number_take(&text, 23, &hours))
			return false;
	}
	if (!take_sixtieths(&text, &minutes) || !take_sixtieths(&text, &seconds) || text.size > 0)
		return false;
	int64_t ms = days * DAY_MS + hours * HOUR_MS + minutes * MINUTE_MS + seconds * SECOND_MS;
	if (ms > most_ms)
		return false;
	*duration_ms = ms;
	return true;
}

bool duration_read(struct text text, int64_t most_ms, int64_t *duration_ms)
{
	INVARIANT(most_ms >= 0 && most_ms <= LONGEST_MS);
	return read_slurm(text, most_ms, duration_ms) || read_parts(text, most_ms, duration_ms);
}

void duration_print(struct buffer *to, int64_t duration_ms)
{
	static const struct {
		char letter;
		int64_t ms;
	} sizes[] = { { 'd', DAY_MS }, { 'h', HOUR_MS }, { 'm', MINUTE_MS }, { 's', SECOND_MS } };

	if (duration_ms < SECOND_MS) {
		buffer_text(to, "0s");
		return;
	}
	for (size_t i = 0; i < 4; i++) {
		int64_t count = duration_ms / sizes[i].ms;
		if (count == 0)
			continue;
		buffer_print(to, "%" PRId64 "%c", count, sizes[i].letter);
		int64_t rest = i < 3 ? duration_ms % sizes[i].ms / sizes[i + 1].ms : 0;
		if (rest > 0)
			buffer_print(to, "%" PRId64 "%c", rest, sizes[i + 1].letter);
		return;
	}
}

void duration_print_hours(struct buffer *to, int64_t duration_ms)
{
	int64_t seconds = max64(duration_ms, 0) / SECOND_MS;

	if (seconds >= 3600)
		buffer_print(to, "%" PRId64 "h", seconds / 3600);
	if (seconds >= 60)
		buffer_print(to, "%" PRId64 "m", seconds / 60 % 60);
	buffer_print(to, "%" PRId64 "s", seconds % 60);
}

int duration_bucket(int64_t ms)
{
	if (ms < EXACT_MS)
		return (int)max64(ms, 0);
	int power = 63 - __builtin_clzll((unsigned long long)ms);
	int bucket =
	    EXACT_MS + (power - 3) * BUCKET_PARTS + (int)(ms >> (power - 2) & (BUCKET_PARTS - 1));

	return bucket < DURATION_BUCKETS ? bucket : DURATION_BUCKETS - 1;
}

int64_t duration_longest_ms(int bucket)
{
	if (bucket < EXACT_MS)
		return bucket;
	int power = 3 + (bucket - EXACT_MS) / BUCKET_PARTS;
	int64_t part = (bucket - EXACT_MS) % BUCKET_PARTS;

	return ((BUCKET_PARTS + part + 1) << (power - 2)) - 1;
}

int64_t duration_percentile_ms(const int64_t counts[DURATION_BUCKETS], int percent)
{
	int64_t all = 0, below = 0;

	for (int at = 0; at < DURATION_BUCKETS; at++)
		all += counts[at];
	for (int at = 0; at < DURATION_BUCKETS; at++) {
		below += counts[at];
		if (all > 0 && below * 100 >= all * percent)
			return duration_longest_ms(at);
	}
	return -1;
}
