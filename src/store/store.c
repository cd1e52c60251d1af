/* store.c - the scheduler's records in a database: opened, led, loaded, written */
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/number_text.h"
#include "store/backend.h"
#include "store/cell.h"
#include "store/migrate.h"

enum { LEASE_MS = 2000, TIMEOUT_MS = 5000, RENEWALS_PER_LEASE = 4 };

/* `at` is where the leader's row is as far as we know. It is not known (`lost`)
 * from a failed write until the row has been read again. */
struct store {
	struct schema schema;
	struct store_options options;
	struct backend *backend;
	char holder[HOLDER_MAX];
	struct leader at;
	bool leads, lost;
	void (*watch)(void *context, enum record_kind kind, const void *record);
	void *watch_context;
};

/* Letters, digits, dots and dashes of the name: it becomes part of statements. */
static char *plain_name(const char *name)
{
	enum { NAME_MAX_BYTES = 40 };
	char *plain = memory_text(name && *name ? name : "scheduler");
	for (char *at = plain; *at; at++) {
		bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');
		if (!letter && !(*at >= '0' && *at <= '9') && *at != '.')
			*at = '-';
	}
	if (strlen(plain) > NAME_MAX_BYTES)
		plain[NAME_MAX_BYTES] = '\0';
	return plain;
}

/* A name that no other start has: the scheduler's own, and a random number. */
static void make_holder(char *holder, const char *name)
{
	uint64_t number = 0;
	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		panic("there are no random numbers to be had");
	snprintf(holder, HOLDER_MAX, "%s#%016llx", name, (unsigned long long)number);
}

static bool is_postgres(const char *database)
{
	return strncmp(database, "postgres://", 11) == 0 ||
	       strncmp(database, "postgresql://", 13) == 0 || strstr(database, "dbname=") ||
	       strstr(database, "host=");
}

struct store *store_new(const struct store_options *options)
{
	struct store *store = NEW(struct store);
	schema_init(&store->schema);
	store->options = *options;
	store->options.database = memory_text(options->database);
	store->options.name = plain_name(options->name);
	if (store->options.lease_ms == 0)
		store->options.lease_ms = LEASE_MS;
	if (store->options.timeout_ms == 0)
		store->options.timeout_ms = TIMEOUT_MS;
	make_holder(store->holder, store->options.name);
	store->backend = is_postgres(options->database)
	                     ? backend_postgres(&store->options, &store->schema, store->holder)
	                     : backend_sqlite(&store->options, &store->schema);
	return store;
}

const struct schema *store_schema(const struct store *store)
{
	return &store->schema;
}

bool store_is_postgres(const struct store *store)
{
	return store->backend->dialect == DIALECT_POSTGRES;
}

struct backend *store_backend(struct store *store)
{
	return store->backend;
}

struct store_position store_position(const struct store *store)
{
	return store->at.position;
}

int64_t store_renew_ms(const struct store *store)
{
	return store->options.lease_ms / RENEWALS_PER_LEASE;
}

/* Milliseconds since 1970 by the database's clock. */
static const char *clock_of(enum dialect dialect)
{
	return dialect == DIALECT_SQLITE
	           ? "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
	           : "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
}

static bool take_leader(void *context, const char *const *values, struct error *error)
{
	struct leader *leader = context;
	int64_t *const numbers[] = { &leader->position.term, &leader->position.batch,
		                     &leader->position.commands, &leader->silent_ms };
	snprintf(leader->holder, sizeof(leader->holder), "%s", values[0] ? values[0] : "");
	for (int i = 0; i < 4; i++)
		if (!values[i + 1] ||
		    !number_read(text_of(values[i + 1]), INT64_MIN, INT64_MAX, numbers[i]))
			return error_set(error, ERROR_CORRUPT, "the row in leader is unreadable");
	return true;
}

/* Reads the leader's row. To have it last, in a transaction that will change it:
 * PostgreSQL waits here for whoever is changing it. */
static bool read_leader(struct store *store, bool to_change, struct leader *leader,
                        struct error *error)
{
	struct backend *backend = store->backend;
	bool lock = to_change && backend->dialect == DIALECT_POSTGRES;
	struct buffer sql = { 0 };

	*leader = (struct leader){ .position.batch = -1 };
	buffer_print(&sql,
	             "SELECT holder, term, batch, commands, %s - renewed_ms FROM leader "
	             "WHERE id = 1%s",
	             clock_of(backend->dialect), lock ? " FOR UPDATE" : "");
	bool done = backend->query(backend, sql.data, take_leader, leader, error);
	buffer_free(&sql);
	if (done && leader->position.batch < 0)
		return error_set(error, ERROR_CORRUPT, "the table leader has no row");
	return done;
}

