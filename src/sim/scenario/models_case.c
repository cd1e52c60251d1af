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

static enum step_kind read_kind(struct reading *reading, const json_t *json)
{
	const char *name = read_text(reading, json, "do");
	for (int i = 0; i < STEP_KINDS; i++) {
		if (strcmp(name, step_types[i].name) == 0)
			return (enum step_kind)i;
	}
	if (!reading_failed(reading))
		reading_refuse(reading, "there is no step '%s'", name);
	return STEP_SETTLE;
}

static void refuse_unknown_keys(struct reading *reading, json_t *json, enum step_kind kind)
{
	const char *key;
	json_t *value;
	json_object_foreach(json, key, value)
	{
		if (strcmp(key, "do") != 0 && !read_is_listed(key, step_types[kind].keys) &&
		    !read_is_listed(key, check_keys) && !alone_model(key, NULL, 0))
			reading_refuse(reading, "%s has no field '%s'", step_types[kind].name, key);
	}
}

/* A list of texts, or of numbers. */
static void check_list(struct reading *reading, const json_t *json, const char *name, bool of_texts)
{
	if (!read_has(json, name))
		return;
	const json_t *list = read_list(reading, json, name);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *value = json_array_get(list, i);
		if (of_texts && !json_is_string(value))
			reading_refuse(reading, "%s[%zu] is not a text", name, i);
		else if (!of_texts)
			read_gib_value(reading, value, name, ROUND_UP);
	}
}

/* An object with a whole number, not below 0, for each name. */
static void check_counts(struct reading *reading, const json_t *json, const char *name)
{
	const char *key;
	json_t *value;
	if (!read_has(json, name))
		return;
	json_t *counts = read_object(reading, json, name);
	json_object_foreach(counts, key, value)
	{
		if (!json_is_integer(value) || json_integer_value(value) < 0)
			reading_refuse(reading, "%s.%s is not a whole number from 0 on", name, key);
	}
}

static void check_object_of(struct reading *reading, const json_t *json, const char *name,
                            json_type type, const char *what)
{
	const char *key;
	json_t *value;
	if (!read_has(json, name))
		return;
	json_t *object = read_object(reading, json, name);
	json_object_foreach(object, key, value)
	{
		if (json_typeof(value) != type)
			reading_refuse(reading, "%s.%s is not %s", name, key, what);
	}
}

static void check_jobs(struct reading *reading, const json_t *json)
{
	const char *key;
	json_t *value;
	if (!read_has(json, "jobs"))
		return;
	json_t *jobs = read_object(reading, json, "jobs");
	json_object_foreach(jobs, key, value)
	{
		(void)value;
		read_word(reading, jobs, key, &job_words);
	}
}

/* What must be true after a step: only whether it is well formed. */
static void check_checks(struct reading *reading, json_t *json)
{
	const char *key;
	json_t *value;
	json_object_foreach(json, key, value)
	{
		if (alone_model(key, NULL, 0))
			read_flag_or(reading, json, key, true);
	}
	read_flag_or(reading, json, "no_gpu_over_capacity", true);
	read_flag_or(reading, json, "distinct_gpus", true);
	read_flag_or(reading, json, "memory_accounted", true);
	read_flag_or(reading, json, "ledger_same_as_before_restart", true);
	read_gib_or(reading, json, "total_gib", ROUND_UP, 0);
	read_number_or(reading, json, "min_slots", 0, REQUESTS_MAX, 0);
	check_list(reading, json, "ledger_gib_sorted", false);
	check_list(reading, json, "placed", true);
	check_list(reading, json, "gone", true);
	check_counts(reading, json, "active_requests");
	check_counts(reading, json, "waiting_requests");
	check_counts(reading, json, "slots");
	check_counts(reading, json, "failures");
	check_object_of(reading, json, "parts_gib", JSON_ARRAY, "a list");
	check_object_of(reading, json, "says", JSON_STRING, "a text");
	check_jobs(reading, json);
}

/* The field where the kind of step has it: what steps share is read in one place. */
static bool has(const struct model_step *step, const char *key)
{
	return read_is_listed(key, step_types[step->kind].keys);
}

static enum expectation read_expectation(struct reading *reading, const struct model_step *step)
{
	static const char *const allowed[STEP_KINDS] = {
		[STEP_REQUEST] = "placed waiting unschedulable",
		[STEP_DISPATCH] = "served queued served_or_queued failed",
		[STEP_SUBMIT] = "running waiting",
	};
	if (!has(step, "expect") || !read_has(step->json, "expect"))
		return EXPECT_NOTHING;
	int word = read_word(reading, step->json, "expect", &expectation_words);
	if (!reading_failed(reading) &&
	    !read_is_listed(expectation_words.at[word], allowed[step->kind]))
		reading_refuse(reading, "%s cannot expect '%s', only one of: %s",
		               step_types[step->kind].name, expectation_words.at[word],
		               allowed[step->kind]);
	return (enum expectation)word;
}

