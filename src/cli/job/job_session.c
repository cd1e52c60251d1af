/* job_session.c - interactive sessions as commands use them */
#include "cli/job/job_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/job/job_terminal.h"
#include "cli/job/job_watch.h"
#include "json/member.h"

enum { START_MS = 60000, AGAIN_US = 50000 };
#define MAIN_SESSION "main"

/* What a program asks of the terminal that it runs in. */
static void add_variables(json_t *environment)
{
	static const char *const names[] = { "TERM", "COLORTERM", "LANG", "LC_ALL" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = getenv(names[i]);
		if (value && *value && strlen(value) < 128 &&
		    !json_object_get(environment, names[i]))
			json_object_set_new(environment, names[i], json_string(value));
	}
	if (!json_object_get(environment, "TERM"))
		json_object_set_new(environment, "TERM", json_string("xterm"));
}

/* Stays with the session, and tells how it ended. */
static int stay_with(struct session *session, const struct job_terminal *wanted)
{
	struct error error = { 0 };
	int code;

	switch (job_terminal_run(session, wanted, &code, &error)) {
	case TERMINAL_EXITED:
		return code;
	case TERMINAL_DETACHED:
		if (code == 0 && strcmp(wanted->id, MAIN_SESSION) == 0)
			fprintf(stderr, "detached: 'gpu-cli attach %s' returns to it\n",
			        wanted->job);
		else if (code == 0)
			fprintf(stderr,
			        "detached: 'gpu-cli attach %s --task %lld --session %s' returns to "
			        "it\n",
			        wanted->job, (long long)wanted->task, wanted->id);
		return code;
	default:
		return session_fail(session, &error);
	}
}

static json_t *open_request(const struct job_command *command)
{
	json_t *request = json_object(), *words = json_array();
	int columns, rows;

	for (size_t i = 0; i < command->word_count; i++)
		json_array_append_new(words, json_string(command->words[i]));
	json_object_set_new(request, "command", words);
	json_object_set_new(request, "task", json_integer(command->task));
	json_object_set_new(request, "terminal", json_boolean(command->terminal));
	if (!command->terminal)
		return request;
	job_terminal_size(&columns, &rows);
	json_t *environment = json_object();
	add_variables(environment);
	json_object_set_new(request, "columns", json_integer(columns));
	json_object_set_new(request, "rows", json_integer(rows));
	json_object_set_new(request, "environment", environment);
	return request;
}

int job_session_run(struct session *session, const struct job_command *command)
{
	struct error error = { 0 };
	json_t *answer = session_ask(
	    session, "POST", session_path(session, "/api/v1/jobs/%s/sessions", command->job),
	    open_request(command), &error);

	if (!answer)
		return session_fail(session, &error);
	int status =
	    stay_with(session, &(struct job_terminal){ .job = command->job,
	                                               .id = member_text(answer, "session_id"),
	                                               .task = command->task,
	                                               .input = command->input,
	                                               .terminal = command->terminal,
	                                               .opened = true });
	json_decref(answer);
	return status;
}

int job_session_attach(struct session *session, const char *job, int64_t task, const char *id,
                       bool input)
{
	return stay_with(session, &(struct job_terminal){ .job = job,
	                                                  .id = id ? id : MAIN_SESSION,
	                                                  .task = task,
	                                                  .input = input,
	                                                  .terminal = true });
}

void job_session_ask_terminal(json_t *job)
{
	json_t *environment = json_object_get(job, "environment");

	json_object_set_new(job, "standard_input", json_string("terminal"));
	if (!environment) {
		environment = json_object();
		json_object_set_new(job, "environment", environment);
	}
	if (json_is_object(environment))
		add_variables(environment);
}

/* The keeper of a task that has only just begun may not listen yet: then the reason is a conflict.
 */
static bool attach_soon(struct session *session, const char *job, int *status)
{
	const struct job_terminal wanted = {
		.job = job, .id = MAIN_SESSION, .input = true, .terminal = true, .opened = true
	};
	int64_t end_ms = clock_steady_ms() + START_MS;
	struct error error = { 0 };
	enum terminal_end end;

	while ((end = job_terminal_run(session, &wanted, status, &error)) == TERMINAL_LOST &&
	       error.code == ERROR_CONFLICT && clock_steady_ms() < end_ms) {
		json_t *shown =
		    session_get(session, session_path(session, "/api/v1/jobs/%s", job), &error);
		bool over = !shown || job_is_over(member_text(shown, "state"));
		json_decref(shown);
		if (over)
			return false;
		error_clear(&error);
		usleep(AGAIN_US);
	}
	if (end == TERMINAL_DETACHED)
		fprintf(stderr, "detached: 'gpu-cli attach %s' returns to it\n", job);
	else if (end == TERMINAL_LOST && error.code == ERROR_UNAVAILABLE)
		*status = session_fail(session, &error);
	else
		return false;
	return true;
}

int job_session_stay(struct session *session, const char *job, bool quiet)
{
	struct job_watch watch = {
		.job = job, .cancels = true, .quiet = quiet, .task = -1, .until_running = true
	};
	int status = job_watch(session, &watch);

	if (status != CLI_FINE)
		return status;
	/* How it ended is the job's to say: a time limit is not the code of the shell. */
	if (attach_soon(session, job, &status))
		return status;
	watch.until_running = false;
	watch.quiet = true;
	return job_watch(session, &watch);
}
