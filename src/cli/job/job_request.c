/* job_request.c - the job that options ask for */
#include "cli/job/job_request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/calendar.h"
#include "base/clock.h"
#include "base/duration.h"
#include "cli/job/field_request.h"
#include "cli/text/quantity.h"

enum { SCRIPT_MAX_BYTES = 512 << 10, GPUS_MAX = 4096, BARE_LEAST_MIB = 256 };

static const char *value_of(const struct session *session, const char *name)
{
	return arguments_value(session->arguments, name);
}

/* Whole GPUs, or a part of one. */
static bool read_gpus(struct session *session, const struct resource_field *field, json_t *job,
                      struct error *error)
{
	const char *text = value_of(session, field->option.name);
	int64_t thousandths;
	if (!text)
		return true;
	if (!quantity_thousandths(field->option.name, text, (int64_t)GPUS_MAX * 1000, &thousandths,
	                          error))
		return false;
	if (thousandths % 1000 == 0) {
		json_object_set_new(job, field->name, json_integer(thousandths / 1000));
		return true;
	}
	if (thousandths > 1000)
		return error_set(error, ERROR_INVALID,
		                 "invalid --gpus '%.20s': expected a whole number, or less than 1 "
		                 "for a part of one GPU",
		                 text);
	field_request_decimal(job, "gpu_fraction", thousandths);
	return true;
}

/* 50% or 0.5. */
static bool read_share(struct session *session, const struct resource_field *field, json_t *job,
                       struct error *error)
{
	const char *text = value_of(session, field->option.name);
	size_t size = text ? strlen(text) : 0;
	bool percent = size > 1 && text[size - 1] == '%';
	int64_t thousandths;

	if (!text)
		return true;
	char *number = arena_alloc(&session->arena, size + 1);
	memcpy(number, text, size + 1);
	if (percent)
		number[size - 1] = '\0';
	if (!quantity_thousandths(field->option.name, number, percent ? 100 * 1000 : 1000,
	                          &thousandths, error))
		return false;
	if (percent && thousandths % 100 != 0)
		return error_set(error, ERROR_INVALID,
		                 "invalid %s '%.20s': expected a multiple of 0.1%%",
		                 field->option.name, text);
	field_request_decimal(job, field->name, percent ? thousandths / 100 : thousandths);
	return true;
}

/* A bare number is MiB. One that no program could start in was meant as something else. */
static bool is_meant(const char *text, int64_t mib, struct error *error)
{
	if (mib >= BARE_LEAST_MIB || strspn(text, "0123456789") != strlen(text))
		return true;
	return error_set(error, ERROR_INVALID,
	                 "--gpu-memory is '%s', which is %s MiB: write %sG or %sM", text, text,
	                 text, text);
}

/* One size, or with commas one for each GPU. */
static bool read_gpu_memory(struct session *session, const struct resource_field *field,
                            json_t *job, struct error *error)
{
	const char *text = value_of(session, field->option.name);
	int64_t mib;
	if (!text)
		return true;
	json_t *sizes = json_array();
	char *copy = memory_text(text), *rest = copy, *part;
	bool good = true;
	while (good && (part = strsep(&rest, ",")) != NULL) {
		good = quantity_memory(field->option.name, part, &mib, error) &&
		       is_meant(part, mib, error);
		if (good)
			json_array_append_new(sizes, json_integer(mib));
	}
	free(copy);
	if (good && json_array_size(sizes) == 1)
		json_object_set(job, field->name, json_array_get(sizes, 0));
	else if (good)
		json_object_set(job, field->name, sizes);
	json_decref(sizes);
	return good;
}

static bool read_priority(struct session *session, const struct resource_field *field, json_t *job,
                          struct error *error)
{
	static const struct {
		const char *word;
		int64_t priority;
	} words[] = { { "low", 100 },     { "normal", 500 }, { "high", 1000 },
		      { "urgent", 2500 }, { "medium", 500 }, { "critical", 5000 } };
	const char *text = value_of(session, field->option.name);
	int64_t number;
	if (!text)
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(text, words[i].word) == 0) {
			json_object_set_new(job, field->name, json_integer(words[i].priority));
			return true;
		}
	if (strspn(text, "-0123456789") != strlen(text))
		return error_set(
		    error, ERROR_INVALID,
		    "invalid --priority '%.40s': expected low, normal, high, urgent, critical "
		    "or a whole number",
		    text);
	if (!quantity_integer(field->option.name, text, field->least, field->most, &number, error))
		return false;
	json_object_set_new(job, field->name, json_integer(number));
	return true;
}

static bool read_variables(struct session *session, const struct resource_field *field, json_t *job,
                           struct error *error)
{
	return field_request_pairs(session, field, true, job, error);
}

/* Takes ":word" off the end. */
static bool take_suffix(char *text, const char *suffix)
{
	size_t size = strlen(text), length = strlen(suffix);
	if (size <= length || strcmp(text + size - length, suffix) != 0)
		return false;
	text[size - length] = '\0';
	return true;
}

