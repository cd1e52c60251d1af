/* models_case.c - reads a case of models.json */
#include "sim/scenario/models_case.h"

#include <stdio.h>
#include <string.h>

#define RUNNERS_MAX INT64_C(1000)
#define STEPS_MAX INT64_C(10000)
#define REQUESTS_MAX INT64_C(1000000)
#define SECOND_MS INT64_C(1000)
#define MINUTE_MS (60 * SECOND_MS)
#define MINUTES_MAX INT64_C(1000000)
#define PRIORITY_MAX INT64_C(1000000)

/* What a step may have beside `do` and checks. */
static const struct step_type {
	const char *name, *keys;
} step_types[STEP_KINDS] = {
	[STEP_REQUEST] = { "request", "model memory_gib expect gpu_count per_gpu_gib evicted "
	                              "preempted runner replica gpus gpu concurrency leave "
	                              "confirm_release" },
	[STEP_BUSY] = { "busy", "model" },
	[STEP_FINISH] = { "finish", "model" },
	[STEP_IDLE] = { "idle_past_ttl", "model for_minutes" },
	[STEP_DISPATCH] = { "dispatch", "model tenant hold fail expect lease_seconds evicted" },
	[STEP_RELEASE] = { "release", "model" },
	[STEP_PREWARM] = { "prewarm", "models" },
	[STEP_FOREIGN] = { "foreign_memory", "runner gpu gib" },
	[STEP_ORPHAN] = { "orphan_on_runner", "model memory_gib runner gpu gpus" },
	[STEP_CONFIRM] = { "confirm_release", "model" },
	[STEP_RESTART] = { "restart_scheduler", "" },
	[STEP_SETTLE] = { "settle", "" },
	[STEP_CHECK] = { "check", "" },
	[STEP_MODEL] = { "model", "model memory_gib concurrency tenant priority min_replicas "
	                          "max_replicas prewarm pinned uneven gpu_counts users shared "
	                          "idle_ttl_seconds load_timeout_seconds" },
	[STEP_REMOVE] = { "remove_model", "model" },
	[STEP_TENANT] = { "tenant", "tenant quota_gpus limit_gpus can_preempt" },
	[STEP_SUBMIT] = { "submit",
	                  "job tenant gpus memory_gib priority preemptible expect evicted "
	                  "preempted confirm_release" },
	[STEP_END] = { "end", "job" },
	[STEP_WAIT] = { "wait", "seconds confirm_release" },
	[STEP_LOADS] = { "loads", "model answer" },
	[STEP_READY] = { "ready", "model" },
	[STEP_DIE] = { "die", "model" },
	[STEP_VANISH] = { "vanish", "model" },
	[STEP_CLIENT_GONE] = { "client_gone", "model" },
	[STEP_SILENT] = { "silent", "runner state" },
	[STEP_RETURN] = { "return", "runner empty" },
};
static const char check_keys[] =
    "no_gpu_over_capacity total_gib ledger_gib_sorted distinct_gpus placed gone min_slots "
    "active_requests memory_accounted ledger_same_as_before_restart slots waiting_requests jobs "
    "parts_gib failures says";

static const struct words expectation_words =
    WORDS("anything", "placed", "waiting", "unschedulable", "served", "queued", "served_or_queued",
          "failed", "running");
static const struct words answer_words = WORDS("ready", "starting", "fail");
static const struct words lost_words = WORDS("online", "unknown", "lost", "dead");
static const struct words job_words = WORDS("waiting", "running", "ended");
static const struct words policy_case_words = WORDS("spread", "pack");

const char *step_word(enum step_kind kind)
{
	return step_types[kind].name;
}

const char *expectation_word(enum expectation expectation)
{
	return word_of(&expectation_words, expectation);
}

bool alone_model(const char *key, char *name, size_t size)
{
	size_t length = strlen(key), suffix = strlen(ALONE_SUFFIX);
	if (length <= suffix || strcmp(key + length - suffix, ALONE_SUFFIX) != 0)
		return false;
	if (name)
		snprintf(name, size, "%.*s", (int)(length - suffix), key);
	return true;
}

static enum step_kind read_kind(struct json_reader *reader)
{
	const char *name = json_need_string(reader, "do");
	for (int i = 0; i < STEP_KINDS; i++) {
		if (strcmp(name, step_types[i].name) == 0)
			return (enum step_kind)i;
	}
	json_fail(reader, "do", "is '%s', which is not a step", name);
	return STEP_SETTLE;
}

