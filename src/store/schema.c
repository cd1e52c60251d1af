/* schema.c - the tables of the store, as they follow from the descriptions of records */
#include "store/schema.h"

#include <stdio.h>
#include <string.h>

/* Tables whose names are not the kind's with an s behind it. */
static const struct {
	enum record_kind kind;
	const char *table;
} names[] = {
	{ RECORD_META, "meta" },
	{ RECORD_CONFIG, "config" },
	{ RECORD_MIX, "mix" },
	{ RECORD_JOB_STATE, "jobs" },
	{ RECORD_NODE_CLASS, "node_classes" },
	{ RECORD_GUESS, "guesses" },
	{ RECORD_ACCURACY, "accuracies" },
};

#define KEPT_FIELDS(F, T) F(T, kind) F(T, key) F(T, value)
static const struct record_type kept_type = RECORD_TYPE("kept", 2, struct kept, KEPT_FIELDS);

static void name_table(char *name, size_t size, enum record_kind kind)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].kind == kind) {
			snprintf(name, size, "%s", names[i].table);
			return;
		}
	}
	snprintf(name, size, "%ss", record_type(kind)->name);
}

static struct table *schema_find(struct schema *schema, const char *name)
{
	for (int i = 0; i < schema->count; i++)
		if (strcmp(schema->tables[i].name, name) == 0)
			return &schema->tables[i];
	return NULL;
}

const struct table *schema_table(const struct schema *schema, const char *name)
{
	for (int i = 0; i < schema->count; i++)
		if (strcmp(schema->tables[i].name, name) == 0)
			return &schema->tables[i];
	return NULL;
}

static struct table *table_named(struct schema *schema, const char *name)
{
	struct table *table = schema_find(schema, name);
	if (table)
		return table;
	INVARIANT(schema->count < TABLES_MAX);
	table = &schema->tables[schema->count++];
	snprintf(table->name, sizeof(table->name), "%s", name);
	return table;
}

/* Adds the columns of a type; its keys are there already unless it is the first. */
static int table_extend(struct table *table, const struct record_type *type)
{
	INVARIANT(table->type_count < TABLE_TYPES_MAX);
	int of = table->type_count++;
	table->types[of] = type;
	if (of == 0)
		table->keys = type->keys;
	INVARIANT(type->keys == table->keys);
	for (int i = of == 0 ? 0 : type->keys; i < type->field_count; i++) {
		INVARIANT(table->column_count < TABLE_COLUMNS_MAX);
		table->columns[table->column_count++] =
		    (struct column){ type->fields[i].name, &type->fields[i], of };
	}
	return of;
}

void schema_init(struct schema *schema)
{
	*schema = (struct schema){ 0 };
	for (enum record_kind kind = 0; kind < RECORD_KINDS; kind++) {
		char name[sizeof(schema->tables[0].name)];
		name_table(name, sizeof(name), kind);
		struct table *table = table_named(schema, name);
		table->is_log = record_is_history(kind);
		table->is_revised = kind == RECORD_RUN || kind == RECORD_PRICE;
		schema->kinds[kind].table = table;
		schema->kinds[kind].of = table_extend(table, record_type(kind));
	}
	struct table *events = table_named(schema, "events");
	table_extend(events, &event_type);
	events->is_log = true;
	schema->events = events;
	schema->kept = (struct table){ .name = "kept", .is_log = true };
	table_extend(&schema->kept, &kept_type);
}

void table_range(const struct table *table, int of, int *first, int *last)
{
	*first = of == 0 ? table->keys : -1;
	*last = table->column_count;
	for (int i = table->keys; i < table->column_count; i++) {
		if (table->columns[i].of == of && *first < 0)
			*first = i;
		if (table->columns[i].of > of) {
			*last = i;
			break;
		}
	}
}
