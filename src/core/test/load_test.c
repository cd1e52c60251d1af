/* load_test.c - a core that is loaded from records goes on as if it had never stopped */
#include "core/test/property_keeper.h"
#include "harness.h"

/* What is kept of a core, and another one that was loaded from it and is given
 * the same commands. */
struct store {
	struct keeper keeper;
	struct sched *twin;
	int every;    /* the twin is loaded anew after so many commands */
	int commands;
};

static void must_agree(const struct effects *one, const struct effects *other,
                       const struct command *command)
{
	struct buffer a = { 0 }, b = { 0 };

	effects_encode(&a, one);
	effects_encode(&b, other);
	if (a.size != b.size || memcmp(a.data, b.data, a.size) != 0) {
		struct buffer text = { 0 };
		command_print(&text, command);
		buffer_text(&text, "\nfirst:\n");
		effects_print(&text, one);
		buffer_text(&text, "\nloaded:\n");
		effects_print(&text, other);
		fail_msg("%s", text.data);
	}
	buffer_free(&a);
	buffer_free(&b);
}

static void follow(struct harness *h, const struct command *command, bool applied)
{
	struct store *store = h->watcher;
	struct effects effects = { 0 };
	struct error error;

	if (store->twin) {
		bool also = sched_apply(store->twin, command, &effects, &error);
		assert_int_equal(also, applied);
		sched_check(store->twin);
		must_agree(&h->effects, &effects, command);
		effects_free(&effects);
	}
	if (applied)
		keeper_apply(&store->keeper, &h->effects);
	if (store->every > 0 && ++store->commands % store->every == 0) {
		sched_free(store->twin);
		store->twin = keeper_load(&store->keeper);
	}
}

static void store_free(struct store *store)
{
	sched_free(store->twin);
	keeper_free(&store->keeper);
}

static struct tenant_record sharing(const char *name, int64_t parent_id, int64_t quota)
{
	struct tenant_record tenant = tenant_named(name);

	tenant.parent_id = parent_id;
	tenant.quota_gpu = quota;
	tenant.cost_per_gpu_hour = 1500000;
	return tenant;
}

/* Jobs of all kinds; the id of the first. */
static void submit_all_kinds(struct harness *h, int64_t tenant)
{
	static const int64_t parts[] = { 20000, 10000 };
	struct job_record gang = whole(tenant, 1), split = whole(tenant, 1);
	struct job_record uneven = job_of(tenant, GPU_UNEVEN, 2), array = memory(tenant, 9000);
	struct job_record late = whole(tenant, 4), plain = job_of(tenant, GPU_NONE, 0);
	struct job_record keyed = fraction(tenant, 250);

	gang.tasks = 3;
	gang.min_available = 2;
	gang.movable = true;
	gang.max_runtime_ms = split.max_runtime_ms = uneven.max_runtime_ms = 300000;
	array.max_runtime_ms = keyed.max_runtime_ms = late.max_runtime_ms = 200000;
	int64_t first = submit(h, gang);
	split.split_gpus = 3;
	submit(h, split);
	uneven.uneven = (struct rows){ parts, 2 };
	submit(h, uneven);
	array.array_limit = 2;
	must(h, harness_apply(h, (struct command){ .kind = COMMAND_SUBMIT,
	                                           .submit = { .job = array, .array_from = 1,
	                                                       .array_to = 4 } }));
	late.deadline_ms = h->now_ms + 90000;
	late.priority = 700;
	submit(h, late);
	plain.cpu_milli = 3000;
	plain.host_bytes = INT64_C(1) << 30;
	submit(h, plain);
	keyed.idempotency_key = "once";
	keyed.lease_loss = LEASE_STOP;
	submit(h, keyed);
	const int64_t after[] = { first, AFTER_ANY };
	struct job_record next = whole(tenant, 1);
	next.depends = (struct rows){ after, 1 };
	submit(h, next);
	must(h, apply_to(h, COMMAND_HOLD, h->effects.reply_id - 1));
}

/* Some rounds in which nodes answer, but for one stop in three. */
static void live_on(struct harness *h, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		pass(h);
		int count = h->stop_count;
		h->stop_count = 0;
		for (int s = 0; s < count; s++)
			if ((s + i) % 3 != 0 && map_get(&h->sched->reservations, h->stopped[s]))
				must(h, to_task(h, COMMAND_MEMORY_RELEASED, h->stopped[s], 0, false));
		h->now_ms += 17000;
	}
}

