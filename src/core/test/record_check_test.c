/* record_check_test.c - records that contradict themselves are refused with a reason */
#include "core/test/busy.h"
#include "core/test/property_keeper.h"
#include "core/test/slots.h"

/* Keeps the effects of every command. */
static void record_check_keep(struct harness *h, const struct command *command, bool applied)
{
	(void)command;
	if (applied)
		keeper_apply(h->watcher, &h->effects);
}

static const void *record_at(const struct keeper *keeper, enum record_kind kind, size_t at)
{
	return keeper->tables[kind].entries[at]->record;
}

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
	const void *record = record_at(keeper, kind, at);
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
			struct record_key key = record_key(kind, record_at(keeper, kind, i));
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
	effects_free(&effects);
}

/* Requests for every model, news of every slot, and their end. */
static void use_models(struct sched *sched, int64_t now_ms)
{
	for (int64_t id = 1; id <= sched_meta(sched)->last_model_id && id < 20; id++)
		apply_anything(sched,
		               (struct command){ .kind = COMMAND_REQUEST,
		                                 .request = { .request_id = id, .model_id = id } },
		               now_ms);
	for (int64_t id = 1; id <= sched_meta(sched)->last_reservation_id && id < 100; id++) {
		struct command command = { .kind =
			                       id % 3 ? COMMAND_SLOT_READY : COMMAND_SLOT_EXITED };
		command.slot.reservation_id = id;
		apply_anything(sched, command, now_ms);
	}
	sched_check(sched);
	apply_anything(sched, (struct command){ .kind = COMMAND_TIME }, now_ms + 20000);
	apply_anything(sched, (struct command){ .kind = COMMAND_PASS, .units = 5 }, now_ms + 20000);
	sched_check(sched);
	apply_anything(sched, (struct command){ .kind = COMMAND_RESET_REQUESTS }, now_ms + 20000);
	for (int64_t id = 1; id <= sched_meta(sched)->last_model_id && id < 20; id++)
		apply_anything(sched, (struct command){ .kind = COMMAND_REMOVE_MODEL, .id = id },
		               now_ms + 20000);
	sched_check(sched);
}

/* What was loaded must be usable: passes, time, news of every task, an end for all. */
static void use(struct sched *sched)
{
	int64_t now_ms = sched_meta(sched)->now_ms;

	use_models(sched, now_ms);
	apply_anything(sched, (struct command){ .kind = COMMAND_PASS, .units = INT64_MAX }, now_ms);
	sched_check(sched);
	for (int64_t id = 1; id <= sched_meta(sched)->last_reservation_id && id < 100; id++) {
		struct command command = { .kind = COMMAND_MEMORY_RELEASED };
		command.task.reservation_id = id;
		apply_anything(sched, command, now_ms);
	}
	apply_anything(sched, (struct command){ .kind = COMMAND_PASS, .units = INT64_MAX },
	               now_ms + 1000);
	for (int64_t id = 1; id <= sched_meta(sched)->last_job_id && id < 50; id++)
		apply_anything(sched, (struct command){ .kind = COMMAND_CANCEL, .id = id },
		               now_ms + 2000);
	apply_anything(sched, (struct command){ .kind = COMMAND_TIME }, now_ms + 999999999);
	sched_check(sched);
}

/* Whether the records with this flaw are refused; with a reason, or else usable. */
static bool record_check_is_refused(const struct keeper *keeper, struct flaw flaw)
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

/* Slots in every state, on a node of their own. */
static void load_models(struct harness *h, int64_t tenant)
{
	static const int64_t splits[] = { 1, 0, 2, 40000 };
	struct model_record given = model_of(tenant, "idle", 70000);
	const int64_t users[] = { tenant };
	const struct device devices[] = { device_of("n0-gpu0", 0, 80000),
		                          device_of("n0-gpu1", 1, 80000) };
	struct node_report_command node = report_of("n0", devices, 2);
	int64_t loads[16];

	node.labels = "pool=serve";
	must(h, report(h, node));
	given.node_labels = "pool=serve";
	load(h, put_model(h, given));
	grow_cold(h);
	given.name = "large";
	load(h, put_model(h, given));
	grow_cold(h);
	given.name = "waits";
	given.splits = (struct rows){ splits, 2 };
	given.users = (struct rows){ users, 1 };
	request(h, put_model(h, given));
	pass_only(h, loads);
	given = model_of(tenant, "ready", 20000);
	given.node_labels = "pool=serve";
	given.pinned = true;
	load(h, put_model(h, given));
	given.name = "loads";
	given.pinned = false;
	given.memory_mib = 10000;
	given.min_replicas = given.max_replicas = 2;
	put_model(h, given);
	given.name = "fails";
	given.memory_mib = 500;
	given.min_replicas = 0;
	int64_t failing = put_model(h, given);
	request(h, failing);
	pass_only(h, loads);
	const struct slot *slot = slot_of(h, failing);
	if (slot->r.state == SLOT_LOADING)
		must(h, to_slot(h, COMMAND_SLOT_EXITED, slot->r.id, "no", true));
	h->stop_count = 0;
}

