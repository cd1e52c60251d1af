/* logs_command.c - gpu-cli logs: what a job has written */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/command/logs.h"
#include "cli/commands.h"
#include "cli/job/job_watch.h"
#include "cli/text/quantity.h"
#include "json/member.h"

static const struct option options[] = {
	OPTION("--follow", "-f", NULL, "follow the output until the job finishes"),
	OPTION("--task", NULL, "N", "of this task (default: 0; with -f all)"),
	OPTION("--run", NULL, "N", "of an earlier run, from 1 ('gpu-cli get' lists them)"),
	OPTION("--tail", NULL, "N", "the last N lines alone"),
	OPTION("--bytes", NULL, "SIZE", "the last bytes alone: 64K"),
	OPTION("--stderr", NULL, NULL, "standard error, where the node keeps it apart"),
	{ 0 },
};

enum { ANSWER_MS = 60000 };

/* What comes is printed, or, for the last lines, kept. */
struct reader {
	struct buffer kept;
	bool keeps;
};

static void logs_take(void *context, const char *data, size_t size)
{
	struct reader *reader = context;
	if (reader->keeps)
		buffer_bytes(&reader->kept, data, size);
	else
		fwrite(data, 1, size, stdout);
}

/* Reads to the end. Output that comes slowly is fine, output that does not come is not. */
static bool logs_read_all(struct client_stream *stream, struct error *error)
{
	enum fetch_state state;
	while ((state = fetch_advance(stream->fetch, error)) == FETCH_RUNS && !ferror(stdout)) {
		int64_t since_ms = clock_unix_ms();
		fetch_wait(stream->fetch, ANSWER_MS);
		if (clock_unix_ms() - since_ms >= ANSWER_MS)
			return error_set(error, ERROR_UNAVAILABLE, "no output for %d s",
			                 ANSWER_MS / 1000);
	}
	return state != FETCH_FAILED;
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

int logs_show(struct session *session, const char *path, int64_t lines)
{
	struct error error = { 0 };
	struct reader reader = { .keeps = lines > 0 };
	struct client_stream stream = { .part = logs_take, .context = &reader };
	if (!client_stream_open(&stream, &session->client, path, &error))
		return session_fail(session, &error);
	bool good = logs_read_all(&stream, &error);
	if (good && stream.answer.status != 200) {
		client_refusal(&stream.answer, &session->client, &error);
		good = false;
	}
	if (good && lines > 0)
		print_last_lines(&reader.kept, lines);
	buffer_free(&reader.kept);
	client_stream_close(&stream);
	return good ? CLI_FINE : session_fail(session, &error);
}

struct wishes {
	int64_t task, run, lines, bytes;
};

static bool read_wishes(const struct arguments *arguments, struct wishes *wishes,
                        struct error *error)
{
	const char *task = arguments_value(arguments, "--task"),
		   *run = arguments_value(arguments, "--run"),
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
	if (run && arguments_has(arguments, "--follow"))
		return error_set(error, ERROR_INVALID,
		                 "--run shows one run, and --follow the last: give one of them");
	return (!run || quantity_integer("--run", run, 1, INT64_MAX, &wishes->run, error)) &&
	       (!task || quantity_integer("--task", task, 0, 4095, &wishes->task, error)) &&
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
	int64_t bytes = wishes->bytes > 0 ? wishes->bytes : wishes->lines * LOGS_LINE_BYTES;
	if (bytes > 0)
		buffer_print(&path, "&tail=%lld", (long long)bytes);
	if (wishes->run > 0)
		buffer_print(&path, "&run=%lld", (long long)wishes->run);
	if (arguments_has(arguments, "--stderr"))
		buffer_text(&path, "&stream=stderr");
	int status = logs_show(session, path.data, wishes->lines);
	buffer_free(&path);
	return status;
}

static int logs_run(const struct arguments *arguments)
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
		    "logs job-12 --task 3 --tail 20\n"
		    "logs job-12 --run 1\n",
	.options = options,
	.asks = true,
	.operand = COMPLETES_JOBS,
	.run = logs_run,
};