static const char *read_name(struct reading *reading, const struct model_step *step,
                             const char *key)
{
	bool optional = strcmp(key, "model") != 0 && strcmp(key, "job") != 0;
	if (!has(step, key))
		return NULL;
	if (step->kind == STEP_CONFIRM || (optional && strcmp(key, "tenant") != 0) ||
	    (strcmp(key, "tenant") == 0 && step->kind != STEP_TENANT))
		return read_text_or(reading, step->json, key, NULL);
	return read_text(reading, step->json, key);
}

static int64_t read_count(struct reading *reading, const struct model_step *step, const char *key,
                          int64_t least, int64_t most)
{
	return has(step, key) ? read_number_or(reading, step->json, key, least, most, -1) : -1;
}

static int64_t read_seconds(struct reading *reading, const struct model_step *step, const char *key)
{
	int64_t seconds = read_count(reading, step, key, 0, 60 * MINUTES_MAX);
	return seconds < 0 ? -1 : seconds * SECOND_MS;
}

static enum load_answer read_answer(struct reading *reading, const struct model_step *step)
{
	if (step->kind == STEP_LOADS)
		return (enum load_answer)read_word(reading, step->json, "answer", &answer_words);
	if (step->kind != STEP_REQUEST || !read_has(step->json, "leave"))
		return ANSWER_READY;
	int word = read_word(reading, step->json, "leave", &answer_words);
	if (word != ANSWER_STARTING)
		reading_refuse(reading, "leave is '%s' and can only be starting",
		               answer_words.at[word]);
	return ANSWER_STARTING;
}

/* `replica` is the number of the instance, or true: one more than there are. */
static bool read_replica(struct reading *reading, const struct model_step *step)
{
	const json_t *value = json_object_get(step->json, "replica");
	if (!has(step, "replica") || !value || json_is_null(value))
		return false;
	if (json_is_integer(value) && json_integer_value(value) >= 0)
		return true;
	return read_flag_or(reading, step->json, "replica", false);
}

static void read_amounts(struct reading *reading, struct model_step *step)
{
	step->memory_mib = has(step, "memory_gib")
	                       ? read_gib_or(reading, step->json, "memory_gib", ROUND_UP, -1)
	                       : -1;
	step->per_gpu_mib = has(step, "per_gpu_gib")
	                        ? read_gib_or(reading, step->json, "per_gpu_gib", ROUND_UP, -1)
	                        : -1;
	step->concurrency = read_count(reading, step, "concurrency", 1, REQUESTS_MAX);
	step->gpus = read_count(reading, step, "gpus", 1, PARTS_MAX);
	step->gpu = read_count(reading, step, "gpu", 0, GPUS_PER_NODE_MAX - 1);
	step->gpu_count = read_count(reading, step, "gpu_count", 1, PARTS_MAX);
	step->evicted = read_count(reading, step, "evicted", 0, REQUESTS_MAX);
	step->preempted = read_count(reading, step, "preempted", 0, REQUESTS_MAX);
	step->wait_ms = read_seconds(reading, step, "seconds");
	step->lease_ms = read_seconds(reading, step, "lease_seconds");
	/* Thousandths of minutes, of which each is 60 ms. */
	int64_t idle =
	    has(step, "for_minutes")
		? read_thousandths_or(reading, step->json, "for_minutes", MINUTES_MAX, -1)
		: -1;
	step->idle_ms = idle < 0 ? -1 : idle * (MINUTE_MS / 1000);
}