static void refuse_unknown_keys(struct json_reader *reader, json_t *json, enum step_kind kind)
{
	const char *key;
	json_t *value;
	json_object_foreach(json, key, value)
	{
		if (strcmp(key, "do") != 0 && !read_is_listed(key, step_types[kind].keys) &&
		    !read_is_listed(key, check_keys) && !alone_model(key, NULL, 0))
			json_fail(reader, key, "is not a field of %s", step_types[kind].name);
	}
}

/* A list of texts, or of numbers. */
static void check_list(struct json_reader *reader, const char *name, bool of_texts)
{
	const json_t *list = json_get_array(reader, name, SIZE_MAX);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *value = json_array_get(list, i);
		if (of_texts && !json_is_string(value))
			json_fail(reader, name, "must be an array of strings");
		else if (!of_texts)
			read_gib_value(reader, value, name, ROUND_UP);
	}
}

/* An object with a whole number, not below 0, for each name. */
static void check_counts(struct json_reader *reader, const char *name)
{
	const char *key;
	json_t *value;
	json_t *counts = (json_t *)json_get_object(reader, name);
	json_object_foreach(counts, key, value)
	{
		if (!json_is_integer(value) || json_integer_value(value) < 0)
			json_fail(reader, name, "must have a whole number from 0 for %s", key);
	}
}

static void check_object_of(struct json_reader *reader, const char *name, json_type type,
                            const char *what)
{
	const char *key;
	json_t *value;
	json_t *object = (json_t *)json_get_object(reader, name);
	json_object_foreach(object, key, value)
	{
		if (json_typeof(value) != type)
			json_fail(reader, name, "must have %s for %s", what, key);
	}
}

static void check_jobs(struct json_reader *reader)
{
	const char *key;
	json_t *value;
	json_t *jobs = (json_t *)json_get_object(reader, "jobs");
	json_object_foreach(jobs, key, value)
	{
		bool known = false;
		for (int i = 0; i < job_words.count && json_is_string(value); i++)
			known = known || strcmp(json_string_value(value), job_words.at[i]) == 0;
		if (!known)
			json_fail(reader, "jobs", "must have waiting, running or ended for %s",
			          key);
	}
}

/* What must be true after a step: only whether it is well formed. */
static void check_checks(struct json_reader *reader, json_t *json)
{
	const char *key;
	json_t *value;
	json_object_foreach(json, key, value)
	{
		if (alone_model(key, NULL, 0))
			json_get_flag(reader, key, true);
	}
	json_get_flag(reader, "no_gpu_over_capacity", true);
	json_get_flag(reader, "distinct_gpus", true);
	json_get_flag(reader, "memory_accounted", true);
	json_get_flag(reader, "ledger_same_as_before_restart", true);
	read_gib_or(reader, "total_gib", ROUND_UP, 0);
	json_get_integer(reader, "min_slots", 0, REQUESTS_MAX, 0);
	check_list(reader, "ledger_gib_sorted", false);
	check_list(reader, "placed", true);
	check_list(reader, "gone", true);
	check_counts(reader, "active_requests");
	check_counts(reader, "waiting_requests");
	check_counts(reader, "slots");
	check_counts(reader, "failures");
	check_object_of(reader, "parts_gib", JSON_ARRAY, "an array");
	check_object_of(reader, "says", JSON_STRING, "a string");
	check_jobs(reader);
}

/* The field where the kind of step has it: what steps share is read in one place. */
static bool has(const struct model_step *step, const char *key)
{
	return read_is_listed(key, step_types[step->kind].keys);
}

static enum expectation read_expectation(struct json_reader *reader, const struct model_step *step)
{
	static const char *const allowed[STEP_KINDS] = {
		[STEP_REQUEST] = "placed waiting unschedulable",
		[STEP_DISPATCH] = "served queued served_or_queued failed",
		[STEP_SUBMIT] = "running waiting",
	};
	if (!has(step, "expect") || !member_has(step->json, "expect"))
		return EXPECT_NOTHING;
	int word = read_word(reader, "expect", &expectation_words);
	if (!read_is_listed(expectation_words.at[word], allowed[step->kind]))
		json_fail(reader, "expect", "cannot be '%s' for %s, only one of: %s",
		          expectation_words.at[word], step_types[step->kind].name,
		          allowed[step->kind]);
	return (enum expectation)word;
}

static const char *read_name(struct json_reader *reader, const struct model_step *step,
                             const char *key)
{
	bool optional = strcmp(key, "model") != 0 && strcmp(key, "job") != 0;
	if (!has(step, key))
		return NULL;
	if (step->kind == STEP_CONFIRM || (optional && strcmp(key, "tenant") != 0) ||
	    (strcmp(key, "tenant") == 0 && step->kind != STEP_TENANT))
		return json_get_string(reader, key, NULL);
	return json_need_string(reader, key);
}