/* The records of a core in the middle of its work. */
static void keep_busy_core(struct keeper *keeper)
{
	struct harness *h = harness_new();

	struct config_record config = *sched_config(h->sched);

	h->watch = record_check_keep;
	h->watcher = keeper;
	/* The default policy learns for milliseconds in each of thousands of cores. */
	config.policy = POLICY_FRAGMENT;
	configure(h, config);
	add_node(h, "n1", 4, 80000);
	add_node(h, "n2", 4, 80000);
	int64_t top = put_tenant(h, sharing("top", 0, QUOTA_UNSET));
	int64_t first = put_tenant(h, sharing("first", top, 3 * WHOLE_GPU));
	int64_t second = put_tenant(h, sharing("second", top, 3 * WHOLE_GPU));
	load_models(h, put_tenant(h, sharing("serving", 0, QUOTA_UNSET)));
	submit_all_kinds(h, first);
	live_on(h, 2);
	end_some(h, 5);
	submit_all_kinds(h, second);
	pass(h);
	struct job_record large = whole(second, 4);
	large.tasks = 2;
	submit(h, large);
	h->now_ms += 1000;
	pass(h);
	must(h, harness_apply(h, (struct command){ .kind = COMMAND_PASS, .units = 3 }));
	harness_free(h);
}

static void what_was_kept_is_there(const struct keeper *keeper)
{
	static const enum record_kind wanted[] = {
		RECORD_META, RECORD_CONFIG,    RECORD_TENANT, RECORD_NODE,        RECORD_GPU,
		RECORD_JOB,  RECORD_JOB_STATE, RECORD_TASK,   RECORD_RESERVATION, RECORD_PROMISE,
		RECORD_MIX,  RECORD_MODEL,     RECORD_SLOT,
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
	case RECORD_SLOT:
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
	assert_false(record_check_is_refused(&keeper, (struct flaw){ .kind = RECORD_KINDS }));
	for (enum record_kind kind = 0; kind < RECORD_KINDS; kind++)
		for (size_t i = 0; i < keeper.tables[kind].count; i++) {
			bool refused = record_check_is_refused(
			    &keeper, (struct flaw){ .kind = kind, .at = i });
			if (is_needed(&keeper, kind, record_at(&keeper, kind, i)) && !refused)
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
			if (!record_check_is_refused(
				&keeper, (struct flaw){ .kind = kind, .at = i, .twice = true }))
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
	const void *record = record_at(keeper, kind, at);
	int64_t is = field_number(field, record);
	const int64_t others[] = { is < INT64_MAX ? is + 1 : 1,
		                   is - 1,
		                   0,
		                   -1,
		                   7,
		                   1000,
		                   100000,
		                   INT32_MAX,
		                   INT64_MAX,
		                   INT64_MIN,
		                   INT64_C(1) << 44 };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct arena arena = { 0 };
		void *changed = record_copy(&arena, kind, record);
		set_number(field, changed, others[i]);
		record_check_is_refused(
		    keeper, (struct flaw){ .kind = kind, .at = at, .instead = changed });
		arena_free(&arena);
	}
}

/* Corrupts the numbers in its rows, and removes a row. */
static void try_rows(const struct keeper *keeper, enum record_kind kind, size_t at,
                     const struct record_field *field)
{
	static const int64_t others[] = { 0, 1, -1, 5, INT64_MAX, INT64_MIN };
	struct arena arena = { 0 };
	void *changed = record_copy(&arena, kind, record_at(keeper, kind, at));
	struct rows *rows = (struct rows *)(void *)((char *)changed + field->offset);
	int64_t *numbers = (int64_t *)rows->at;

	for (int64_t i = 0; i < rows->count * field->width && i < 2 * field->width; i++)
		for (size_t n = 0; n < sizeof(others) / sizeof(others[0]); n++) {
			int64_t was = numbers[i];
			numbers[i] = others[n];
			record_check_is_refused(
			    keeper, (struct flaw){ .kind = kind, .at = at, .instead = changed });
			numbers[i] = was;
		}
	if (rows->count > 0) {
		rows->count--;
		record_check_is_refused(
		    keeper, (struct flaw){ .kind = kind, .at = at, .instead = changed });
	}
	arena_free(&arena);
}

static void try_text(const struct keeper *keeper, enum record_kind kind, size_t at,
                     const struct record_field *field)
{
	static const char *const others[] = { "", "n1", "first", "x=1\na=2", "\n", "n1-gpu0" };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct arena arena = { 0 };
		void *changed = record_copy(&arena, kind, record_at(keeper, kind, at));
		*(const char **)(void *)((char *)changed + field->offset) = others[i];
		record_check_is_refused(
		    keeper, (struct flaw){ .kind = kind, .at = at, .instead = changed });
		arena_free(&arena);
	}
}

/* A few records of each kind are enough: the first and the middle one. Under the
 * sanitizers, which are slow, the first alone. */
static size_t step_of(const struct keeper *keeper, enum record_kind kind)
{
#ifdef __SANITIZE_ADDRESS__
	return keeper->tables[kind].count;
#else
	return keeper->tables[kind].count / 2 + 1;
#endif
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
		cmocka_unit_test(records_of_which_one_is_missing_are_refused_or_usable),
		cmocka_unit_test(records_of_which_one_is_there_twice_are_refused),
		cmocka_unit_test(records_with_any_number_changed_are_refused_or_usable),
		cmocka_unit_test(a_kind_of_record_that_nobody_knows_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
