/* philly.c - the trace of a training cluster: jobs that arrive and end */
#include "sim/trace/philly.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define DAY_TEXT 10                          /* characters of "2017-10-01" */
#define DURATION_MAX_MS INT64_C(31536000000) /* a year */
#define GPUS_MAX 4096

const struct philly_choice philly_usual = {
	.from_day = "2017-10-01",
	.to_day = "2017-11-30",
	.clusters = "6214e9 7f04ca 11cb48 b436b2 ee9e8c e13805 6c71a0 2869ce ed69ec 103959 0e4a51",
};

static bool cluster_is_listed(const char *clusters, const char *name)
{
	size_t size = strlen(name);

	for (const char *at = clusters; *at; at += strcspn(at, " "), at += *at == ' ')
		if (strcspn(at, " ") == size && memcmp(at, name, size) == 0)
			return true;
	return false;
}

static bool counts(const struct philly_choice *choice, const char *timestamp, const char *cluster)
{
	return (!choice->from_day || strncmp(timestamp, choice->from_day, DAY_TEXT) >= 0) &&
	       (!choice->to_day || strncmp(timestamp, choice->to_day, DAY_TEXT) <= 0) &&
	       (!choice->clusters || cluster_is_listed(choice->clusters, cluster));
}

/* `digits` digits, then `end`; -1 if that is not what is there. */
static int64_t read_digits(const char **at, int digits, char end)
{
	int64_t number = 0;

	for (int i = 0; i < digits; i++, (*at)++) {
		if (**at < '0' || **at > '9')
			return -1;
		number = number * 10 + (**at - '0');
	}
	if (**at != end)
		return -1;
	*at += end != '\0';
	return number;
}

/* Days since 1970-01-01, from the year's March on, so that leap days come last. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
	int64_t from_march = (month + 9) % 12, years = month <= 2 ? year - 1 : year;

	return years * 365 + years / 4 - years / 100 + years / 400 + (from_march * 153 + 2) / 5 +
	       day - 1 - 719468;
}

static bool philly_read_time(const char *text, int64_t *time_ms)
{
	int64_t year = read_digits(&text, 4, '-'), month, day, hour, minute, second;

	if (year < 1970 || (month = read_digits(&text, 2, '-')) < 1 || month > 12 ||
	    (day = read_digits(&text, 2, ' ')) < 1 || day > 31 ||
	    (hour = read_digits(&text, 2, ':')) < 0 || hour > 23 ||
	    (minute = read_digits(&text, 2, ':')) < 0 || minute > 59 ||
	    (second = read_digits(&text, 2, '\0')) < 0 || second > 60)
		return false;
	*time_ms = (((days_of(year, month, day) * 24 + hour) * 60 + minute) * 60 + second) * 1000;
	return true;
}

/* Seconds in decimal digits, with or without a fraction. */
static bool read_duration(const char *text, int64_t *duration_ms)
{
	int64_t ms = 0, unit = 1000;
	bool point = false, digit = false;

	for (; *text; text++) {
		if (*text == '.' && !point) {
			point = true;
			continue;
		}
		if (*text < '0' || *text > '9' || ms > DURATION_MAX_MS)
			return false;
		digit = true;
		if (!point)
			ms = ms * 10 + (*text - '0') * 1000;
		else
			ms += (*text - '0') * (unit /= 10);
	}
	*duration_ms = ms;
	return digit && ms <= DURATION_MAX_MS;
}

enum { TIMESTAMP, DURATION, GPUS, CLUSTER, COLUMNS };

static size_t find_cluster(struct philly *philly, const char *name)
{
	size_t at = 0;

	while (at < philly->cluster_count && strcmp(philly->clusters[at], name) != 0)
		at++;
	if (at < philly->cluster_count)
		return at;
	array_reserve(philly->clusters, philly->cluster_capacity, at + 1);
	philly->clusters[philly->cluster_count++] = arena_string(&philly->arena, name);
	return at;
}

static bool read_job(struct philly *philly, const struct csv *csv, const int *column,
                     struct error *error)
{
	struct philly_job job = { .cluster = find_cluster(philly, csv->cells[column[CLUSTER]]) };

	if (!csv_number(csv, column[GPUS], 1, GPUS_MAX, &job.gpus, error))
		return false;
	if (!philly_read_time(csv->cells[column[TIMESTAMP]], &job.submit_ms))
		return error_set(error, ERROR_INVALID,
		                 "%s:%" PRId64
		                 ": timestamp is '%s', not a time like 2017-10-09 07:01:55",
		                 csv->name, csv->line, csv->cells[column[TIMESTAMP]]);
	if (!read_duration(csv->cells[column[DURATION]], &job.duration_ms))
		return error_set(error, ERROR_INVALID,
		                 "%s:%" PRId64
		                 ": duration is '%s', not seconds, a year at the most",
		                 csv->name, csv->line, csv->cells[column[DURATION]]);
	array_reserve(philly->jobs, philly->capacity, philly->count + 1);
	philly->jobs[philly->count++] = job;
	return true;
}

bool philly_read_rows(struct philly *philly, struct csv *csv, const struct philly_choice *choice,
                      struct error *error)
{
	static const char *const names[] = { "timestamp", "duration", "num_gpus", "cluster" };
	int column[COLUMNS], found;

	for (int i = 0; i < COLUMNS; i++)
		if (!csv_need(csv, names[i], &column[i], error))
			return false;
	while ((found = csv_next(csv, error)) > 0)
		if (counts(choice, csv->cells[column[TIMESTAMP]], csv->cells[column[CLUSTER]]) &&
		    !read_job(philly, csv, column, error))
			return false;
	return found == 0;
}

/* Stable, as the order of the list decides among equals. */
static void sort_by_time(struct philly_job *jobs, struct philly_job *spare, size_t count)
{
	size_t half = count / 2, a = 0, b = half;

	if (count < 2)
		return;
	sort_by_time(jobs, spare, half);
	sort_by_time(jobs + half, spare, count - half);
	for (size_t i = 0; i < count; i++) {
		bool first = b == count || (a < half && jobs[a].submit_ms <= jobs[b].submit_ms);
		spare[i] = jobs[first ? a++ : b++];
	}
	memcpy(jobs, spare, count * sizeof(*jobs));
}

static bool philly_read_file(struct philly *philly, const char *path,
                             const struct philly_choice *choice, struct error *error)
{
	struct csv csv;
	bool fine = csv_open(&csv, path, error) && philly_read_rows(philly, &csv, choice, error);

	csv_free(&csv);
	return fine;
}

bool philly_read(struct philly *philly, const char *path, const struct philly_choice *choice,
                 struct error *error)
{
	const struct philly_choice all = { 0 };

	*philly = (struct philly){ 0 };
	if (!philly_read_file(philly, path, choice, error))
		return false;
	if (philly->count == 0 && choice == &philly_usual &&
	    !philly_read_file(philly, path, &all, error))
		return false;
	if (philly->count == 0)
		return error_set(error, ERROR_INVALID, "%s: has no job that counts", path);
	struct philly_job *spare = memory_alloc(philly->count * sizeof(*spare));
	sort_by_time(philly->jobs, spare, philly->count);
	free(spare);
	return true;
}

void philly_free(struct philly *philly)
{
	free(philly->jobs);
	free(philly->clusters);
	arena_free(&philly->arena);
	*philly = (struct philly){ 0 };
}