/* JOB, JOB:any, JOB:array or JOB:array:any; several with commas. */
static bool read_after(struct session *session, const struct resource_field *field, json_t *job,
                       struct error *error)
{
	json_t *list = NULL;
	size_t at = 0;
	const char *given;
	while ((given = arguments_next(session->arguments, field->option.name, &at)) != NULL) {
		char *copy = memory_text(given), *rest = copy, *part;
		while ((part = strsep(&rest, ",")) != NULL) {
			bool any = take_suffix(part, ":any"), array = take_suffix(part, ":array");
			take_suffix(part, ":success");
			if (strchr(part, ':')) {
				error_set(
				    error, ERROR_INVALID,
				    "invalid --after '%.80s': expected JOB, JOB:any, JOB:array "
				    "or JOB:array:any",
				    given);
				free(copy);
				json_decref(list);
				return false;
			}
			if (!list)
				list = json_array();
			json_array_append_new(
			    list,
			    json_pack("{s:s, s:s}", array ? "array" : "job",
			              arena_string(&session->arena, session_job(session, part)),
			              "condition", any ? "any" : "success"));
		}
		free(copy);
	}
	if (list)
		json_object_set_new(job, field->name, list);
	return true;
}

static bool read_script(const char *path, struct buffer *text, struct error *error)
{
	char data[8192];
	bool is_input = strcmp(path, "-") == 0;
	FILE *file = is_input ? stdin : fopen(path, "re");
	size_t got;
	if (!file)
		return error_set(error, ERROR_INVALID, "cannot read the script %.120s: %s", path,
		                 strerror(errno));
	while ((got = fread(data, 1, sizeof(data), file)) > 0 && text->size <= SCRIPT_MAX_BYTES)
		buffer_bytes(text, data, got);
	bool good = !ferror(file);
	int reason = errno;
	buffer_text(text, "");
	if (!is_input)
		fclose(file);
	if (!good)
		return error_set(error, ERROR_INVALID, "cannot read the script %.120s: %s", path,
		                 strerror(reason));
	if (text->size > SCRIPT_MAX_BYTES)
		return error_set(error, ERROR_INVALID, "the script %.120s has more than 512 KiB",
		                 path);
	if (strlen(text->data) != text->size)
		return error_set(error, ERROR_INVALID,
		                 "%.120s is not a script: there is a NUL in it", path);
	return true;
}

/* A script gets the operands as its arguments; otherwise they are the command. */
static bool set_work(const struct session *session, json_t *job, struct error *error)
{
	const struct arguments *arguments = session->arguments;
	const char *script = value_of(session, "--script");
	json_t *words = json_array();
	for (size_t i = 0; i < arguments->operand_count; i++)
		json_array_append_new(words, json_string(arguments->operands[i]));
	bool has_words = json_array_size(words) > 0;
	bool good = true;
	if (script) {
		struct buffer text = { 0 };
		good = read_script(script, &text, error);
		json_t *value = good ? json_string(text.data) : NULL;
		if (good && !value)
			good = error_set(error, ERROR_INVALID, "the script %.120s is not UTF-8",
			                 script);
		if (good)
			json_object_set_new(job, "script", value);
		if (good && has_words)
			json_object_set(job, "args", words);
		buffer_free(&text);
	} else if (has_words && !*arguments->operands[0]) {
		good = error_set(error, ERROR_INVALID, "the command is empty");
	} else if (has_words) {
		json_object_set(job, "command", words);
	} else if (!value_of(session, "--image")) {
		good = error_set(error, ERROR_INVALID,
		                 "no command given: put it after --, or give --script FILE");
	}
	json_decref(words);
	return good;
}

/* What people will know it by: as said, or after what it runs. */
static void set_name(const struct session *session, json_t *job)
{
	const struct arguments *arguments = session->arguments;
	const char *name = value_of(session, "--name"), *script = value_of(session, "--script");
	if (!name && script && strcmp(script, "-") != 0)
		name = script;
	if (!name && arguments->operand_count > 0)
		name = arguments->operands[0];
	if (!name)
		name = value_of(session, "--image");
	const char *slash = name && !value_of(session, "--name") ? strrchr(name, '/') : NULL;
	json_object_set_new(job, "name",
	                    json_string(slash && slash[1] ? slash + 1
	                                : name            ? name
	                                                  : "job"));
}

/* With --workdir or an image it says where the job comes from, no more. */
static void set_directory(json_t *job)
{
	char path[4096];
	if (!getcwd(path, sizeof(path)) || path[0] != '/')
		return;
	json_t *text = json_string(path); /* NULL: it is not UTF-8 */
	if (text)
		json_object_set_new(job, "submit_directory", text);
}

/* Fields whose options say more than their kind does. */
static const struct special_field special_fields[] = {
	{ "name", NULL },
	{ "script", NULL },
	{ "gpu_count", read_gpus },
	{ "gpu_memory_mb", read_gpu_memory },
	{ "gpu_compute", read_share },
	{ "priority", read_priority },
	{ "environment", read_variables },
	{ "secret_environment", read_variables },
	{ "depends_on", read_after },
	{ "begin", field_request_moment },
	{ "deadline", field_request_moment },
	{ NULL, NULL },
};

bool job_request_overlay(struct session *session, json_t *job, struct error *error)
{
	const struct arguments *arguments = session->arguments;
	if (value_of(session, "--name"))
		json_object_set_new(job, "name", json_string(value_of(session, "--name")));
	if ((arguments->operand_count > 0 && arguments->command->runs) ||
	    value_of(session, "--script")) {
		json_object_del(job, "command");
		json_object_del(job, "args");
		json_object_del(job, "script");
		if (!set_work(session, job, error))
			return false;
	}
	return field_request(session, &job_resource, special_fields, job, error);
}

json_t *job_request(struct session *session, struct error *error)
{
	json_t *job = json_object();
	if (set_work(session, job, error)) {
		set_name(session, job);
		set_directory(job);
		if (field_request(session, &job_resource, special_fields, job, error))
			return job;
	}
	json_decref(job);
	return NULL;
}
