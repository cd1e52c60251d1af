/* job_events.c - finds events of jobs in what listeners read */
#define _GNU_SOURCE /* memmem */
#include "job_events.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "wire/bench/measure.h"

/* 2026-01-31T12:00:00.25Z in seconds since 1970; 0 if it is cut off. */
static double event_time_s(const char *text, size_t size)
{
	struct tm day = { 0 };
	char copy[40] = { 0 };
	double seconds = 0;
	memcpy(copy, text, size < sizeof(copy) - 1 ? size : sizeof(copy) - 1);
	if (!strchr(copy, 'Z') || sscanf(copy, "%d-%d-%dT%d:%d:%lf", &day.tm_year, &day.tm_mon,
	                                 &day.tm_mday, &day.tm_hour, &day.tm_min, &seconds) != 6)
		return 0;
	day.tm_year -= 1900;
	day.tm_mon -= 1;
	return (double)timegm(&day) + seconds;
}

void job_events_take(const char *data, size_t size, struct listeners_result *result)
{
	static const char mark[] = "\"topic\":\"jobs\",\"time\":\"";
	double now_s = clock_s(CLOCK_REALTIME);
	const char *end = data + size, *at = data;
	while ((at = memmem(at, (size_t)(end - at), mark, sizeof(mark) - 1))) {
		at += sizeof(mark) - 1;
		double happened_s = event_time_s(at, (size_t)(end - at));
		listeners_count(result, happened_s > 0 ? (now_s - happened_s) * 1000 : 0);
	}
}
