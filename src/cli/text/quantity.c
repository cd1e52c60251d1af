/* quantity.c - sizes, durations and moments as people write and read them */
#include "cli/text/quantity.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/calendar.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/number_text.h"
#include "base/size.h"
#include "cli/text/text_width.h"

#define DURATION_MAX_MS (36500 * DAY_MS)

bool quantity_memory(const char *name, const char *text, int64_t *mib, struct error *error)
{
	return size_read(text_of(text), mib) ||
	       error_set(error, ERROR_INVALID,
	                 "invalid %s '%.40s': expected a size such as 20G, 512M or 1.5T", name,
	                 text);
}

bool quantity_duration(const char *name, const char *text, int64_t *ms, struct error *error)
{
	int64_t given_ms;

	if (!duration_read(text_of(text), DURATION_MAX_MS, &given_ms) || given_ms == 0)
		return error_set(error, ERROR_INVALID,
		                 "invalid %s '%.40s': expected a duration such as 90m, 2h30m or 1d",
		                 name, text);
	*ms = given_ms;
	return true;
}

bool quantity_thousandths(const char *name, const char *text, int64_t most, int64_t *thousandths,
                          struct error *error)
{
	return number_read_decimal(text_of(text), 3, 0, most, thousandths) ||
	       error_set(error, ERROR_INVALID,
	                 "invalid %s '%.40s': expected a number from 0 to %lld with at most three "
	                 "decimals",
	                 name, text, (long long)(most / 1000));
}

bool quantity_integer(const char *name, const char *text, int64_t least, int64_t most,
                      int64_t *number, struct error *error)
{
	return number_read(text_of(text), least, most, number) ||
	       error_set(error, ERROR_INVALID,
	                 "invalid %s '%.40s': expected a whole number from %lld to %lld", name,
	                 text, (long long)least, (long long)most);
}

int64_t quantity_moment(const char *text)
{
	int64_t ms;

	return text && calendar_read(text_of(text), &ms) ? ms : -1;
}

int64_t quantity_local_moment(const char *text)
{
	int64_t ms = quantity_moment(text);
	size_t size = text ? strlen(text) : 0;
	char utc[24];

	if (ms >= 0 ||
	    (size != strlen("2030-01-31T12:00") && size != strlen("2030-01-31T12:00:00")))
		return ms;
	snprintf(utc, sizeof(utc), "%s%sZ", text, size == strlen("2030-01-31T12:00") ? ":00" : "");
	if (utc[10] == ' ')
		utc[10] = 'T';
	if (!calendar_read(text_of(utc), &ms))
		return -1;
	/* Those digits, read on this machine's clock. */
	time_t digits = ms / 1000;
	struct tm local;
	gmtime_r(&digits, &local);
	local.tm_isdst = -1;
	time_t moment = mktime(&local);
	ms = moment >= 0 ? (int64_t)moment * 1000 : -1;
	return ms;
}

bool quantity_since(const char *name, const char *text, int64_t *unix_ms, struct error *error)
{
	int64_t ago_ms = 0;

	*unix_ms = quantity_local_moment(text);
	if (*unix_ms >= 0)
		return true;
	if (!quantity_duration(name, text, &ago_ms, error))
		return error_set(error, ERROR_INVALID,
		                 "invalid %s '%.40s': expected a duration such as 2h, or a time "
		                 "such as 2030-01-31T12:00",
		                 name, text);
	*unix_ms = clock_unix_ms() - ago_ms;
	return true;
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

void quantity_print_sentence(struct buffer *to, const char *text)
{
	static const char digits[] = "0123456789-:.TZ";
	struct buffer plain = { 0 };
	int64_t ms;

	buffer_text(&plain, "");
	for (text = text ? text : ""; *text;) {
		size_t size = strspn(text, digits);
		while (size > 1 && strchr(":.-", text[size - 1])) /* of the sentence */
			size--;
		if (size > 0 && calendar_read((struct text){ text, size }, &ms))
			quantity_print_moment(&plain, ms);
		else
			buffer_bytes(&plain, text, size > 0 ? size : (size = 1));
		text += size;
	}
	buffer_text(&plain, "");
	text_clean(to, plain.data);
	buffer_free(&plain);
}
