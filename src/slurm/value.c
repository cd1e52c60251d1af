/* value.c - values as Slurm's users write them */
#include "slurm/value.h"

#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/number_text.h"
#include "base/text.h"

enum {
	SECONDS_MINUTE = 60,
	SECONDS_HOUR = 3600,
	SECONDS_DAY = 86400,
	MS_SECOND = 1000,
};

#define NUMBER_MOST INT64_C(1000000000)

static bool take_letter(struct text *text, char letter)
{
	if (text->size == 0 || text->data[0] != letter)
		return false;
	text->data++;
	text->size--;
	return true;
}

/* Up to three numbers with colons between them; how many, 0 if it is none of that. */
static int take_numbers(struct text *text, int64_t numbers[3])
{
	int count = 0;
	do {
		if (!number_take(text, NUMBER_MOST, &numbers[count]))
			return 0;
		count++;
	} while (count < 3 && take_letter(text, ':'));
	return text->size == 0 ? count : 0;
}

bool slurm_time(const char *name, const char *text, int64_t *seconds, struct error *error)
{
	struct text rest = text_of(text);
	int64_t days = 0, numbers[3];
	if (strcasecmp(text, "unlimited") == 0 || strcasecmp(text, "infinite") == 0) {
		*seconds = 0;
		return true;
	}
	const char *dash = strchr(text, '-');
	bool with_days = dash && number_take(&rest, NUMBER_MOST, &days) && take_letter(&rest, '-');
	int count = take_numbers(&rest, numbers);
	if (count == 0 || (dash && !with_days))
		return error_set(error, ERROR_INVALID,
		                 "invalid %s '%.40s': expected minutes, minutes:seconds, "
		                 "hours:minutes:seconds or days-hours:minutes:seconds",
		                 name, text);
	/* With days, the first number is hours; alone, one or two numbers begin with minutes. */
	int64_t unit = with_days || count == 3 ? SECONDS_HOUR : SECONDS_MINUTE;
	int64_t sum = days * SECONDS_DAY;
	for (int i = 0; i < count; i++, unit /= SECONDS_MINUTE)
		sum += numbers[i] * unit;
	*seconds = sum;
	return true;
}

bool slurm_memory(const char *name, const char *text, int64_t *mib, struct error *error)
{
	struct text rest = text_of(text);
	int64_t number, kib = 1024;
	bool good = number_take(&rest, NUMBER_MOST, &number);
	if (good && rest.size > 0) {
		static const char letters[] = "KMGT";
		const char *letter = strchr(letters, rest.data[0] & ~0x20);
		good = letter && *letter &&
		       (rest.size == 1 || (rest.size == 2 && (rest.data[1] | 0x20) == 'b'));
		kib = 1;
		for (const char *at = letters; good && at < letter; at++)
			kib *= 1024;
	}
	if (!good)
		return error_set(error, ERROR_INVALID,
		                 "invalid %s '%.40s': expected MiB, or a size such as 16G", name,
		                 text);
	*mib = (number * kib + 1023) / 1024;
	return true;
}

bool slurm_number(const char *name, const char *text, int64_t least, int64_t most, int64_t *number,
                  struct error *error)
{
	if (number_read(text_of(text), least, most, number))
		return true;
	return error_set(error, ERROR_INVALID,
	                 "invalid %s '%.40s': expected a number from %lld to %lld", name, text,
	                 (long long)least, (long long)most);
}

static bool refuse_gpus(const char *name, const char *text, struct error *error)
{
	return error_set(error, ERROR_INVALID,
	                 "invalid %s '%.40s': expected a number of GPUs, or type:number", name,
	                 text);
}

bool slurm_gpus(const char *name, const char *text, struct slurm_gpus *gpus, struct error *error)
{
	const char *colon = strrchr(text, ':');
	const char *number = colon ? colon + 1 : text;
	*gpus = (struct slurm_gpus){ .type = colon ? text : NULL,
		                     .type_length = colon ? (int)(colon - text) : 0 };
	if (strchr(text, ',') ||
	    (colon && (colon == text || memchr(text, ':', (size_t)(colon - text)))))
		return refuse_gpus(name, text, error);
	return number_read(text_of(number), 0, NUMBER_MOST, &gpus->count) ||
	       refuse_gpus(name, text, error);
}

bool slurm_gres(const char *name, const char *text, struct slurm_gpus *gpus, struct error *error)
{
	*gpus = (struct slurm_gpus){ 0 };
	if (strcmp(text, "none") == 0 || !*text)
		return true;
	if (strncmp(text, "gres/", 5) == 0)
		text += 5;
	if (strchr(text, ',') || strncmp(text, "gpu", 3) != 0 || (text[3] && text[3] != ':'))
		return error_set(error, ERROR_INVALID,
		                 "invalid %s '%.40s': only GPUs are known, as in gpu:2 or "
		                 "gpu:a100:2",
		                 name, text);
	if (!text[3]) {
		gpus->count = 1;
		return true;
	}
	const char *rest = text + 4;
	/* A type alone is one GPU of it. */
	if (*rest && !strchr(rest, ':') && strspn(rest, "0123456789") != strlen(rest)) {
		*gpus = (struct slurm_gpus){ rest, (int)strlen(rest), 1 };
		return true;
	}
	return slurm_gpus(name, rest, gpus, error);
}

