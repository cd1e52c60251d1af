/* job_file.c - gpu-cli submit -f: the jobs of a file */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command/submit.h"
#include "cli/job/job_request.h"
#include "cli/text/yaml_read.h"

enum { FILE_MAX_BYTES = 16 << 20 };

static bool job_file_load(const char *path, struct buffer *text, struct error *error)
{
	char data[8192];
	bool is_input = strcmp(path, "-") == 0;
	FILE *file = is_input ? stdin : fopen(path, "re");
	size_t got;
	if (!file)
		return error_set(error, ERROR_INVALID, "cannot read %.120s: %s", path,
		                 strerror(errno));
	while ((got = fread(data, 1, sizeof(data), file)) > 0 && text->size <= FILE_MAX_BYTES)
		buffer_bytes(text, data, got);
	bool good = !ferror(file);
	int reason = errno;
	buffer_text(text, "");
	if (!is_input)
		fclose(file);
	if (!good)
		return error_set(error, ERROR_INVALID, "cannot read %.120s: %s", path,
		                 strerror(reason));
	return text->size <= FILE_MAX_BYTES ||
	       error_set(error, ERROR_INVALID, "%.120s has more than 16 MiB", path);
}

/* All jobs of the file; a document may be a list of them. NULL with the reason. */
static json_t *job_file_read(struct session *session, const char *path, struct error *error)
{
	struct buffer text = { 0 };
	size_t place, inner;
	json_t *document, *job;
	json_t *documents =
	    job_file_load(path, &text, error) ? yaml_read(path, text.data, text.size, error) : NULL;
	json_t *jobs = json_array();
	json_array_foreach(documents, place, document)
	{
		if (json_is_array(document))
			json_array_extend(jobs, document);
		else
			json_array_append(jobs, document);
	}
	bool good = documents != NULL;
	json_array_foreach(jobs, inner, job)
	{
		if (good && !json_is_object(job))
			good = error_set(error, ERROR_INVALID,
			                 "%.120s: a job must be fields with values, such as "
			                 "'command: [sleep, \"10\"]'",
			                 path);
		good = good && job_request_overlay(session, job, error);
	}
	if (good && json_array_size(jobs) == 0)
		good = error_set(error, ERROR_INVALID, "there is no job in %.120s", path);
	buffer_free(&text);
	json_decref(documents);
	if (good)
		return jobs;
	json_decref(jobs);
	return NULL;
}

/* Stops at the first that is refused: what comes after may build on it. */
static int send_all(struct session *session, const char *path, const json_t *jobs)
{
	size_t place;
	json_t *job;
	json_array_foreach(jobs, place, job)
	{
		int status = CLI_FINE;
		json_t *answer = submit_send(session, json_incref(job), &status);
		if (answer)
			submit_say(session, answer);
		json_decref(answer);
		if (status != CLI_FINE) {
			if (json_array_size(jobs) > 1)
				fprintf(stderr,
				        "%s: job %zu of %zu was refused; those before it are "
				        "submitted\n",
				        path, place + 1, json_array_size(jobs));
			return status;
		}
	}
	return CLI_FINE;
}

int job_file_submit(const struct arguments *arguments)
{
	const char *path = arguments_value(arguments, "--file");
	struct session session;
	struct error error = { 0 };
	int status;
	if (arguments->operand_count > 0 || arguments_value(arguments, "--script"))
		return cli_misused(arguments->command,
		                   "the file says what to run: give no command beside --file");
	if (arguments_has(arguments, "--follow") || arguments_has(arguments, "--wait"))
		return cli_misused(arguments->command,
		                   "--wait and --follow are for one job, and --file may have many");
	if (!session_open(&session, arguments, &status))
		return status;
	json_t *jobs = job_file_read(&session, path, &error);
	status = jobs ? send_all(&session, path, jobs)
	              : cli_misused(arguments->command, "%s", error.text);
	json_decref(jobs);
	session_close(&session);
	return status;
}