/* Ends every n-th job that runs. */
static void end_some(struct harness *h, int64_t n)
{
	for (int64_t id = 1; id <= h->sched->meta.last_job_id; id++)
		if (id % n == 0 && job(h, id) && placed(h, id) > 0)
			end_job(h, id, id % 4 == 0);
}

/* A life with something of everything in it. */
static void busy_life(struct harness *h)
{
	struct config_record config = config_default();

	config.retention_ms = 120000;
	configure(h, config);
	for (int i = 0; i < 3; i++)
		add_node(h, i == 0 ? "n1" : i == 1 ? "n2" : "n3", 4, 80000);
	int64_t top = put_tenant(h, sharing("top", 0, QUOTA_UNSET));
	int64_t first = put_tenant(h, sharing("first", top, 5 * WHOLE_GPU));
	int64_t second = put_tenant(h, sharing("second", top, 5 * WHOLE_GPU));
	submit_all_kinds(h, first);
	live_on(h, 2);
	submit_all_kinds(h, second);
	live_on(h, 3);
	report_gpu(h, "n1-gpu1", 75000, 80, true);
	end_some(h, 3);
	live_on(h, 2);
	drain(h, "n2", true);
	must(h, try_submit(h, fraction(first, 500)));
	set_node_state(h, "n3", NODE_UNKNOWN);
	submit_all_kinds(h, first);
	live_on(h, 3);
	set_node_state(h, "n3", NODE_LOST);
	report_gpu(h, "n1-gpu1", 0, 72, true);
	live_on(h, 2);
	drain(h, "n2", false);
	add_node(h, "n3", 4, 80000);
	end_some(h, 2);
	live_on(h, 3);
	must(h, harness_apply(h, (struct command){ .kind = COMMAND_START }));
	live_on(h, 1);
	for (int i = 0; i < 3; i++)
		add_node(h, i == 0 ? "n1" : i == 1 ? "n2" : "n3", 4, 80000);
	live_on(h, 3);
	must(h, apply_to_node(h, COMMAND_NODE_DEAD, "n1"));
	submit_all_kinds(h, second);
	live_on(h, 4);
	assert_false(try_submit(h, whole(99, 1)));
	end_some(h, 1);
	live_on(h, 4);
}

/* Lives a life that is followed by a core which is loaded anew every so often. */
static void live_with(int every)
{
	struct harness *h = harness_new();
	struct store store = { .every = every };

	h->watch = follow;
	h->watcher = &store;
	busy_life(h);
	assert_non_null(store.twin);
	store_free(&store);
	harness_free(h);
}

static void a_core_loaded_after_any_command_does_the_same_with_the_next(void **unused)
{
	(void)unused;
	live_with(1);
}

static void a_loaded_core_goes_on_as_if_it_had_never_stopped(void **unused)
{
	(void)unused;
	live_with(50);
	live_with(83);
}

static void a_gpu_that_was_over_is_told_to_be_free_again_just_once(void **unused)
{
	struct harness *h = harness_new();
	struct store store = { .every = 1 };

	(void)unused;
	h->watch = follow;
	h->watcher = &store;
	add_node(h, "n1", 1, 80000);
	int64_t tenant = put_tenant(h, tenant_named("lab"));
	int64_t id = submit(h, memory(tenant, 50000));
	pass(h);
	report_gpu(h, "n1-gpu0", 40000, 40, true);
	end_job(h, id, 0);
	report_gpu(h, "n1-gpu0", 30000, 40, true);
	store_free(&store);
	harness_free(h);
}

static void a_refused_change_of_a_tenant_leaves_no_trace(void **unused)
{
	struct harness *h = harness_new();
	struct store store = { .every = 1 };

	(void)unused;
	h->watch = follow;
	h->watcher = &store;
	add_node(h, "n1", 1, 80000);
	int64_t tenant = put_tenant(h, sharing("lab", 0, QUOTA_UNSET));
	submit(h, whole(tenant, 1));
	pass(h);
	for (int i = 0; i < 5; i++) {
		struct tenant_record wrong = sharing("lab", tenant, QUOTA_UNSET);
		wrong.id = tenant;
		h->now_ms += 12347;
		assert_false(harness_apply(h, (struct command){ .kind = COMMAND_PUT_TENANT,
		                                                .tenant = wrong }));
	}
	end_job(h, 1, 0);
	store_free(&store);
	harness_free(h);
}