static int64_t read_count(struct json_reader *reader, const struct model_step *step,
                          const char *key, int64_t least, int64_t most)
{
	return has(step, key) ? json_get_integer(reader, key, least, most, -1) : -1;
}

static int64_t read_seconds(struct json_reader *reader, const struct model_step *step,
                            const char *key)
{
	int64_t seconds = read_count(reader, step, key, 0, 60 * MINUTES_MAX);
	return seconds < 0 ? -1 : seconds * SECOND_MS;
}

static enum load_answer read_answer(struct json_reader *reader, const struct model_step *step)
{
	if (step->kind == STEP_LOADS)
		return (enum load_answer)read_word(reader, "answer", &answer_words);
	if (step->kind != STEP_REQUEST || !member_has(step->json, "leave"))
		return ANSWER_READY;
	int word = read_word(reader, "leave", &answer_words);
	if (word != ANSWER_STARTING)
		json_fail(reader, "leave", "can only be starting");
	return ANSWER_STARTING;
}

/* `replica` is the number of the instance, or true: one more than there are. */
static bool read_replica(struct json_reader *reader, const struct model_step *step)
{
	const json_t *value = json_object_get(step->json, "replica");
	if (!has(step, "replica") || !value || json_is_null(value))
		return false;
	if (json_is_integer(value) && json_integer_value(value) >= 0)
		return true;
	return json_get_flag(reader, "replica", false);
}

static void read_amounts(struct json_reader *reader, struct model_step *step)
{
	step->memory_mib =
	    has(step, "memory_gib") ? read_gib_or(reader, "memory_gib", ROUND_UP, -1) : -1;
	step->per_gpu_mib =
	    has(step, "per_gpu_gib") ? read_gib_or(reader, "per_gpu_gib", ROUND_UP, -1) : -1;
	step->concurrency = read_count(reader, step, "concurrency", 1, REQUESTS_MAX);
	step->gpus = read_count(reader, step, "gpus", 1, PARTS_MAX);
	step->gpu = read_count(reader, step, "gpu", 0, GPUS_PER_NODE_MAX - 1);
	step->gpu_count = read_count(reader, step, "gpu_count", 1, PARTS_MAX);
	step->evicted = read_count(reader, step, "evicted", 0, REQUESTS_MAX);
	step->preempted = read_count(reader, step, "preempted", 0, REQUESTS_MAX);
	step->wait_ms = read_seconds(reader, step, "seconds");
	step->lease_ms = read_seconds(reader, step, "lease_seconds");
	/* Thousandths of minutes, of which each is 60 ms. */
	int64_t idle = has(step, "for_minutes")
	                   ? read_thousandths_or(reader, "for_minutes", MINUTES_MAX, -1)
	                   : -1;
	step->idle_ms = idle < 0 ? -1 : idle * (MINUTE_MS / 1000);
}

/* What only one kind of step has. */
static void check_particulars(struct json_reader *reader, const struct model_step *step)
{
	const char *key;
	json_t *value;
	switch (step->kind) {
	case STEP_PREWARM: {
		json_t *models = (json_t *)json_need_object(reader, "models");
		json_object_foreach(models, key, value)
		    read_gib_value(reader, value, key, ROUND_UP);
		break;
	}
	case STEP_FOREIGN:
		read_gib(reader, "gib", ROUND_UP);
		break;
	case STEP_ORPHAN:
		read_gib(reader, "memory_gib", ROUND_UP);
		break;
	case STEP_WAIT:
		json_need_integer(reader, "seconds", 0, 60 * MINUTES_MAX);
		break;
	case STEP_SILENT:
		read_word(reader, "state", &lost_words);
		break;
	case STEP_RETURN:
		json_get_flag(reader, "empty", false);
		break;
	case STEP_MODEL:
		json_get_integer(reader, "priority", 0, PRIORITY_MAX, 0);
		json_get_integer(reader, "min_replicas", 0, REQUESTS_MAX, 0);
		json_get_integer(reader, "max_replicas", 0, REQUESTS_MAX, 0);
		json_get_integer(reader, "idle_ttl_seconds", 0, MINUTES_MAX, 0);
		json_get_integer(reader, "load_timeout_seconds", 0, MINUTES_MAX, 0);
		json_get_flag(reader, "prewarm", false);
		json_get_flag(reader, "pinned", false);
		json_get_flag(reader, "uneven", false);
		json_get_flag(reader, "shared", false);
		check_list(reader, "gpu_counts", false);
		check_list(reader, "users", true);
		break;
	case STEP_SUBMIT:
		json_get_integer(reader, "priority", 0, PRIORITY_MAX, 0);
		json_get_flag(reader, "preemptible", true);
		break;
	case STEP_TENANT:
		read_thousandths_or(reader, "quota_gpus", RUNNERS_MAX, 0);
		read_thousandths_or(reader, "limit_gpus", RUNNERS_MAX, 0);
		json_get_flag(reader, "can_preempt", true);
		break;
	default:
		break;
	}
}

