/* models_check.c - what must be true of slots, GPUs and requests after a step */
#include <stdlib.h>
#include <string.h>

#include "sim/scenario/models_run.h"

#define MIB_PER_GIB 1024
#define NAME_SIZE 256

static bool flag_is(struct models_run *run, const json_t *json, const char *key, bool found,
                    const char *otherwise)
{
	const json_t *wanted = json_object_get(json, key);
	if (!wanted || json_is_null(wanted) || json_is_true(wanted) == found)
		return true;
	return run_fail(run, "%s should be %s: %s", key, json_is_true(wanted) ? "true" : "false",
	                otherwise);
}

static bool is_over(const struct models_run *run, struct buffer *text)
{
	bool over = false;
	for (int place = 0; place < runner_gpu_count(run); place++) {
		int64_t used = books_used_mib(run, place), has = books_capacity_mib(run, place);
		if (used <= has)
			continue;
		buffer_print(text, "GPU %d has %lld of %lld MiB in use ", place, (long long)used,
		             (long long)has);
		over = true;
	}
	return over;
}

/* True if the ledger has everything that is on the runners. */
static bool is_accounted(const struct models_run *run, struct buffer *text)
{
	for (int runner = 0; runner < run->models_case->runner_count; runner++) {
		for (int gpu = 0; gpu < run->models_case->runners[runner].gpu_count; gpu++) {
			int place = runner_gpu_place(run, runner, gpu);
			int64_t real = runner_used_mib(run, runner, gpu);
			if (real <= books_used_mib(run, place))
				continue;
			buffer_print(text, "GPU %d has %lld MiB in use and %lld in the ledger",
			             place, (long long)real, (long long)books_used_mib(run, place));
			return false;
		}
	}
	return true;
}

static bool is_as_before(const struct models_run *run, struct buffer *text)
{
	for (int place = 0; place < runner_gpu_count(run); place++) {
		int64_t is = books_reserved_mib(run, place);
		if (is == run->before_mib[place])
			continue;
		buffer_print(text, "GPU %d had %lld MiB reserved and has %lld", place,
		             (long long)run->before_mib[place], (long long)is);
		return false;
	}
	if (!run->restarted)
		buffer_text(text, "there was no restart");
	return run->restarted;
}

/* How many slots of other models, or with `all` of any, are on a GPU. */
static int64_t slots_on(const struct models_run *run, int place, int64_t not_of)
{
	struct rank_cursor cursor = books_all(run, RECORD_RESERVATION);
	const struct rank_entry *entry;
	int64_t count = 0;
	while ((entry = rank_cursor_next(&cursor))) {
		const struct reservation_record *right = entry->value;
		if (right->job_id || right->phase == PHASE_CLAIM || right->model_id == not_of)
			continue;
		for (int64_t p = 0; p < right->parts.count; p++) {
			int64_t gpu_id = right->parts.at[p * PART_WIDTH + PART_GPU];
			count += books_gpu_place(run, gpu_id) == place;
		}
	}
	return count;
}

static bool are_distinct(const struct models_run *run, struct buffer *text)
{
	for (int place = 0; place < runner_gpu_count(run); place++) {
		if (slots_on(run, place, -1) <= 1)
			continue;
		buffer_print(text, "GPU %d has %lld slots", place,
		             (long long)slots_on(run, place, -1));
		return false;
	}
	return true;
}

static bool is_alone(struct models_run *run, const char *name, struct buffer *text)
{
	const struct sim_model *model = run_model(run, name);
	const struct slot_record *slot = model ? books_newest(run, model) : NULL;
	const struct reservation_record *right = slot ? books_reservation(run, slot->id) : NULL;
	if (!right) {
		buffer_print(text, "%s has no slot", name);
		return false;
	}
	for (int64_t p = 0; p < right->parts.count; p++) {
		int place = books_gpu_place(run, right->parts.at[p * PART_WIDTH + PART_GPU]);
		if (slots_on(run, place, -1) == 1)
			continue;
		buffer_print(text, "GPU %d has %lld slots", place,
		             (long long)slots_on(run, place, -1));
		return false;
	}
	return true;
}