static void an_empty_store_is_a_new_scheduler(void **unused)
{
	struct keeper keeper = { 0 };
	struct sched *sched = keeper_load(&keeper);

	(void)unused;
	sched_check(sched);
	sched_free(sched);
	keeper_free(&keeper);
}

/* Records that cannot be. */

struct flaw {
	enum record_kind kind;
	size_t at;
	const void *instead; /* NULL: the record is missing */
	bool twice;
};

static int compare_keys(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	if (x[0] != y[0])
		return x[0] < y[0] ? -1 : 1;
	return (x[1] > y[1]) - (x[1] < y[1]);
}

static bool load_record(struct sched *sched, const struct keeper *keeper, const struct flaw *flaw,
                        enum record_kind kind, size_t at, struct error *error)
{
	const void *record = keeper->tables[kind].records[at];
	bool flawed = flaw && flaw->kind == kind && flaw->at == at;

	if (flawed && !flaw->instead && !flaw->twice)
		return true;
	if (flawed && flaw->instead)
		record = flaw->instead;
	return sched_load(sched, kind, record, error) &&
	       (!flawed || !flaw->twice || sched_load(sched, kind, record, error));
}

/* Loads all that is kept but for the flaw, by kind and key. */
static bool load_with(struct sched *sched, const struct keeper *keeper, const struct flaw *flaw,
                      struct error *error)
{
	bool loaded = true;

	for (enum record_kind kind = 0; kind < RECORD_KINDS && loaded; kind++) {
		size_t count = keeper->tables[kind].count;
		int64_t(*order)[3] = memory_alloc((count + 1) * sizeof(*order));
		for (size_t i = 0; i < count; i++) {
			struct record_key key = record_key(kind, keeper->tables[kind].records[i]);
			order[i][0] = key.first;
			order[i][1] = key.second;
			order[i][2] = (int64_t)i;
		}
		qsort(order, count, sizeof(*order), compare_keys);
		for (size_t i = 0; i < count && loaded; i++)
			loaded = load_record(sched, keeper, flaw, kind, (size_t)order[i][2], error);
		free(order);
	}
	return loaded && sched_load_end(sched, error);
}

static void apply_anything(struct sched *sched, struct command command, int64_t now_ms)
{
	struct effects effects = { 0 };
	struct error error;

	command.now_ms = now_ms;
	sched_apply(sched, &command, &effects, &error);
	sched_check(sched);
	effects_free(&effects);
}

/* What was loaded must be usable: passes, time, news of every task, an end for all. */
static void use(struct sched *sched)
{
	int64_t now_ms = sched_meta(sched)->now_ms;

	apply_anything(sched, (struct command){ .kind = COMMAND_PASS, .units = INT64_MAX }, now_ms);
	for (int64_t id = 1; id <= sched_meta(sched)->last_reservation_id && id < 200; id++) {
		struct command command = { .kind = COMMAND_MEMORY_RELEASED };
		command.task.reservation_id = id;
		apply_anything(sched, command, now_ms);
	}
	apply_anything(sched, (struct command){ .kind = COMMAND_PASS, .units = INT64_MAX },
	               now_ms + 1000);
	for (int64_t id = 1; id <= sched_meta(sched)->last_job_id && id < 100; id++)
		apply_anything(sched, (struct command){ .kind = COMMAND_CANCEL, .id = id },
		               now_ms + 2000);
	apply_anything(sched, (struct command){ .kind = COMMAND_TIME }, now_ms + 999999999);
}

/* Whether the records with this flaw are refused; with a reason, or else usable. */
static bool is_refused(const struct keeper *keeper, struct flaw flaw)
{
	struct sched *sched = sched_new();
	struct error error = { 0 };
	bool loaded = load_with(sched, keeper, &flaw, &error);

	if (loaded)
		use(sched);
	else
		assert_true(error.code != ERROR_NONE && error.text[0] != 0);
	sched_free(sched);
	return !loaded;
}