static bool same_name(const struct store *store, const struct leader *leader)
{
	const char *mark = strrchr(leader->holder, '#');
	size_t length = mark ? (size_t)(mark - leader->holder) : 0;
	return mark && strlen(store->options.name) == length &&
	       memcmp(leader->holder, store->options.name, length) == 0;
}

/* An earlier start of this scheduler has ended: a name has one at a time. With SQLite all
 * earlier ones have, because the file is locked by this one. */
static bool may_replace(const struct store *store, const struct leader *leader, struct error *error)
{
	if (store->backend->dialect == DIALECT_SQLITE || leader->holder[0] == '\0' ||
	    same_name(store, leader) || leader->silent_ms > store->options.lease_ms)
		return true;
	return error_set(error, ERROR_UNAVAILABLE, "another scheduler leads: %s", leader->holder);
}

/* In a transaction: the tables are brought up to date and the row is taken. The
 * term is the one that the core will begin (COMMAND_START adds one). Starts
 * that never wrote have the same term; the batch always differs. */
static bool take_row(struct store *store, struct leader *leader, struct error *error)
{
	struct backend *backend = store->backend;
	struct buffer sql = { 0 };

	if (!migrate_bootstrap(backend, error) || !read_leader(store, true, leader, error) ||
	    !may_replace(store, leader, error) || !migrate_run(backend, error))
		return false;
	leader->position.term = 0;
	if (!backend_number(backend, "SELECT term FROM meta WHERE id = 1", &leader->position.term,
	                    error))
		return false;
	leader->position.term++;
	leader->position.batch++;
	snprintf(leader->holder, sizeof(leader->holder), "%s", store->holder);
	buffer_print(&sql,
	             "UPDATE leader SET holder = '%s', term = %lld, batch = %lld, "
	             "renewed_ms = %s WHERE id = 1",
	             store->holder, (long long)leader->position.term,
	             (long long)leader->position.batch, clock_of(backend->dialect));
	bool done = backend->execute(backend, sql.data, error);
	buffer_free(&sql);
	return done;
}

static bool begin_taking(struct store *store, struct error *error)
{
	struct backend *backend = store->backend;
	if (backend->dialect == DIALECT_SQLITE)
		return backend->execute(backend, "BEGIN IMMEDIATE", error);
	/* Two that make the tables of a new database at once would stumble. */
	return backend->execute(backend, "BEGIN; SELECT pg_advisory_xact_lock(7234519)", error);
}

/* Whoever led before may be stopped in the middle of a transaction. */
static bool clear_way(struct store *store, struct error *error)
{
	struct leader leader;
	bool exists = false;
	if (store->backend->dialect == DIALECT_SQLITE)
		return true;
	if (!migrate_exists(store->backend, "leader", &exists, error))
		return false;
	if (!exists)
		return true;
	if (!read_leader(store, false, &leader, error))
		return false;
	return may_replace(store, &leader, error) &&
	       (leader.holder[0] == '\0' ||
	        store->backend->evict(store->backend, leader.holder, error));
}

static bool lead(struct store *store, struct error *error)
{
	struct backend *backend = store->backend;
	struct leader leader;

	if (!backend->is_connected(backend) && !backend->connect(backend, false, error))
		return false;
	if (!clear_way(store, error) || !begin_taking(store, error) ||
	    !take_row(store, &leader, error) || !backend->execute(backend, "COMMIT", error) ||
	    !backend->prepare(backend, error))
		return false;
	store->at = leader;
	store->leads = true;
	return true;
}

static enum store_outcome outcome_of(const struct error *error)
{
	return error->code == ERROR_UNAVAILABLE ? STORE_AGAIN : STORE_FAILED;
}

enum store_outcome store_lead(struct store *store, struct error *error)
{
	INVARIANT(!store->leads);
	if (lead(store, error))
		return STORE_DONE;
	store->backend->disconnect(store->backend);
	return outcome_of(error);
}

enum store_outcome store_read_only(struct store *store, struct error *error)
{
	struct backend *backend = store->backend;
	if ((backend->is_connected(backend) || backend->connect(backend, true, error)) &&
	    migrate_check(backend, error) && read_leader(store, false, &store->at, error))
		return STORE_DONE;
	backend->disconnect(backend);
	return outcome_of(error);
}

/* Where loaded records go. */
struct loading {
	struct store *store;
	struct sched *sched;
	enum record_kind kind;
};

static bool load_record(void *context, const void *record, struct error *error)
{
	const struct loading *loading = context;
	if (loading->store->watch)
		loading->store->watch(loading->store->watch_context, loading->kind, record);
	return sched_load(loading->sched, loading->kind, record, error);
}

/* Jobs before `jobs_from` are all archived: they are not even looked at. */
static bool load_kind(struct store *store, struct sched *sched, enum record_kind kind,
                      struct error *error)
{
	const struct table *table = store->schema.kinds[kind].table;
	struct loading loading = { store, sched, kind };
	struct buffer rest = { 0 };