static bool check_flags(struct models_run *run, const json_t *json)
{
	static const struct {
		const char *key;
		bool (*holds)(const struct models_run *run, struct buffer *text);
		bool opposite;
	} flags[] = {
		{ "no_gpu_over_capacity", is_over, true },
		{ "memory_accounted", is_accounted, false },
		{ "ledger_same_as_before_restart", is_as_before, false },
		{ "distinct_gpus", are_distinct, false },
	};
	struct buffer text = { 0 };
	bool fine = true;
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (!member_has(json, flags[i].key))
			continue;
		buffer_clear(&text);
		buffer_text(&text, "");
		bool found = flags[i].holds(run, &text) != flags[i].opposite;
		fine =
		    flag_is(run, json, flags[i].key, found, text.size ? text.data : "it is not") &&
		    fine;
	}
	buffer_free(&text);
	return fine;
}

static bool check_alone(struct models_run *run, const struct model_step *step)
{
	struct buffer text = { 0 };
	void *at = json_object_iter((json_t *)step->json);
	bool fine = true;
	for (; at; at = json_object_iter_next((json_t *)step->json, at)) {
		char name[NAME_SIZE];
		const char *key = json_object_iter_key(at);
		if (!alone_model(key, name, sizeof(name)))
			continue;
		buffer_clear(&text);
		buffer_text(&text, "");
		bool found = is_alone(run, name, &text);
		fine =
		    flag_is(run, step->json, key, found, text.size ? text.data : "it is alone") &&
		    fine;
	}
	buffer_free(&text);
	return fine;
}

static int models_check_compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Compares GiB of the case with MiB of the ledger, which were rounded up `times` times. */
static bool is_gib(const json_t *gib, int64_t mib, int64_t times)
{
	double wanted = json_number_value(gib) * MIB_PER_GIB;
	return (double)mib >= wanted - 1 && (double)mib <= wanted + (double)times + 1;
}

static int64_t count_parts(const struct models_run *run)
{
	struct rank_cursor cursor = books_all(run, RECORD_RESERVATION);
	const struct rank_entry *entry;
	int64_t parts = 0;
	while ((entry = rank_cursor_next(&cursor)))
		parts += ((const struct reservation_record *)entry->value)->parts.count;
	return parts;
}

static bool check_ledger(struct models_run *run, const json_t *json)
{
	int gpus = runner_gpu_count(run);
	int64_t *found = memory_zero((size_t)gpus + 1, sizeof(*found)), total = 0;
	int64_t parts = count_parts(run);
	const json_t *list = json_object_get(json, "ledger_gib_sorted");
	const json_t *sum = json_object_get(json, "total_gib");
	bool fine = true;
	for (int place = 0; place < gpus; place++)
		total += found[place] = books_reserved_mib(run, place);
	qsort(found, (size_t)gpus, sizeof(*found), models_check_compare);
	if (json_is_number(sum) && !is_gib(sum, total, parts))
		fine = run_fail(run, "total_gib should be %g and is %.3f", json_number_value(sum),
		                (double)total / MIB_PER_GIB);
	if (json_is_array(list) && (int)json_array_size(list) != gpus)
		fine = run_fail(run, "ledger_gib_sorted has %zu numbers, and there are %d GPUs",
		                json_array_size(list), gpus);
	for (int place = 0; fine && json_is_array(list) && place < gpus; place++) {
		const json_t *wanted = json_array_get(list, (size_t)place);
		if (!is_gib(wanted, found[place], parts))
			fine =
			    run_fail(run, "ledger_gib_sorted[%d] should be %g and is %.3f", place,
			             json_number_value(wanted), (double)found[place] / MIB_PER_GIB);
	}
	free(found);
	return fine;
}

/* These models have a slot, or (`gone`) none. */
static bool check_presence(struct models_run *run, const json_t *json, const char *key, bool gone)
{
	const json_t *list = json_object_get(json, key);
	bool fine = true;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *name = json_string_value(json_array_get(list, i));
		const struct sim_model *model = run_model(run, name);
		int64_t slots = model && model->record.id ? books_slots(run, model, gone) : 0;
		if ((slots == 0) != gone)
			fine = run_fail(run, "%s should be %s and has %lld slots", name, key,
			                (long long)slots);
	}
	return fine;
}

static int64_t count_all_slots(const struct models_run *run)
{
	int64_t slots = 0;
	for (size_t i = 0; i < run->model_count; i++)
		slots += run->models[i].record.id ? books_slots(run, &run->models[i], false) : 0;
	return slots;
}

/* One number per model. */
static int64_t models_check_number_of(struct models_run *run, const char *key,
                                      const struct sim_model *model)
{
	struct model_load load = { 0 };
	if (!model || !model->record.id)
		return 0;
	sched_model_load(run->driver.sched, model->record.id, &load);
	if (strcmp(key, "active_requests") == 0)
		return load.active;
	if (strcmp(key, "waiting_requests") == 0)
		return load.waiting;
	if (strcmp(key, "slots") == 0)
		return books_slots(run, model, false);
	const struct model_record *record =
	    world_find(&run->driver.world, RECORD_MODEL, model->record.id, 0);
	return record ? record->failures : 0;
}