/* The records of a core in the middle of its work. */
static void keep_busy_core(struct keeper *keeper)
{
	struct harness *h = harness_new();
	struct store store = { .every = 0 };

	h->watch = follow;
	h->watcher = &store;
	add_node(h, "n1", 4, 80000);
	add_node(h, "n2", 4, 80000);
	int64_t top = put_tenant(h, sharing("top", 0, QUOTA_UNSET));
	int64_t first = put_tenant(h, sharing("first", top, 3 * WHOLE_GPU));
	int64_t second = put_tenant(h, sharing("second", top, 3 * WHOLE_GPU));
	submit_all_kinds(h, first);
	live_on(h, 2);
	end_some(h, 5);
	submit_all_kinds(h, second);
	pass(h);
	struct job_record large = whole(second, 4);
	large.tasks = 2;
	submit(h, large);
	pass(h);
	must(h, harness_apply(h, (struct command){ .kind = COMMAND_PASS, .units = 3 }));
	*keeper = store.keeper;
	harness_free(h);
}

static void what_was_kept_is_there(const struct keeper *keeper)
{
	static const enum record_kind wanted[] = {
		RECORD_META,      RECORD_CONFIG, RECORD_TENANT,      RECORD_NODE,    RECORD_GPU, RECORD_JOB,
		RECORD_JOB_STATE, RECORD_TASK,   RECORD_RESERVATION, RECORD_PROMISE, RECORD_MIX,
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (keeper->tables[wanted[i]].count == 0)
			fail_msg("no %s is kept", record_type(wanted[i])->name);
}

/* Whether others name the record, so that it cannot be missing. */
static bool is_needed(const struct keeper *keeper, enum record_kind kind, const void *record)
{
	switch (kind) {
	case RECORD_META:
	case RECORD_CONFIG:
	case RECORD_JOB:
	case RECORD_JOB_STATE:
	case RECORD_RESERVATION:
		return true;
	case RECORD_TASK:
		return ((const struct task_record *)record)->reservation_id != 0 ||
		       ((const struct task_record *)record)->claim_id != 0;
	case RECORD_TENANT: /* the first is above the others, which have jobs */
	case RECORD_NODE:
		return keeper->tables[kind].count > 0;
	default:
		return false;
	}
}

static void records_of_which_one_is_missing_are_refused_or_usable(void **unused)
{
	struct keeper keeper = { 0 };

	(void)unused;
	keep_busy_core(&keeper);
	what_was_kept_is_there(&keeper);
	assert_false(is_refused(&keeper, (struct flaw){ .kind = RECORD_KINDS }));
	for (enum record_kind kind = 0; kind < RECORD_KINDS; kind++)
		for (size_t i = 0; i < keeper.tables[kind].count; i++) {
			bool refused = is_refused(&keeper, (struct flaw){ .kind = kind, .at = i });
			if (is_needed(&keeper, kind, keeper.tables[kind].records[i]) && !refused)
				fail_msg("loaded without a %s", record_type(kind)->name);
		}
	keeper_free(&keeper);
}

static void records_of_which_one_is_there_twice_are_refused(void **unused)
{
	struct keeper keeper = { 0 };

	(void)unused;
	keep_busy_core(&keeper);
	for (enum record_kind kind = RECORD_TENANT; kind <= RECORD_PROMISE; kind++)
		for (size_t i = 0; i < keeper.tables[kind].count; i++)
			if (!is_refused(&keeper, (struct flaw){ .kind = kind, .at = i, .twice = true }))
				fail_msg("loaded a %s twice", record_type(kind)->name);
	keeper_free(&keeper);
}

static void set_number(const struct record_field *field, void *record, int64_t number)
{
	char *at = (char *)record + field->offset;

	if (field->kind == FIELD_INT64)
		*(int64_t *)(void *)at = number;
	else if (field->kind == FIELD_INT32)
		*(int32_t *)(void *)at = (int32_t)number;
	else
		*(bool *)at = number & 1;
}

/* Tries the record with one of its numbers changed to something else. */
static void try_number(const struct keeper *keeper, enum record_kind kind, size_t at,
                       const struct record_field *field)
{
	const void *record = keeper->tables[kind].records[at];
	int64_t is = field_number(field, record);
	const int64_t others[] = { is < INT64_MAX ? is + 1 : 1, is - 1, 0, -1, 7, 1000, 100000,
		                   INT32_MAX, INT64_MAX, INT64_MIN, INT64_C(1) << 44 };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct arena arena = { 0 };
		void *changed = record_copy(&arena, kind, record);
		set_number(field, changed, others[i]);
		is_refused(keeper, (struct flaw){ .kind = kind, .at = at, .instead = changed });
		arena_free(&arena);
	}
}

