/* property_run.c - a core that is watched: every command is checked on its way */
#include "core/test/property_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"

/* How often something is done, by the number of commands so far. */
#define CLOSELY 100000 /* commands after each of which all is recounted */
#define BILLS 31       /* commands from one look at what is billed to the next */
#define TWIN 20000     /* commands that a second core is given from the start */

void run_init(struct run *run, int verbose)
{
	*run = (struct run){ .sched = sched_new(), .verbose = verbose, .last_refused = -1 };
	run->shadows[0] = (struct shadow){ .sched = sched_new(), .until = TWIN, .decoded = true };
}

void run_free(struct run *run)
{
	for (int i = 0; i < SHADOWS; i++)
		if (run->shadows[i].sched)
			sched_free(run->shadows[i].sched);
	for (int i = 0; i < PAST; i++)
		buffer_free(&run->past[i]);
	sched_free(run->sched);
	keeper_free(&run->keeper);
	bills_free(&run->bills);
	router_free(&run->router);
	free(run->rights.at);
	effects_free(&run->effects);
	effects_free(&run->other_effects);
	buffer_free(&run->bytes);
	buffer_free(&run->other_bytes);
	holdings_free(&run->before);
	holdings_free(&run->after);
	arena_free(&run->arena);
}

static struct command *decoded(struct arena *arena, const struct buffer *bytes)
{
	const uint8_t *at = (const uint8_t *)bytes->data;
	struct error error;
	struct command *command = command_decode(arena, &at, at + bytes->size, &error);

	if (!command)
		panic("a command is not read back: %s", error.text);
	return command;
}

void run_print_past(const struct run *run)
{
	struct arena arena = { 0 };
	struct buffer line = { 0 };

	for (int64_t n = max64(run->number - PAST + 1, 0); n <= run->number; n++) {
		const struct buffer *bytes = &run->past[n % PAST];
		if (bytes->size == 0)
			continue;
		buffer_clear(&line);
		command_print(&line, decoded(&arena, bytes));
		fprintf(stderr, "%lld: %s\n", (long long)n, line.data);
	}
	buffer_clear(&line);
	buffer_text(&line, "");
	effects_print(&line, &run->effects);
	fprintf(stderr, "The effects of the last one:\n%s", line.data);
	buffer_free(&line);
	arena_free(&arena);
}

static void property_run_remember(struct run *run, const struct command *command)
{
	struct buffer *bytes = &run->past[run->number % PAST];

	buffer_clear(bytes);
	command_encode(bytes, command);
	if (run->verbose == 0)
		return;
	struct buffer line = { 0 };
	command_print(&line, command);
	printf("%lld: %s\n", (long long)run->number, line.data);
	buffer_free(&line);
}

static void print_effects(const struct effects *effects)
{
	struct buffer text = { 0 };

	buffer_text(&text, "");
	effects_print(&text, effects);
	fputs(text.data, stdout);
	buffer_free(&text);
}

/* Prints both effects from the first line on that differs. */
static void print_difference(const struct effects *a, const struct effects *b)
{
	struct buffer x = { 0 }, y = { 0 };
	size_t same = 0;

	buffer_text(&x, "");
	buffer_text(&y, "");
	effects_print(&x, a);
	effects_print(&y, b);
	for (size_t i = 0; i < x.size && i < y.size && x.data[i] == y.data[i]; i++)
		if (x.data[i] == '\n')
			same = i + 1;
	fprintf(stderr, "after %zu bytes that are the same, the one core:\n%s\nthe other:\n%s\n",
	        same, x.data + same, y.data + same);
	buffer_free(&x);
	buffer_free(&y);
}

static void property_run_follow(struct run *run, struct shadow *shadow,
                                const struct command *command, bool applied,
                                const struct error *error)
{
	struct error other;

	arena_reset(&run->arena);
	if (shadow->decoded)
		command = decoded(&run->arena, &run->past[run->number % PAST]);
	effects_clear(&run->other_effects);
	bool other_applied = sched_apply(shadow->sched, command, &run->other_effects, &other);
	buffer_clear(&run->other_bytes);
	effects_encode(&run->other_bytes, &run->other_effects);
	bool same = other_applied == applied && run->bytes.size == run->other_bytes.size &&
	            memcmp(run->bytes.data, run->other_bytes.data, run->bytes.size) == 0;
	if (!same) {
		print_difference(&run->effects, &run->other_effects);
		panic("a core that was loaded after command %lld does something else (%s/%s)",
		      (long long)shadow->since, applied ? "applied" : error->text,
		      other_applied ? "applied" : other.text);
	}
	if (!applied && strcmp(error->text, other.text) != 0)
		panic("refused with '%s' and with '%s'", error->text, other.text);
}