static bool models_check_check_numbers(struct models_run *run, const json_t *json)
{
	static const char *const keys[] = { "active_requests", "waiting_requests", "slots",
		                            "failures" };
	bool fine = true;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *name;
		json_t *wanted;
		json_t *all = json_object_get(json, keys[i]);
		json_object_foreach(all, name, wanted)
		{
			int64_t found = models_check_number_of(run, keys[i], run_model(run, name));
			if (found != json_integer_value(wanted))
				fine = run_fail(run, "%s of %s should be %lld and is %lld", keys[i],
				                name, (long long)json_integer_value(wanted),
				                (long long)found);
		}
	}
	int64_t least = json_integer_value(json_object_get(json, "min_slots"));
	if (count_all_slots(run) < least)
		fine = run_fail(run, "there should be at least %lld slots and are %lld",
		                (long long)least, (long long)count_all_slots(run));
	return fine;
}

/* The parts of the model's newest slot, the smallest first. */
static bool check_parts(struct models_run *run, const char *name, const json_t *wanted)
{
	const struct sim_model *model = run_model(run, name);
	const struct slot_record *slot = model ? books_newest(run, model) : NULL;
	const struct reservation_record *right = slot ? books_reservation(run, slot->id) : NULL;
	int64_t found[PARTS_MAX];
	size_t count = right ? (size_t)right->parts.count : 0;
	for (size_t p = 0; p < count; p++)
		found[p] = right->parts.at[p * PART_WIDTH + PART_MIB];
	if (count != json_array_size(wanted))
		return run_fail(run, "%s should have %zu parts and has %zu", name,
		                json_array_size(wanted), count);
	qsort(found, count, sizeof(*found), models_check_compare);
	for (size_t p = 0; p < count; p++) {
		if (!is_gib(json_array_get(wanted, p), found[p], 1))
			return run_fail(run, "part %zu of %s should be %g GiB and is %.3f", p, name,
			                json_number_value(json_array_get(wanted, p)),
			                (double)found[p] / MIB_PER_GIB);
	}
	return true;
}

static bool check_says(struct models_run *run, const char *name, const char *wanted)
{
	struct sim_model *model = run_model(run, name);
	struct buffer text = { 0 };
	struct error error = { 0 };
	buffer_text(&text, "");
	bool fine = model && sched_why_model(run->driver.sched, model->record.id, 0, &text, &error);
	if (!fine)
		run_fail(run, "%s is not known", name);
	else if (!strstr(text.data, wanted))
		fine = run_fail(run, "%s should say '%s' and says '%s'", name, wanted, text.data);
	buffer_free(&text);
	return fine;
}

static const char *job_word(const struct models_run *run, int64_t id)
{
	const struct job_state_record *state =
	    world_find(&run->driver.world, RECORD_JOB_STATE, id, 0);
	if (!state || job_state_is_final((enum job_state)state->state))
		return "ended";
	return state->state == JOB_RUNNING ? "running" : "waiting";
}

static bool check_rest(struct models_run *run, const json_t *json)
{
	const char *name;
	json_t *wanted;
	bool fine = true;
	json_t *all = json_object_get(json, "parts_gib");
	json_object_foreach(all, name, wanted) fine = check_parts(run, name, wanted) && fine;
	all = json_object_get(json, "says");
	json_object_foreach(all, name, wanted) fine =
	    check_says(run, name, json_string_value(wanted)) && fine;
	all = json_object_get(json, "jobs");
	json_object_foreach(all, name, wanted)
	{
		const struct sim_job *job = run_job(run, name);
		const char *found = job ? job_word(run, job->id) : "not known";
		if (strcmp(found, json_string_value(wanted)) != 0)
			fine = run_fail(run, "job %s should be %s and is %s", name,
			                json_string_value(wanted), found);
	}
	return fine;
}

bool check_step(struct models_run *run, const struct model_step *step)
{
	bool fine = check_flags(run, step->json);
	fine = check_alone(run, step) && fine;
	fine = check_ledger(run, step->json) && fine;
	fine = check_presence(run, step->json, "placed", false) && fine;
	fine = check_presence(run, step->json, "gone", true) && fine;
	fine = models_check_check_numbers(run, step->json) && fine;
	return check_rest(run, step->json) && fine;
}