	if (table->is_log)
		return true;
	buffer_text(&rest, "WHERE NOT archived");
	if (strcmp(table->name, "jobs") == 0 || strcmp(table->name, "tasks") == 0)
		buffer_print(&rest, " AND %s >= (SELECT jobs_from FROM leader WHERE leader.id = 1)",
		             table->columns[0].name);
	buffer_print(&rest, " ORDER BY %s", table->keys == 1 ? "1" : "1, 2");
	bool done = store->backend->scan(store->backend, table, store->schema.kinds[kind].of,
	                                 rest.data, load_record, &loading, error);
	buffer_free(&rest);
	return done;
}

void store_watch_load(struct store *store,
                      void (*each)(void *context, enum record_kind kind, const void *record),
                      void *context)
{
	store->watch = each;
	store->watch_context = context;
}

bool store_load(struct store *store, struct sched *sched, struct error *error)
{
	for (enum record_kind kind = 0; kind < RECORD_KINDS; kind++)
		if (!load_kind(store, sched, kind, error))
			return false;
	if (!sched_load_end(sched, error))
		return false;
	sched_check(sched);
	return true;
}

/* Where what is kept goes. */
struct giving {
	kept_row each;
	void *context;
};

static bool give_kept(void *context, const void *record, struct error *error)
{
	const struct giving *giving = context;
	return giving->each(giving->context, record, error);
}

bool store_load_kept(struct store *store, kept_row each, void *context, struct error *error)
{
	struct giving giving = { each, context };
	return store->backend->scan(store->backend, &store->schema.kept, 0, "", give_kept, &giving,
	                            error);
}

/* After a failed write: connects again, and looks whether it happened. */
static enum store_outcome find_out(struct store *store, bool *written, struct error *error)
{
	struct backend *backend = store->backend;
	struct leader found;

	if (!backend->is_connected(backend)) {
		if (!backend->connect(backend, false, error) ||
		    !backend->evict(backend, store->holder, error) ||
		    !backend->prepare(backend, error))
			return outcome_of(error);
	}
	if (!read_leader(store, true, &found, error))
		return outcome_of(error);
	if (strcmp(found.holder, store->holder) != 0) {
		error_set(error, ERROR_CONFLICT, "another scheduler has taken over: %s",
		          found.holder);
		return STORE_FAILED;
	}
	*written = found.position.batch == store->at.position.batch + 1;
	if (!*written && found.position.batch != store->at.position.batch) {
		error_set(error, ERROR_CORRUPT, "the row in leader is at batch %lld, not at %lld",
		          (long long)found.position.batch, (long long)store->at.position.batch);
		return STORE_FAILED;
	}
	store->lost = false;
	return STORE_DONE;
}

static void move_on(struct store *store, const struct batch *batch)
{
	store->at.position.batch++;
	store->at.position.commands += batch->command_count;
}

static enum store_outcome write_batch(struct store *store, const struct batch *batch,
                                      struct error *error)
{
	enum store_outcome outcome;
	bool written = false;

	switch (store->backend->write(store->backend, batch, &store->at, error)) {
	case WRITE_DONE:
		move_on(store, batch);
		return STORE_DONE;
	case WRITE_REFUSED:
		return STORE_FAILED;
	case WRITE_MOVED:
		/* An earlier try may have been committed while this one waited for it. */
		outcome = find_out(store, &written, error);
		if (outcome == STORE_DONE && written) {
			move_on(store, batch);
			return STORE_DONE;
		}
		if (outcome == STORE_DONE) {
			error_set(error, ERROR_CORRUPT, "the row in leader could not be moved");
			return STORE_FAILED;
		}
		break;
	default:
		outcome = STORE_AGAIN;
		break;
	}
	store->lost = true;
	store->backend->disconnect(store->backend);
	return outcome;
}

enum store_outcome store_commit(struct store *store, const struct batch *batch, struct error *error)
{
	bool written = false;

	INVARIANT(store->leads);
	if (store->lost) {
		enum store_outcome outcome = find_out(store, &written, error);
		if (outcome != STORE_DONE) {
			store->backend->disconnect(store->backend);
			return outcome;
		}
		if (written) {
			move_on(store, batch);
			return STORE_DONE;
		}
	}
	return write_batch(store, batch, error);
}

void store_free(struct store *store)
{
	if (!store)
		return;
	struct backend *backend = store->backend;
	if (store->leads && !store->lost && backend->is_connected(backend)) {
		char sql[HOLDER_MAX + 96];
		struct error ignored;
		snprintf(sql, sizeof(sql), "UPDATE leader SET holder = '' WHERE holder = '%s'",
		         store->holder);
		backend->execute(backend, sql, &ignored);
	}
	backend->disconnect(backend);
	backend->free(backend);
	free((char *)store->options.database);
	free((char *)store->options.name);
	free(store);
}