static void follow_all(struct run *run, const struct command *command, bool applied,
                       const struct error *error)
{
	for (int i = 0; i < SHADOWS; i++) {
		struct shadow *shadow = &run->shadows[i];
		if (!shadow->sched)
			continue;
		property_run_follow(run, shadow, command, applied, error);
		if (run->number < shadow->until)
			continue;
		sched_check(shadow->sched);
		sched_free(shadow->sched);
		shadow->sched = NULL;
	}
}

/* Loads a core from what is kept, to follow for a while. */
static void load_shadow(struct run *run)
{
	for (int i = 0; i < SHADOWS; i++) {
		struct shadow *shadow = &run->shadows[i];
		if (shadow->sched)
			continue;
		int64_t length = 20 + (int64_t)(hash_number((uint64_t)run->number) % 30);
		*shadow = (struct shadow){ .sched = keeper_load(&run->keeper),
			                   .since = run->number,
			                   .until = run->number + length };
		sched_check(shadow->sched);
		run->loads++;
		return;
	}
}

/* The effects but for those about requests, which are not stored. */
static void encode_stored(struct buffer *bytes, const struct effects *effects)
{
	struct effects stored = *effects;

	stored.at = memory_alloc((effects->count + 1) * sizeof(*stored.at));
	stored.count = 0;
	for (size_t i = 0; i < effects->count; i++)
		if (effects->at[i].kind != EFFECT_ROUTE)
			stored.at[stored.count++] = effects->at[i];
	buffer_clear(bytes);
	effects_encode(bytes, &stored);
	free(stored.at);
}

/* A core that begins from what is stored, at whatever moment, does what the one
 * does that never stopped, but for the requests that only that knows. The new
 * core then follows for a while. */
static void restart(struct run *run, struct sched *fresh, const struct command *start)
{
	struct error error;
	struct buffer bytes = { 0 }, other = { 0 };

	effects_clear(&run->other_effects);
	if (!sched_apply(fresh, start, &run->other_effects, &error))
		panic("a scheduler does not start: %s", error.text);
	encode_stored(&bytes, &run->effects);
	encode_stored(&other, &run->other_effects);
	if (bytes.size != other.size || memcmp(bytes.data, other.data, bytes.size) != 0) {
		print_difference(&run->effects, &run->other_effects);
		panic("a scheduler that starts from what is stored does something else");
	}
	buffer_free(&bytes);
	buffer_free(&other);
	sched_check(fresh);
	run->restarts++;
	for (int i = 0; i < SHADOWS; i++) {
		if (run->shadows[i].sched)
			continue;
		run->shadows[i] = (struct shadow){ .sched = fresh,
			                           .since = run->number,
			                           .until = run->number + 50 };
		return;
	}
	sched_free(fresh);
}

static bool is_time_to_load(const struct run *run)
{
	if (run->number < 2000)
		return true;
	if (run->number == run->last_refused && run->number % 8 == 0)
		return true;
	return run->number % (run->number < CLOSELY ? 50 : 1499) == 0;
}

static bool is_sampled(const struct run *run)
{
	return run->number < CLOSELY || run->number % 53 == 0;
}

static void sample_bustle(struct bustle *bustle, const struct keeper *keeper)
{
	bustle->samples++;
	for (size_t i = 0; i < keeper_job_state_count(keeper); i++)
		bustle->waiting += keeper_job_state(keeper, i)->state == JOB_PENDING;
	for (size_t i = 0; i < keeper_gpu_count(keeper); i++)
		bustle->capacity_mib += keeper_gpu(keeper, i)->capacity_mib;
	for (size_t i = 0; i < keeper_reservation_count(keeper); i++) {
		const struct reservation_record *reservation = keeper_reservation(keeper, i);
		bool claim = reservation->phase == PHASE_CLAIM;
		bustle->claims += claim;
		bustle->rights += !claim;
		for (int64_t p = 0; p < reservation->parts.count && !claim; p++)
			bustle->used_mib += reservation->parts.at[p * PART_WIDTH + PART_MIB];
	}
}

static void count_grants(struct run *run)
{
	for (size_t i = 0; i < run->effects.count; i++)
		run->granted += run->effects.at[i].kind == EFFECT_START ||
		                run->effects.at[i].kind == EFFECT_LOAD;
}

