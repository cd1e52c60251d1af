/* job_choice.c - the jobs that options choose */
#include "cli/job/job_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/text/quantity.h"
#include "json/member.h"

#define EVERY_JOB ((size_t)10000000)

const struct option job_choice_options[] = {
	OPTION("--name", "-n", "NAME", "all of this name that have not finished"),
	OPTION("--label", "-l", "NAME=VALUE", "all with this label"),
	OPTION("--mine", NULL, NULL, "all that you submitted"),
	OPTION("--user", NULL, "USER", "all that USER submitted"),
	OPTION("--array", NULL, "JOB", "all of the array that JOB belongs to",
	       .completes = COMPLETES_JOBS),
	OPTION("--state", "-s", "STATE,...", "all in one of these states",
	       .completes = COMPLETES_WORDS, .words = "pending scheduled running preempted"),
	{ 0 },
};

bool job_choice_is_made(const struct arguments *arguments)
{
	for (const struct option *option = job_choice_options; option->name; option++)
		if (arguments_has(arguments, option->name))
			return true;
	return false;
}

static void add_query(struct buffer *query, const char *key, const char *value)
{
	if (!value)
		return;
	buffer_print(query, "%s%s=", query->size > 0 ? "&" : "", key);
	client_escape(query, value);
}

/* What the service cannot choose by. */
struct sieve {
	const char *name; /* whole; NULL: any */
	const char *array_id;
	const char *user; /* the service chooses by it too, where it is recent enough */
	int64_t since_ms;
};

static bool passes(const struct sieve *sieve, const json_t *job)
{
	if (sieve->name && strcmp(member_text(job, "name"), sieve->name) != 0)
		return false;
	if (sieve->array_id && strcmp(member_text(job, "array_id"), sieve->array_id) != 0)
		return false;
	if (sieve->user && strcmp(member_text(job, "user"), sieve->user) != 0)
		return false;
	return member_moment(job, "submitted_at") >= sieve->since_ms;
}

/* The first job of the array that a job belongs to. */
static bool find_array(struct session *session, const char *id, struct sieve *sieve,
                       struct error *error)
{
	json_t *job = session_get(
	    session, session_path(session, "/api/v1/jobs/%s", session_job(session, id)), error);
	if (!job)
		return false;
	sieve->array_id = arena_string(&session->arena, member_text(job, "array_id"));
	json_decref(job);
	return *sieve->array_id ||
	       error_set(error, ERROR_INVALID, "%.40s is not part of an array", id);
}

bool job_choice_user(struct session *session, const char **user, struct error *error)
{
	bool mine = arguments_has(session->arguments, "--mine");
	*user = arguments_value(session->arguments, "--user");
	if (mine && *user)
		return error_set(error, ERROR_INVALID, "give --mine or --user, not both");
	if (mine)
		*user = session_user(session, error);
	return !mine || *user;
}

static bool read_sieve(struct session *session, bool exact, struct sieve *sieve,
                       struct error *error)
{
	const struct arguments *arguments = session->arguments;
	const char *since = arguments_value(arguments, "--since"),
		   *array = arguments_value(arguments, "--array");
	*sieve = (struct sieve){ .name = exact ? arguments_value(arguments, "--name") : NULL,
		                 .since_ms = INT64_MIN };
	if (since && !quantity_since("--since", since, &sieve->since_ms, error))
		return false;
	if (!job_choice_user(session, &sieve->user, error))
		return false;
	return !array || find_array(session, array, sieve, error);
}

/* Those in one state; NULL: in any. */
static bool list_state(struct session *session, const char *state, const struct sieve *sieve,
                       size_t most, json_t *to, struct error *error)
{
	const struct arguments *arguments = session->arguments;
	struct buffer query = { 0 };
	size_t place;
	json_t *job;
	buffer_text(&query, "");
	add_query(&query, "state", state);
	add_query(&query, "name", arguments_value(arguments, "--name"));
	add_query(&query, "label", arguments_value(arguments, "--label"));
	add_query(&query, "sort", arguments_value(arguments, "--sort"));
	add_query(&query, "tenant_id", session->only);
	add_query(&query, "user", sieve->user);
	bool sifts = sieve->name || sieve->array_id ||
	             (sieve->since_ms != INT64_MIN && arguments_value(arguments, "--sort"));
	json_t *jobs = session_list(session, "/api/v1/jobs", query.data, "jobs",
	                            sifts ? EVERY_JOB : most, error);
	buffer_free(&query);
	json_array_foreach(jobs, place, job)
	{
		if (passes(sieve, job))
			json_array_append(to, job);
	}
	json_decref(jobs);
	return jobs != NULL;
}

static long long number_of(const json_t *job)
{
	return atoll(member_text(job, "id") + strlen("job-"));
}

static int newest_first(const void *a, const void *b)
{
	long long x = number_of(*(json_t *const *)a), y = number_of(*(json_t *const *)b);
	return x > y ? -1 : x < y;
}

/* Several states come one after the other. */
static json_t *merge(json_t *jobs, size_t most, bool sorts)
{
	size_t count = json_array_size(jobs);
	json_t **at = memory_alloc((count + 1) * sizeof(json_t *)), *merged = json_array();
	for (size_t i = 0; i < count; i++)
		at[i] = json_array_get(jobs, i);
	if (sorts)
		qsort(at, count, sizeof(*at), newest_first);
	for (size_t i = 0; i < count && i < most; i++)
		json_array_append(merged, at[i]);
	free(at);
	json_decref(jobs);
	return merged;
}

json_t *job_choice_list(struct session *session, const char *states, bool exact, size_t most,
                        struct error *error)
{
	const struct arguments *arguments = session->arguments;
	const char *given = arguments_value(arguments, "--state");
	char *copy = memory_text(given ? given : states ? states : ""), *rest = copy, *state;
	struct sieve sieve;
	json_t *jobs = json_array();
	bool several = strchr(copy, ',') != NULL;
	bool good = read_sieve(session, exact, &sieve, error);
	while (good && (state = strsep(&rest, ",")) != NULL)
		good = list_state(session, *state ? state : NULL, &sieve, most, jobs, error);
	free(copy);
	if (good)
		return merge(jobs, most, several && !arguments_value(arguments, "--sort"));
	json_decref(jobs);
	return NULL;
}
