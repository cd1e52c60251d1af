/* schema.h - the tables of the store, as they follow from the descriptions of records */
#ifndef STORE_SCHEMA_H
#define STORE_SCHEMA_H

#include "core/record/effects.h"
#include "core/record/record.h"

/* Both databases have the same tables; only the names of types differ. */
enum dialect { DIALECT_SQLITE, DIALECT_POSTGRES };

#define TABLE_TYPES_MAX 2 /* kinds of records that share a row */
#define TABLE_COLUMNS_MAX 96
#define TABLES_MAX (RECORD_KINDS + 1)

/* A column holds one field of one of the table's records. */
struct column {
	const char *name;
	const struct record_field *field;
	int of; /* which of the table's types */
};

/* A row is one record, or several that share their key: `jobs` has what was
 * asked and what became of it in one row, so that a submission is one row. The
 * first `keys` columns are the primary key. */
struct table {
	char name[48];
	const struct record_type *types[TABLE_TYPES_MAX];
	int type_count;
	struct column columns[TABLE_COLUMNS_MAX];
	int column_count, keys;
	bool is_log;     /* history: not loaded */
	bool is_revised; /* a log whose rows may be written again, under their keys */
};

/* Something of the service's own, which the core does not know: API tokens, the
 * audit log, notifications that are still to be delivered. A text under a kind
 * and a key, each of at most 200 bytes. */
struct kept {
	const char *kind, *key;
	const char *value; /* in a batch, NULL: it is forgotten */
};

struct schema {
	struct table tables[TABLES_MAX];
	int count;
	const struct table *events;
	struct table kept; /* of struct kept; not among `tables`: its keys are texts */
	/* Where the records of a kind are. */
	struct {
		const struct table *table;
		int of;
	} kinds[RECORD_KINDS];
};

/* Fills it from record_types and event_type: a new kind of record becomes a
 * table and a new field a column by themselves. Must not be moved afterwards. */
void schema_init(struct schema *schema);

/* The table with this name, or NULL. */
const struct table *schema_table(const struct schema *schema, const char *name);
/* The columns of a table's `of`-th type: from first to last - 1. The keys come
 * before the first of them, except that they belong to the first type. */
void table_range(const struct table *table, int of, int *first, int *last);

#endif