/* The same for the numbers in its rows, and for a row less. */
static void try_rows(const struct keeper *keeper, enum record_kind kind, size_t at,
                     const struct record_field *field)
{
	static const int64_t others[] = { 0, 1, -1, 5, INT64_MAX, INT64_MIN };
	struct arena arena = { 0 };
	void *changed = record_copy(&arena, kind, keeper->tables[kind].records[at]);
	struct rows *rows = (struct rows *)(void *)((char *)changed + field->offset);
	int64_t *numbers = (int64_t *)rows->at;

	for (int64_t i = 0; i < rows->count * field->width && i < 2 * field->width; i++)
		for (size_t n = 0; n < sizeof(others) / sizeof(others[0]); n++) {
			int64_t was = numbers[i];
			numbers[i] = others[n];
			is_refused(keeper, (struct flaw){ .kind = kind, .at = at, .instead = changed });
			numbers[i] = was;
		}
	if (rows->count > 0) {
		rows->count--;
		is_refused(keeper, (struct flaw){ .kind = kind, .at = at, .instead = changed });
	}
	arena_free(&arena);
}

static void try_text(const struct keeper *keeper, enum record_kind kind, size_t at,
                     const struct record_field *field)
{
	static const char *const others[] = { "", "n1", "first", "x=1\na=2", "\n", "n1-gpu0" };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct arena arena = { 0 };
		void *changed = record_copy(&arena, kind, keeper->tables[kind].records[at]);
		*(const char **)(void *)((char *)changed + field->offset) = others[i];
		is_refused(keeper, (struct flaw){ .kind = kind, .at = at, .instead = changed });
		arena_free(&arena);
	}
}

/* A few records of each kind are enough: the first, the last and some between. */
static size_t step_of(const struct keeper *keeper, enum record_kind kind)
{
	return keeper->tables[kind].count / 4 + 1;
}

static void records_with_any_number_changed_are_refused_or_usable(void **unused)
{
	struct keeper keeper = { 0 };

	(void)unused;
	keep_busy_core(&keeper);
	for (enum record_kind kind = 0; kind < RECORD_DECISION; kind++)
		for (size_t at = 0; at < keeper.tables[kind].count; at += step_of(&keeper, kind))
			for (int f = 0; f < record_type(kind)->field_count; f++) {
				const struct record_field *field = &record_type(kind)->fields[f];
				if (field->kind == FIELD_ROWS)
					try_rows(&keeper, kind, at, field);
				else if (field->kind == FIELD_TEXT)
					try_text(&keeper, kind, at, field);
				else
					try_number(&keeper, kind, at, field);
			}
	keeper_free(&keeper);
}

static void a_kind_of_record_that_nobody_knows_is_refused(void **unused)
{
	struct sched *sched = sched_new();
	struct error error;

	(void)unused;
	assert_false(sched_load(sched, RECORD_KINDS, "", &error));
	assert_int_equal(error.code, ERROR_CORRUPT);
	sched_free(sched);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_core_loaded_after_any_command_does_the_same_with_the_next),
		cmocka_unit_test(a_loaded_core_goes_on_as_if_it_had_never_stopped),
		cmocka_unit_test(a_gpu_that_was_over_is_told_to_be_free_again_just_once),
		cmocka_unit_test(a_refused_change_of_a_tenant_leaves_no_trace),
		cmocka_unit_test(an_empty_store_is_a_new_scheduler),
		cmocka_unit_test(records_of_which_one_is_missing_are_refused_or_usable),
		cmocka_unit_test(records_of_which_one_is_there_twice_are_refused),
		cmocka_unit_test(records_with_any_number_changed_are_refused_or_usable),
		cmocka_unit_test(a_kind_of_record_that_nobody_knows_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
