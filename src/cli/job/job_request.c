/* job_request.c - the job that options ask for */
#include "cli/job/job_request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/text/quantity.h"

enum { SCRIPT_MAX_BYTES = 512 << 10, GPUS_MAX = 4096, TASKS_MAX = 4096, BARE_LEAST_MIB = 256 };

static const char *value_of(const struct session *session, const char *name)
{
	return arguments_value(session->arguments, name);
}

static bool set_integer(const struct session *session, json_t *job, const char *option,
                        const char *key, int64_t least, int64_t most, struct error *error)
{
	const char *text = value_of(session, option);
	int64_t number;
	if (!text)
		return true;
	if (!quantity_integer(option, text, least, most, &number, error))
		return false;
	json_object_set_new(job, key, json_integer(number));
	return true;
}

static void set_text(const struct session *session, json_t *job, const char *option,
                     const char *key)
{
	const char *text = value_of(session, option);
	if (text)
		json_object_set_new(job, key, json_string(text));
}

static void set_decimal(json_t *job, const char *key, int64_t thousandths)
{
	json_object_set_new(job, key,
	                    thousandths % 1000 == 0 ? json_integer(thousandths / 1000)
	                                            : json_real((double)thousandths / 1000));
}

/* Whole GPUs, or a part of one. */
static bool set_gpus(const struct session *session, json_t *job, struct error *error)
{
	const char *text = value_of(session, "--gpus");
	int64_t thousandths;
	if (!text)
		return true;
	if (!quantity_thousandths("--gpus", text, (int64_t)GPUS_MAX * 1000, &thousandths, error))
		return false;
	if (thousandths % 1000 == 0) {
		json_object_set_new(job, "gpu_count", json_integer(thousandths / 1000));
		return true;
	}
	if (thousandths > 1000)
		return error_set(error, ERROR_INVALID,
		                 "--gpus is '%.20s', and should be a whole number, or less than 1 "
		                 "for a part of one GPU",
		                 text);
	set_decimal(job, "gpu_fraction", thousandths);
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
static bool set_gpu_memory(const struct session *session, json_t *job, struct error *error)
{
	const char *text = value_of(session, "--gpu-memory");
	int64_t mib;
	if (!text)
		return true;
	json_t *sizes = json_array();
	char *copy = memory_text(text), *rest = copy, *part;
	bool good = true;
	while (good && (part = strsep(&rest, ",")) != NULL) {
		good = quantity_memory("--gpu-memory", part, &mib, error) &&
		       is_meant(part, mib, error);
		if (good)
			json_array_append_new(sizes, json_integer(mib));
	}
	free(copy);
	if (good && json_array_size(sizes) == 1)
		json_object_set(job, "gpu_memory_mb", json_array_get(sizes, 0));
	else if (good)
		json_object_set(job, "gpu_memory_mb", sizes);
	json_decref(sizes);
	return good;
}

static bool set_priority(const struct session *session, json_t *job, struct error *error)
{
	static const struct {
		const char *word;
		int64_t priority;
	} words[] = { { "low", 100 }, { "normal", 500 }, { "high", 1000 }, { "urgent", 2500 } };
	const char *text = value_of(session, "--priority");
	for (size_t i = 0; text && i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(text, words[i].word) == 0) {
			json_object_set_new(job, "priority", json_integer(words[i].priority));
			return true;
		}
	if (text && strspn(text, "-0123456789") != strlen(text))
		return error_set(error, ERROR_INVALID,
		                 "--priority is '%.40s', and should be low, normal, high, urgent "
		                 "or a whole number",
		                 text);
	return set_integer(session, job, "--priority", "priority", INT32_MIN, INT32_MAX, error);
}

static bool set_host(const struct session *session, json_t *job, struct error *error)
{
	const char *cpus = value_of(session, "--cpus"), *memory = value_of(session, "--memory");
	int64_t number;
	if (cpus) {
		if (!quantity_thousandths("--cpus", cpus, INT64_C(1000000) * 1000, &number, error))
			return false;
		set_decimal(job, "cpu_cores", number);
	}
	if (memory) {
		if (!quantity_memory("--memory", memory, &number, error))
			return false;
		json_object_set_new(job, "memory_mb", json_integer(number));
	}
	return true;
}

static bool set_runtime(const struct session *session, json_t *job, struct error *error)
{
	const char *text = value_of(session, "--max-runtime");
	int64_t ms;
	if (!text)
		return true;
	if (!quantity_duration("--max-runtime", text, &ms, error))
		return false;
	char duration[40];
	snprintf(duration, sizeof(duration), "%lldms", (long long)ms);
	if (ms % 1000 == 0)
		snprintf(duration, sizeof(duration), "%llds", (long long)(ms / 1000));
	json_object_set_new(job, "max_runtime", json_string(duration));
	return true;
}

/* NAME=VALUE, as often as given; of a variable, NAME alone takes ours. */
static bool set_pairs(const struct session *session, json_t *job, const char *option,
                      const char *key, bool is_variable, struct error *error)
{
	json_t *pairs = NULL;
	size_t at = 0;
	const char *pair;
	while ((pair = arguments_next(session->arguments, option, &at)) != NULL) {
		const char *equals = strchr(pair, '=');
		const char *value = equals ? equals + 1 : is_variable ? getenv(pair) : NULL;
		size_t size = equals ? (size_t)(equals - pair) : strlen(pair);
		if (size == 0 || !value) {
			json_decref(pairs);
			return error_set(
			    error, ERROR_INVALID,
			    !equals && is_variable
				? "%s is '%.80s', which is not set here: write NAME=VALUE"
				: "%s is '%.80s', and should be NAME=VALUE",
			    option, pair);
		}
		if (!pairs)
			pairs = json_object();
		char *name = memory_alloc(size + 1);
		memcpy(name, pair, size);
		name[size] = '\0';
		json_object_set_new(pairs, name, json_string(value));
		free(name);
	}
	if (pairs)
		json_object_set_new(job, key, pairs);
	return true;
}

/* JOB, or JOB:any; several with commas. */
static void set_after(struct session *session, json_t *job)
{
	json_t *list = NULL;
	size_t at = 0;
	const char *given;
	while ((given = arguments_next(session->arguments, "--after", &at)) != NULL) {
		char *copy = memory_text(given), *rest = copy, *part;
		while ((part = strsep(&rest, ",")) != NULL) {
			char *condition = strchr(part, ':');
			if (condition)
				*condition++ = '\0';
			if (!list)
				list = json_array();
			json_array_append_new(
			    list,
			    json_pack("{s:s, s:s}", "job",
			              arena_string(&session->arena, session_job(session, part)),
			              "condition", condition ? condition : "success"));
		}
		free(copy);
	}
	if (list)
		json_object_set_new(job, "depends_on", list);
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
	} else if (has_words) {
		json_object_set(job, "command", words);
	} else if (!value_of(session, "--image")) {
		good = error_set(error, ERROR_INVALID,
		                 "what is it to run? Give a command behind --, or --script FILE");
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

static bool set_preemptible(const struct session *session, json_t *job, struct error *error)
{
	bool yes = arguments_has(session->arguments, "--preemptible");
	bool no = arguments_has(session->arguments, "--no-preemptible");
	if (yes && no)
		return error_set(error, ERROR_INVALID,
		                 "--preemptible and --no-preemptible cannot both be meant");
	if (yes || no)
		json_object_set_new(job, "preemptible", json_boolean(yes));
	return true;
}

static void set_flags(const struct session *session, json_t *job)
{
	static const struct {
		const char *option, *key;
	} flags[] = { { "--hold", "hold" },
		      { "--check", "check" },
		      { "--gang", "gang_scheduling" },
		      { "--checkpoint", "checkpoint_enabled" } };
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (arguments_has(session->arguments, flags[i].option))
			json_object_set_new(job, flags[i].key, json_true());
}

static bool fill(struct session *session, json_t *job, struct error *error)
{
	if (!set_work(session, job, error))
		return false;
	set_name(session, job);
	set_text(session, job, "--image", "image");
	set_text(session, job, "--array", "array");
	set_text(session, job, "--workdir", "working_directory");
	set_text(session, job, "--checkpoint-path", "checkpoint_path");
	set_text(session, job, "--gpu-model", "gpu_model");
	set_text(session, job, "--deadline", "deadline");
	set_text(session, job, "--close", "closeness");
	set_text(session, job, "--on-lease-loss", "on_lease_loss");
	set_text(session, job, "--idempotency-key", "idempotency_key");
	set_flags(session, job);
	set_after(session, job);
	return set_gpus(session, job, error) && set_gpu_memory(session, job, error) &&
	       set_priority(session, job, error) && set_host(session, job, error) &&
	       set_runtime(session, job, error) && set_preemptible(session, job, error) &&
	       set_integer(session, job, "--tasks", "tasks", 1, TASKS_MAX, error) &&
	       set_integer(session, job, "--min-available", "min_available", 1, TASKS_MAX, error) &&
	       set_pairs(session, job, "--env", "environment", true, error) &&
	       set_pairs(session, job, "--secret-env", "secret_environment", true, error) &&
	       set_pairs(session, job, "--label", "labels", false, error) &&
	       set_pairs(session, job, "--node-label", "node_labels", false, error);
}

json_t *job_request(struct session *session, struct error *error)
{
	json_t *job = json_object();
	if (fill(session, job, error))
		return job;
	json_decref(job);
	return NULL;
}
