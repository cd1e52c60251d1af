/* check.c - whether what is stored makes sense, and what can be done where it does not */
#include "store/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "store/backend.h"
#include "store/sql.h"

/* Those with an id from `first` to `last` - 1. */
struct range {
	int64_t first, last;
};
static const struct range everything = { 0, INT64_MAX };

/* A trial: a core is loaded with everything but what is left out. Jobs and slots
 * that are not in their range are left out, too, with all that is theirs. */
struct trial {
	struct store *store;
	struct check *check;
	struct sched *sched;
	struct text_map left_out; /* "kind/first/second" of each finding */
	enum record_kind kind;
	struct range jobs, slots;
	bool notes; /* refused records become findings */
};

void check_free(struct check *check)
{
	free(check->findings);
	*check = (struct check){ 0 };
}

static void name_record(struct buffer *name, enum record_kind kind, struct record_key key)
{
	buffer_clear(name);
	buffer_print(name, "%d/%lld/%lld", (int)kind, (long long)key.first, (long long)key.second);
}

static void check_note(struct trial *trial, enum record_kind kind, struct record_key key,
                       const char *reason)
{
	struct check *check = trial->check;
	struct buffer name = { 0 };
	name_record(&name, kind, key);
	text_map_put(&trial->left_out, name.data, trial);
	buffer_free(&name);
	array_reserve(check->findings, check->capacity, check->count + 1);
	struct check_finding *finding = &check->findings[check->count++];
	*finding = (struct check_finding){ .kind = kind, .key = key };
	snprintf(finding->reason, sizeof(finding->reason), "%s", reason);
}

static bool is_left_out(const struct trial *trial, struct record_key key)
{
	struct buffer name = { 0 };
	if (trial->left_out.count == 0)
		return false;
	name_record(&name, trial->kind, key);
	bool found = text_map_get(&trial->left_out, name.data) != NULL;
	buffer_free(&name);
	return found;
}

static bool try_record(void *context, const void *record, struct error *error)
{
	struct trial *trial = context;
	struct record_key key = record_key(trial->kind, record);
	struct error reason;
	if (is_left_out(trial, key))
		return true;
	(void)error;
	if (!sched_load(trial->sched, trial->kind, record, &reason) && trial->notes)
		check_note(trial, trial->kind, key, reason.text);
	return true;
}

static void put_range(struct buffer *sql, const char *column, struct range range)
{
	buffer_print(sql, "%s >= %lld AND %s < %lld", column, (long long)range.first, column,
	             (long long)range.last);
}

static bool has_column(const struct table *table, const char *name)
{
	for (int i = 0; i < table->column_count; i++)
		if (strcmp(table->columns[i].name, name) == 0)
			return true;
	return false;
}

/* Which of the table's rows are part of a job or a slot that is in its range. A
 * reservation has the id of its slot if it has no job. */
static void put_ranges(struct buffer *sql, const struct trial *trial, const struct table *table)
{
	if (strcmp(table->name, "jobs") == 0) {
		buffer_text(sql, " AND ");
		put_range(sql, "id", trial->jobs);
	} else if (strcmp(table->name, "slots") == 0) {
		buffer_text(sql, " AND ");
		put_range(sql, "id", trial->slots);
	} else if (strcmp(table->name, "reservations") == 0) {
		buffer_text(sql, " AND (job_id > 0 AND ");
		put_range(sql, "job_id", trial->jobs);
		buffer_text(sql, " OR job_id = 0 AND ");
		put_range(sql, "id", trial->slots);
		buffer_text(sql, ")");
	} else if (has_column(table, "job_id")) {
		buffer_text(sql, " AND ");
		put_range(sql, "job_id", trial->jobs);
	}
}

static bool try_table(struct trial *trial, const struct table *table, int of, struct error *error)
{
	struct backend *backend = store_backend(trial->store);
	struct buffer rest = { 0 };
	buffer_text(&rest, "WHERE NOT archived");
	put_ranges(&rest, trial, table);
	buffer_print(&rest, " ORDER BY %s", table->keys == 1 ? "1" : "1, 2");
	bool done = backend->scan(backend, table, of, rest.data, try_record, trial, error);
	buffer_free(&rest);
	return done;
}

/* Loads; true if the database could be read. `*fits` says whether the core accepted all of it. */
static bool try_load(struct trial *trial, bool *fits, struct error *error)
{
	const struct schema *schema = store_schema(trial->store);
	bool done = true;

	trial->sched = sched_new();
	for (trial->kind = 0; done && trial->kind < RECORD_KINDS; trial->kind++) {
		const struct table *table = schema->kinds[trial->kind].table;
		if (!table->is_log)
			done = try_table(trial, table, schema->kinds[trial->kind].of, error);
	}
	*fits = done && sched_load_end(trial->sched, &trial->check->last);
	if (*fits)
		sched_check(trial->sched);
	sched_free(trial->sched);
	return done;
}

static void note_culprit(struct trial *trial, bool job, int64_t id)
{
	char reason[ERROR_TEXT_MAX];

	memcpy(reason, trial->check->last.text, sizeof(reason));
	check_note(trial, job ? RECORD_JOB : RECORD_SLOT, (struct record_key){ .first = id },
	           reason);
	if (job)
		check_note(trial, RECORD_JOB_STATE, (struct record_key){ .first = id }, reason);
}

/* Finds the jobs or slots of the range that the core does not accept, by bisection. */
static bool find_among(struct trial *trial, struct range *which, struct range range,
                       struct error *error)
{
	bool fits = false;
	*which = range;
	if (!try_load(trial, &fits, error))
		return false;
	if (fits || range.first == range.last)
		return true;
	if (range.last - range.first > 1) {
		int64_t middle = range.first + (range.last - range.first) / 2;
		return find_among(trial, which, (struct range){ range.first, middle }, error) &&
		       find_among(trial, which, (struct range){ middle, range.last }, error);
	}
	note_culprit(trial, which == &trial->jobs, range.first);
	return true;
}

