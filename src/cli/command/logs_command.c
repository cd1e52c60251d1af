/* logs_command.c - gpu-cli logs: what a job has written */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/job/job_watch.h"
#include "cli/text/field.h"
#include "cli/text/quantity.h"

static const struct option options[] = {
	OPTION("--follow", "-f", NULL, "go on as it comes, until the job is over"),
	OPTION("--task", NULL, "N", "of this task (default: 0; with -f all)"),
	OPTION("--tail", NULL, "N", "the last N lines alone"),
	OPTION("--bytes", NULL, "SIZE", "the last bytes alone: 64K"),
	OPTION("--stderr", NULL, NULL, "standard error, where the node keeps it apart"),
	{ 0 },
};

enum { TAIL_LINE_BYTES = 1024, READ_BYTES = 64 << 10, ANSWER_MS = 60000 };

/* What comes is printed, or, for the last lines, kept. */
struct reader {
	struct http_answer answer;
	struct buffer kept;
	bool keeps;
};

static void take(void *context, const char *data, size_t size)
{
	struct reader *reader = context;
	if (reader->answer.status != 200)
		buffer_bytes(&reader->answer.body, data, size);
	else if (reader->keeps)
		buffer_bytes(&reader->kept, data, size);
	else
		fwrite(data, 1, size, stdout);
}

static bool read_all(struct connection *connection, struct reader *reader, struct error *error)
{
	static char data[READ_BYTES];
	while (!reader->answer.complete && !ferror(stdout)) {
		long got = connection_read(connection, data, sizeof(data), ANSWER_MS, error);
		if (got == CONNECTION_WAITS)
			return error_set(error, ERROR_UNAVAILABLE, "the output does not come");
		if (got == CONNECTION_FAILED)
			return false;
		if (got == CONNECTION_ENDED)
			return http_answer_end(&reader->answer, error);
		if (!http_answer_take(&reader->answer, data, (size_t)got, error))
			return false;
	}
	return true;
}

static void print_last_lines(const struct buffer *text, int64_t lines)
{
	size_t at = text->size;
	if (at > 0 && text->data[at - 1] == '\n')
		at--;
	while (at > 0 && lines > 0) {
		if (text->data[at - 1] == '\n' && --lines == 0)
			break;
		at--;
	}
	if (text->size > at)
		fwrite(text->data + at, 1, text->size - at, stdout);
}

static int show(struct session *session, const char *path, int64_t lines)
{
	struct error error = { 0 };
	struct reader reader = { .keeps = lines > 0 };
	struct connection *connection = client_start(
	    &session->client, &(struct client_request){ .method = "GET", .path = path }, &error);
	if (!connection)
		return session_fail(session, &error);
	http_answer_begin(&reader.answer);
	reader.answer.part = take;
	reader.answer.context = &reader;
	bool good = read_all(connection, &reader, &error);
	if (good && reader.answer.status != 200) {
		client_refusal(&reader.answer, &session->client, &error);
		good = false;
	}
	if (good && lines > 0)
		print_last_lines(&reader.kept, lines);
	buffer_free(&reader.kept);
	http_answer_free(&reader.answer);
	connection_close(connection);
	return good ? CLI_FINE : session_fail(session, &error);
}

struct wishes {
	int64_t task, lines, bytes;
};

static bool read_wishes(const struct arguments *arguments, struct wishes *wishes,
                        struct error *error)
{
	const char *task = arguments_value(arguments, "--task"),
		   *lines = arguments_value(arguments, "--tail"),
		   *bytes = arguments_value(arguments, "--bytes");
	int64_t mib;
	*wishes = (struct wishes){ .task = -1 };
	if (bytes && strpbrk(bytes, "kKmMgG")) {
		if (!quantity_memory("--bytes", bytes, &mib, error))
			return false;
		bool kib = strpbrk(bytes, "kK") != NULL;
		wishes->bytes = kib ? atoll(bytes) << 10 : mib << 20;
	} else if (bytes && !quantity_integer("--bytes", bytes, 1, INT64_C(1) << 40, &wishes->bytes,
	                                      error)) {
		return false;
	}
	return (!task || quantity_integer("--task", task, 0, 4095, &wishes->task, error)) &&
	       (!lines || quantity_integer("--tail", lines, 1, 1000000, &wishes->lines, error));
}

static int show_as_asked(struct session *session, const struct wishes *wishes)
{
	const struct arguments *arguments = session->arguments;
	const char *job = session_job(session, arguments->operands[0]);
	struct buffer path = { 0 };
	if (arguments_has(arguments, "--follow"))
		return job_watch(session, &(struct job_watch){ .job = job,
		                                               .output = true,
		                                               .quiet = true,
		                                               .any_end = true,
		                                               .task = wishes->task });
	buffer_text(&path, session_path(session, "/api/v1/jobs/%s/logs", job));
	buffer_print(&path, "?task=%lld", (long long)(wishes->task < 0 ? 0 : wishes->task));
	int64_t bytes = wishes->bytes > 0 ? wishes->bytes : wishes->lines * TAIL_LINE_BYTES;
	if (bytes > 0)
		buffer_print(&path, "&tail=%lld", (long long)bytes);
	if (arguments_has(arguments, "--stderr"))
		buffer_text(&path, "&stream=stderr");
	int status = show(session, path.data, wishes->lines);
	buffer_free(&path);
	return status;
}

static int run(const struct arguments *arguments)
{
	struct session session;
	struct wishes wishes;
	struct error error = { 0 };
	int status;
	if (arguments->operand_count != 1)
		return cli_misused(arguments->command, "which job? Give one id, such as job-12");
	if (!read_wishes(arguments, &wishes, &error))
		return cli_misused(arguments->command, "%s", error.text);
	if (!session_open(&session, arguments, &status))
		return status;
	status = show_as_asked(&session, &wishes);
	session_close(&session);
	return status;
}

const struct cli_command logs_command = {
	.name = "logs",
	.arguments = "JOB [OPTION...]",
	.summary = "what a job has written",
	.details = "With -f of a job that still waits, it waits too. The output of several tasks\n"
		   "has the task's number before each line.\n",
	.examples = "logs job-12\n"
		    "logs -f job-12\n"
		    "logs job-12 --task 3 --tail 20\n",
	.options = options,
	.asks = true,
	.operand = COMPLETES_JOBS,
	.run = run,
};