static int64_t last_reservation(const struct run *run)
{
	const struct meta_record *meta = keeper_find(&run->keeper, RECORD_META, 1, 0);

	return meta ? meta->last_reservation_id : 0;
}

/* What was submitted is kept from now on. */
static void check_submitted(const struct run *run)
{
	int64_t first = run->effects.reply_id, count = run->effects.reply_count;

	for (int64_t id = first; id < first + max64(count, 1); id++)
		if (!keeper_find(&run->keeper, RECORD_JOB, id, 0) ||
		    !keeper_find(&run->keeper, RECORD_JOB_STATE, id, 0))
			panic("job-%lld was submitted, and is not kept", (long long)id);
}

/* Requests are not records: a core that is loaded knows none. */
static void note_volatile(struct run *run, const struct command *command)
{
	switch (command->kind) {
	case COMMAND_REQUEST:
	case COMMAND_REQUEST_DONE:
	case COMMAND_REQUEST_RENEW:
		run->volatile_state = true;
		break;
	case COMMAND_RESET_REQUESTS:
	case COMMAND_START:
	case COMMAND_CLOCK:
		run->volatile_state = false;
		break;
	default:
		break;
	}
}

static void property_run_keep(struct run *run, const struct command *command)
{
	bool pass = command->kind == COMMAND_PASS, sampled = is_sampled(run);
	int64_t last_id = last_reservation(run), now_ms = sched_meta(run->sched)->now_ms;

	if (pass && sampled)
		holdings_count(&run->before, &run->keeper);
	check_effects(&run->keeper, command, &run->effects);
	check_evictions(&run->keeper, &run->router, command, &run->effects, now_ms);
	new_rights(&run->rights, &run->keeper, &run->effects);
	keeper_apply(&run->keeper, &run->effects);
	bills_add(&run->bills, &run->effects);
	router_follow(&run->router, &run->keeper, command, &run->effects, now_ms);
	note_volatile(run, command);
	check_new_rights(&run->rights, &run->keeper, last_id);
	check_replicas(&run->keeper, command, &run->effects, last_id);
	check_grants(&run->keeper, command, &run->effects, last_id);
	if (command->kind == COMMAND_SUBMIT)
		check_submitted(run);
	count_grants(run);
	if (!sampled)
		return;
	check_jobs(&run->keeper, pass);
	check_slots(&run->keeper);
	if (run->number % BILLS == 0)
		bills_check(&run->bills, &run->keeper, run->sched);
	router_compare(&run->router, &run->keeper, run->sched);
	sched_check(run->sched);
	if (pass) {
		holdings_count(&run->after, &run->keeper);
		check_bounds(&run->keeper, &run->before, &run->after);
	}
}

bool run_command(struct run *run, const struct command *command)
{
	struct error error;
	struct sched *fresh = NULL;

	property_run_remember(run, command);
	if (command->kind == COMMAND_START && command->now_ms >= sched_meta(run->sched)->now_ms &&
	    run->number > 0)
		fresh = keeper_load(&run->keeper);
	effects_clear(&run->effects);
	bool applied = sched_apply(run->sched, command, &run->effects, &error);
	buffer_clear(&run->bytes);
	effects_encode(&run->bytes, &run->effects);
	run->digest = hash_combine(run->digest, hash_bytes(run->bytes.data, run->bytes.size));
	if (!applied) {
		run->refused++;
		run->last_refused = run->number;
		if (run->effects.count > 0 || error.code == ERROR_NONE)
			panic("refused, with effects or without a reason: %s", error.text);
	}
	if (run->verbose > 1)
		print_effects(&run->effects);
	follow_all(run, command, applied, &error);
	if (fresh)
		restart(run, fresh, command);
	if (applied)
		property_run_keep(run, command);
	else if (is_sampled(run))
		sched_check(run->sched);
	if (run->number % 101 == 0)
		sample_bustle(&run->bustle, &run->keeper);
	bool reset = command->kind == COMMAND_RESET_REQUESTS || command->kind == COMMAND_START ||
	             command->kind == COMMAND_CLOCK;
	if (!run->volatile_state && (reset || is_time_to_load(run)))
		load_shadow(run);
	run->number++;
	return applied;
}

void run_nothing(struct run *run, const struct command *pass)
{
	run_command(run, pass);
	if (run->effects.count == 0)
		return;
	struct buffer text = { 0 };
	effects_print(&text, &run->effects);
	panic("a pass after a complete one has effects:\n%s", text.data);
}