/* now, now+60, now+2hours. */
static bool read_relative(const char *text, int64_t now_ms, int64_t *moment_ms)
{
	static const struct {
		const char *name;
		int64_t seconds;
	} units[] = { { "", 1 },
		      { "second", 1 },
		      { "seconds", 1 },
		      { "minute", SECONDS_MINUTE },
		      { "minutes", SECONDS_MINUTE },
		      { "hour", SECONDS_HOUR },
		      { "hours", SECONDS_HOUR },
		      { "day", SECONDS_DAY },
		      { "days", SECONDS_DAY },
		      { "week", 7 * SECONDS_DAY },
		      { "weeks", 7 * SECONDS_DAY } };
	struct text rest = text_of(text + strlen("now"));
	int64_t number = 0;
	if (rest.size == 0) {
		*moment_ms = now_ms;
		return true;
	}
	if (!take_letter(&rest, '+') || !number_take(&rest, NUMBER_MOST, &number))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strlen(units[i].name) == rest.size &&
		    strncasecmp(units[i].name, rest.data, rest.size) == 0) {
			*moment_ms = now_ms + number * units[i].seconds * MS_SECOND;
			return true;
		}
	return false;
}

/* HH:MM[:SS], with am or pm behind it. */
static bool take_time_of_day(struct text *text, struct tm *day)
{
	int64_t hour, minute, second = 0;
	if (!number_take(text, 23, &hour) || !take_letter(text, ':') ||
	    !number_take_digits(text, 2, &minute) || minute > 59)
		return false;
	if (take_letter(text, ':') && (!number_take_digits(text, 2, &second) || second > 59))
		return false;
	if (text->size == 2 && (text->data[1] | 0x20) == 'm' && hour >= 1 && hour <= 12) {
		int letter = text->data[0] | 0x20;
		if (letter != 'a' && letter != 'p')
			return false;
		hour = hour % 12 + (letter == 'p' ? 12 : 0);
		text->size = 0;
	}
	day->tm_hour = (int)hour;
	day->tm_min = (int)minute;
	day->tm_sec = (int)second;
	return true;
}

static bool take_date(struct text *text, struct tm *day)
{
	struct text start = *text;
	int64_t year, month, date;
	if (number_take_digits(text, 4, &year) && take_letter(text, '-') &&
	    number_take_digits(text, 2, &month) && take_letter(text, '-') &&
	    number_take_digits(text, 2, &date)) {
		day->tm_year = (int)year - 1900;
	} else {
		*text = start;
		if (!number_take_digits(text, 2, &month))
			return false;
		bool slash = take_letter(text, '/');
		if (!number_take_digits(text, 2, &date))
			return false;
		if (slash && take_letter(text, '/')) {
			if (!number_take_digits(text, 2, &year))
				return false;
			day->tm_year = (int)year + 100;
		}
	}
	if (month < 1 || month > 12 || date < 1 || date > 31)
		return false;
	day->tm_mon = (int)month - 1;
	day->tm_mday = (int)date;
	return true;
}

static bool set_word(const char *text, struct tm *day, bool *rolls)
{
	static const struct {
		const char *name;
		int hour;
	} words[] = { { "midnight", 0 }, { "noon", 12 }, { "teatime", 16 } };
	for (size_t i = 0; i < 3; i++)
		if (strcasecmp(text, words[i].name) == 0) {
			day->tm_hour = words[i].hour;
			*rolls = true;
			return true;
		}
	if (strcasecmp(text, "tomorrow") == 0)
		day->tm_mday++;
	return strcasecmp(text, "today") == 0 || strcasecmp(text, "tomorrow") == 0;
}

bool slurm_moment(const char *name, const char *text, int64_t now_ms, int64_t *moment_ms,
                  struct error *error)
{
	time_t now = (time_t)(now_ms / MS_SECOND);
	struct tm day;
	struct text rest = text_of(text);
	bool rolls = false; /* a time of day that is past is tomorrow's */
	if (strncasecmp(text, "now", 3) == 0 && read_relative(text, now_ms, moment_ms))
		return true;
	localtime_r(&now, &day);
	day.tm_hour = day.tm_min = day.tm_sec = 0;
	day.tm_isdst = -1;
	bool good = set_word(text, &day, &rolls);
	if (!good) {
		struct text start = rest;
		if (take_time_of_day(&rest, &day) && rest.size == 0) {
			good = rolls = true;
		} else {
			rest = start;
			localtime_r(&now, &day);
			day.tm_hour = day.tm_min = day.tm_sec = 0;
			day.tm_isdst = -1;
			good = take_date(&rest, &day);
			if (good && rest.size > 0)
				good = (take_letter(&rest, 'T') || take_letter(&rest, '-')) &&
				       take_time_of_day(&rest, &day) && rest.size == 0;
		}
	}
	if (!good)
		return error_set(error, ERROR_INVALID,
		                 "invalid %s '%.40s': expected a time such as 16:00, now+1hour or "
		                 "2030-01-31T12:00",
		                 name, text);
	struct tm copy = day;
	time_t moment = mktime(&copy);
	if (rolls && moment <= now) {
		day.tm_mday++;
		moment = mktime(&day);
	}
	*moment_ms = (int64_t)moment * MS_SECOND;
	return true;
}

void slurm_print_elapsed(struct buffer *to, int64_t seconds, bool hours)
{
	int64_t days = seconds / SECONDS_DAY, rest = seconds % SECONDS_DAY;
	int hour = (int)(rest / SECONDS_HOUR), minute = (int)(rest % SECONDS_HOUR / SECONDS_MINUTE);
	if (days > 0)
		buffer_print(to, "%lld-%02d:%02d:%02d", (long long)days, hour, minute,
		             (int)(rest % SECONDS_MINUTE));
	else if (hours)
		buffer_print(to, "%02d:%02d:%02d", hour, minute, (int)(rest % SECONDS_MINUTE));
	else if (hour > 0)
		buffer_print(to, "%d:%02d:%02d", hour, minute, (int)(rest % SECONDS_MINUTE));
	else
		buffer_print(to, "%d:%02d", minute, (int)(rest % SECONDS_MINUTE));
}