static bool find_in_table(struct trial *trial, struct range *which, const char *table,
                          struct error *error)
{
	struct buffer sql = { 0 };
	int64_t highest = 0;

	buffer_print(&sql, "SELECT max(id) FROM %s WHERE NOT archived", table);
	bool done = backend_number(store_backend(trial->store), sql.data, &highest, error) &&
	            find_among(trial, which, (struct range){ 1, highest + 1 }, error);
	*which = everything;
	buffer_free(&sql);
	return done;
}

/* Each refused by itself is known by now. Slots are looked at without any jobs, so
 * that no job is blamed for a slot; then jobs, unless it is none of their doing. */
static bool find_culprits(struct trial *trial, struct error *error)
{
	bool fits = false;

	trial->jobs = (struct range){ 1, 1 };
	if (!find_in_table(trial, &trial->slots, "slots", error) || !try_load(trial, &fits, error))
		return false;
	return !fits || find_in_table(trial, &trial->jobs, "jobs", error);
}

/* Leaves out what is refused until nothing is: what depends on it is refused next. */
static bool leave_out(struct trial *trial, bool *fits, struct error *error)
{
	size_t before;
	trial->notes = true;
	trial->jobs = trial->slots = everything;
	do {
		before = trial->check->count;
		if (!try_load(trial, fits, error))
			return false;
	} while (trial->check->count > before);
	trial->notes = false;
	return true;
}

static bool add_fault(void *context, const char *const *values, struct error *error)
{
	struct buffer *faults = context;

	(void)error;
	if (values[0] && strcmp(values[0], "ok") != 0)
		buffer_print(faults, "the file is damaged: %s\n", values[0]);
	return true;
}

bool check_file(struct store *store, struct buffer *faults, struct error *error)
{
	struct backend *backend = store_backend(store);

	return backend->dialect != DIALECT_SQLITE ||
	       backend->query(backend, "PRAGMA integrity_check(100)", add_fault, faults, error);
}

bool check_run(struct store *store, struct check *check, struct error *error)
{
	struct trial trial = { .store = store, .check = check };
	bool fits = false;
	bool done = leave_out(&trial, &fits, error);
	if (done && !fits) {
		size_t before = check->count;
		done = find_culprits(&trial, error);
		if (done && check->count > before)
			done = leave_out(&trial, &fits, error);
	}
	if (fits)
		error_clear(&check->last);
	text_map_free(&trial.left_out);
	return done;
}

void check_print(const struct check *check, struct buffer *text)
{
	for (size_t i = 0; i < check->count; i++) {
		const struct check_finding *finding = &check->findings[i];
		const struct record_type *type = record_type(finding->kind);
		buffer_print(text, "%s %lld", type->name, (long long)finding->key.first);
		if (type->keys > 1)
			buffer_print(text, "/%lld", (long long)finding->key.second);
		buffer_print(text, ": %s\n", finding->reason);
	}
	if (check->last.code != ERROR_NONE)
		buffer_print(text, "and then: %s\n", check->last.text);
}

/* Where the text of a record to be kept goes. */
struct keeping {
	struct buffer *sql;
	const struct check_finding *finding;
};

static bool keep_record(void *context, const void *record, struct error *error)
{
	const struct keeping *keeping = context;
	struct buffer text = { 0 };
	(void)error;
	record_print(&text, keeping->finding->kind, record);
	buffer_text(keeping->sql, "INSERT INTO quarantine (record, reason) VALUES (");
	sql_literal(keeping->sql, text.data);
	buffer_text(keeping->sql, ", ");
	sql_literal(keeping->sql, keeping->finding->reason);
	buffer_text(keeping->sql, ");");
	buffer_free(&text);
	return true;
}

static void put_key(struct buffer *sql, const struct table *table, struct record_key key)
{
	buffer_print(sql, "\"%s\" = %lld", table->columns[0].name, (long long)key.first);
	if (table->keys > 1)
		buffer_print(sql, " AND \"%s\" = %lld", table->columns[1].name,
		             (long long)key.second);
}

/* Statements that keep and remove one finding's record. */
static bool put_removal(struct store *store, const struct check_finding *finding,
                        struct buffer *sql, struct error *error)
{
	const struct schema *schema = store_schema(store);
	const struct table *table = schema->kinds[finding->kind].table;
	struct backend *backend = store_backend(store);
	struct keeping keeping = { sql, finding };
	struct buffer rest = { 0 };

	buffer_text(&rest, "WHERE ");
	put_key(&rest, table, finding->key);
	bool done = backend->scan(backend, table, schema->kinds[finding->kind].of, rest.data,
	                          keep_record, &keeping, error);
	buffer_free(&rest);
	buffer_print(sql, "DELETE FROM \"%s\" WHERE ", table->name);
	put_key(sql, table, finding->key);
	buffer_text(sql, ";");
	return done;
}

bool check_repair(struct store *store, const struct check *check, struct error *error)
{
	struct backend *backend = store_backend(store);
	struct buffer sql = { 0 };
	bool done = true;
	buffer_text(&sql, "BEGIN; CREATE TABLE IF NOT EXISTS quarantine "
	                  "(record TEXT NOT NULL, reason TEXT NOT NULL);");
	for (size_t i = 0; done && i < check->count; i++)
		done = put_removal(store, &check->findings[i], &sql, error);
	buffer_text(&sql, "COMMIT");
	done = done && backend->execute(backend, sql.data, error);
	buffer_free(&sql);
	return done;
}