/* What only one kind of step has. */
static void check_particulars(struct reading *reading, const struct model_step *step)
{
	const char *key;
	json_t *value;
	switch (step->kind) {
	case STEP_PREWARM: {
		json_t *models = read_object(reading, step->json, "models");
		json_object_foreach(models, key, value)
		    read_gib_value(reading, value, key, ROUND_UP);
		break;
	}
	case STEP_FOREIGN:
		read_gib(reading, step->json, "gib", ROUND_UP);
		break;
	case STEP_ORPHAN:
		read_gib(reading, step->json, "memory_gib", ROUND_UP);
		break;
	case STEP_WAIT:
		read_number(reading, step->json, "seconds", 0, 60 * MINUTES_MAX);
		break;
	case STEP_SILENT:
		read_word(reading, step->json, "state", &lost_words);
		break;
	case STEP_RETURN:
		read_flag_or(reading, step->json, "empty", false);
		break;
	case STEP_MODEL:
		read_number_or(reading, step->json, "priority", 0, PRIORITY_MAX, 0);
		read_number_or(reading, step->json, "min_replicas", 0, REQUESTS_MAX, 0);
		read_number_or(reading, step->json, "max_replicas", 0, REQUESTS_MAX, 0);
		read_number_or(reading, step->json, "idle_ttl_seconds", 0, MINUTES_MAX, 0);
		read_number_or(reading, step->json, "load_timeout_seconds", 0, MINUTES_MAX, 0);
		read_flag_or(reading, step->json, "prewarm", false);
		read_flag_or(reading, step->json, "pinned", false);
		read_flag_or(reading, step->json, "uneven", false);
		read_flag_or(reading, step->json, "shared", false);
		check_list(reading, step->json, "gpu_counts", false);
		check_list(reading, step->json, "users", true);
		break;
	case STEP_SUBMIT:
		read_number_or(reading, step->json, "priority", 0, PRIORITY_MAX, 0);
		read_flag_or(reading, step->json, "preemptible", true);
		break;
	case STEP_TENANT:
		read_thousandths_or(reading, step->json, "quota_gpus", RUNNERS_MAX, 0);
		read_thousandths_or(reading, step->json, "limit_gpus", RUNNERS_MAX, 0);
		read_flag_or(reading, step->json, "can_preempt", true);
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

static struct model_step read_step(struct reading *reading, const struct models_case *models_case,
                                   json_t *json)
{
	struct model_step step = { .json = json, .kind = read_kind(reading, json) };
	refuse_unknown_keys(reading, json, step.kind);
	step.model = read_name(reading, &step, "model");
	step.runner = read_name(reading, &step, "runner");
	step.job = read_name(reading, &step, "job");
	step.tenant = read_name(reading, &step, "tenant");
	step.expect = read_expectation(reading, &step);
	step.answer = read_answer(reading, &step);
	step.replica = read_replica(reading, &step);
	step.hold = read_flag_or(reading, json, "hold", false);
	step.fail = read_flag_or(reading, json, "fail", false);
	step.withhold =
	    has(&step, "confirm_release") && !read_flag_or(reading, json, "confirm_release", true);
	read_amounts(reading, &step);
	check_particulars(reading, &step);
	check_checks(reading, json);
	if (step.runner && !has_runner(models_case, step.runner))
		reading_refuse(reading, "runner '%s' is not a runner of the case", step.runner);
	return step;
}

static struct case_runner read_runner(struct reading *reading, json_t *json)
{
	struct case_runner runner = { .name = read_text(reading, json, "name") };
	const json_t *gpus = read_list(reading, json, "gpus_gib");
	const char *key;
	json_t *value;
	json_object_foreach(json, key, value)
	{
		if (!read_is_listed(key, "name gpus_gib"))
			reading_refuse(reading, "a runner has no field '%s'", key);
	}
	int64_t count = read_size(reading, gpus, "gpus_gib", GPUS_PER_NODE_MAX);
	for (int64_t i = 0; i < count; i++)
		runner.gpu_mib[runner.gpu_count++] = read_gib_value(
		    reading, json_array_get(gpus, (size_t)i), "gpus_gib", ROUND_DOWN);
	return runner;
}

static void read_runners(struct reading *reading, struct models_case *to, const json_t *json)
{
	const json_t *list = read_list(reading, json, "runners");
	int64_t count = read_size(reading, list, "runners", RUNNERS_MAX);
	to->runners = arena_alloc(&to->arena, (size_t)(count + 1) * sizeof(*to->runners));
	for (int64_t i = 0; i < count; i++) {
		reading_at(reading, "runners[%lld]", (long long)i);
		struct case_runner runner = read_runner(reading, json_array_get(list, (size_t)i));
		if (has_runner(to, runner.name))
			reading_refuse(reading, "there are two of the name '%s'", runner.name);
		to->runners[to->runner_count++] = runner;
	}
	reading_at(reading, "%s", "");
	if (list && count == 0)
		reading_refuse(reading, "runners is empty");
}

static void read_steps(struct reading *reading, struct models_case *to, const json_t *json)
{
	const json_t *list = read_list(reading, json, "steps");
	int64_t count = read_size(reading, list, "steps", STEPS_MAX);
	to->steps = arena_alloc(&to->arena, (size_t)(count + 1) * sizeof(*to->steps));
	for (int64_t i = 0; i < count; i++) {
		json_t *step = json_array_get(list, (size_t)i);
		reading_at(reading, "steps[%lld]", (long long)i);
		if (!json_is_object(step))
			reading_refuse(reading, "is not an object");
		to->steps[to->step_count++] = read_step(reading, to, step);
	}
	reading_at(reading, "%s", "");
}

bool models_case_read(struct models_case *models_case, const json_t *json, struct error *error)
{
	struct reading reading = { 0 };
	const char *key;
	json_t *value;
	*models_case = (struct models_case){ .name = read_text(&reading, json, "name") };
	if (read_has(json, "policy"))
		models_case->policy =
		    (enum slot_policy)read_word(&reading, json, "policy", &policy_case_words);
	json_object_foreach((json_t *)json, key, value)
	{
		if (!read_is_listed(key, "name origin note policy runners steps"))
			reading_refuse(&reading, "a case has no field '%s'", key);
	}
	read_runners(&reading, models_case, json);
	read_steps(&reading, models_case, json);
	*error = reading.error;
	return !reading_failed(&reading);
}

void models_case_free(struct models_case *models_case)
{
	arena_free(&models_case->arena);
	*models_case = (struct models_case){ 0 };
}