static bool has_runner(const struct models_case *models_case, const char *name)
{
	for (int64_t i = 0; i < models_case->runner_count; i++) {
		if (strcmp(models_case->runners[i].name, name) == 0)
			return true;
	}
	return false;
}

static struct model_step read_step(struct json_reader *reader,
                                   const struct models_case *models_case, json_t *json)
{
	struct model_step step = { .json = json, .kind = read_kind(reader) };
	refuse_unknown_keys(reader, json, step.kind);
	step.model = read_name(reader, &step, "model");
	step.runner = read_name(reader, &step, "runner");
	step.job = read_name(reader, &step, "job");
	step.tenant = read_name(reader, &step, "tenant");
	step.expect = read_expectation(reader, &step);
	step.answer = read_answer(reader, &step);
	step.replica = read_replica(reader, &step);
	step.hold = json_get_flag(reader, "hold", false);
	step.fail = json_get_flag(reader, "fail", false);
	step.withhold =
	    has(&step, "confirm_release") && !json_get_flag(reader, "confirm_release", true);
	read_amounts(reader, &step);
	check_particulars(reader, &step);
	check_checks(reader, json);
	if (step.runner && !has_runner(models_case, step.runner))
		json_fail(reader, "runner", "'%s' is not a runner of the case", step.runner);
	return step;
}

static struct case_runner read_runner(struct json_reader *reader, json_t *json)
{
	struct case_runner runner = { .name = json_need_string(reader, "name") };
	const json_t *gpus = json_need_array(reader, "gpus_gib", GPUS_PER_NODE_MAX);
	const char *key;
	json_t *value;
	json_object_foreach(json, key, value)
	{
		if (!read_is_listed(key, "name gpus_gib"))
			json_fail(reader, key, "is not a field of a runner");
	}
	int64_t count = (int64_t)json_array_size(gpus);
	for (int64_t i = 0; i < count; i++)
		runner.gpu_mib[runner.gpu_count++] =
		    read_gib_value(reader, json_array_get(gpus, (size_t)i), "gpus_gib", ROUND_DOWN);
	return runner;
}

static void read_runners(struct json_reader *reader, struct models_case *to, const json_t *json)
{
	const json_t *list = json_need_array(reader, "runners", (size_t)RUNNERS_MAX);
	int64_t count = (int64_t)json_array_size(list);
	to->runners = arena_alloc(&to->arena, (size_t)(count + 1) * sizeof(*to->runners));
	for (int64_t i = 0; i < count; i++) {
		json_t *entry = json_array_get(list, (size_t)i);
		json_reader_enter(reader, entry, "runners[%lld].", (long long)i);
		struct case_runner runner = read_runner(reader, entry);
		if (has_runner(to, runner.name))
			json_fail(reader, "name", "'%s' is used twice", runner.name);
		to->runners[to->runner_count++] = runner;
	}
	json_reader_enter(reader, json, "%s", "");
	if (list && count == 0)
		json_fail(reader, "runners", "is empty");
}

static void read_steps(struct json_reader *reader, struct models_case *to, const json_t *json)
{
	const json_t *list = json_need_array(reader, "steps", (size_t)STEPS_MAX);
	int64_t count = (int64_t)json_array_size(list);
	to->steps = arena_alloc(&to->arena, (size_t)(count + 1) * sizeof(*to->steps));
	for (int64_t i = 0; i < count; i++) {
		json_t *step = json_array_get(list, (size_t)i);
		json_reader_enter(reader, step, "steps[%lld].", (long long)i);
		to->steps[to->step_count++] = read_step(reader, to, step);
	}
	json_reader_enter(reader, json, "%s", "");
}

bool models_case_read(struct models_case *models_case, const json_t *json, struct error *error)
{
	struct json_reader reader = json_reader_of(json, "", error);
	const char *key;
	json_t *value;
	*models_case = (struct models_case){ .name = json_need_string(&reader, "name") };
	if (member_has(json, "policy"))
		models_case->policy =
		    (enum slot_policy)read_word(&reader, "policy", &policy_case_words);
	json_object_foreach((json_t *)json, key, value)
	{
		if (!read_is_listed(key, "name origin note policy runners steps"))
			json_fail(&reader, key, "is not a field of a case");
	}
	read_runners(&reader, models_case, json);
	read_steps(&reader, models_case, json);
	return !reader.failed;
}

void models_case_free(struct models_case *models_case)
{
	arena_free(&models_case->arena);
	*models_case = (struct models_case){ 0 };
}
