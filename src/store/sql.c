/* sql.c - the statements of both databases, made from the schema */
#include "store/sql.h"

static const char *type_name(const struct record_field *field, enum dialect dialect)
{
	bool postgres = dialect == DIALECT_POSTGRES;
	if (field->kind == FIELD_TEXT || field->kind == FIELD_ROWS || field->words)
		return "TEXT";
	if (field->kind == FIELD_FLAG)
		return "BOOLEAN";
	if (field->kind == FIELD_INT64 && postgres)
		return "BIGINT";
	return "INTEGER";
}

static void put_default(struct buffer *sql, const struct record_field *field, enum dialect dialect)
{
	if (field->kind == FIELD_TEXT)
		buffer_text(sql, "''");
	else if (field->kind == FIELD_ROWS)
		buffer_text(sql, "'[]'");
	else if (field->words)
		buffer_print(sql, "'%s'", field->words->at[0]);
	else if (field->kind == FIELD_FLAG && dialect == DIALECT_POSTGRES)
		buffer_text(sql, "false");
	else
		buffer_text(sql, "0");
}

void sql_column(struct buffer *sql, const struct column *column, enum dialect dialect)
{
	buffer_print(sql, "\"%s\" %s NOT NULL DEFAULT ", column->name,
	             type_name(column->field, dialect));
	put_default(sql, column->field, dialect);
}

void sql_columns(struct buffer *sql, const struct table *table, int first, int last,
                 const char *prefix)
{
	for (int i = first; i < last; i++)
		buffer_print(sql, "%s%s\"%s\"", i == first ? "" : ", ", prefix,
		             table->columns[i].name);
}

void sql_create(struct buffer *sql, const struct table *table, enum dialect dialect)
{
	bool sqlite = dialect == DIALECT_SQLITE;
	bool is_rowid = sqlite && table->keys == 1;

	buffer_print(sql, "CREATE TABLE \"%s\" (", table->name);
	for (int i = 0; i < table->column_count; i++) {
		buffer_text(sql, i == 0 ? "" : ", ");
		if (i == 0 && is_rowid)
			buffer_print(sql, "\"%s\" INTEGER PRIMARY KEY", table->columns[0].name);
		else
			sql_column(sql, &table->columns[i], dialect);
	}
	if (!table->is_log)
		buffer_print(sql, ", archived BOOLEAN NOT NULL DEFAULT %s", sqlite ? "0" : "false");
	if (!is_rowid) {
		buffer_text(sql, ", PRIMARY KEY (");
		sql_columns(sql, table, 0, table->keys, "");
		buffer_text(sql, ")");
	}
	buffer_text(sql, sqlite && !is_rowid ? ") WITHOUT ROWID" : ")");
}

static void put_archived(struct buffer *sql, const struct table *table)
{
	if (!table->is_log)
		buffer_text(sql, ", archived");
}

void sql_insert_row(struct buffer *sql, const struct table *table, bool replace)
{
	int count = table->column_count + (table->is_log ? 0 : 1);
	buffer_print(sql, "INSERT%s INTO \"%s\" (", replace ? " OR REPLACE" : "", table->name);
	sql_columns(sql, table, 0, table->column_count, "");
	put_archived(sql, table);
	buffer_text(sql, ") VALUES (");
	for (int i = 0; i < count; i++)
		buffer_text(sql, i == 0 ? "?" : ",?");
	buffer_text(sql, ")");
}

/* "a" = ?1 AND "b" = ?2 */
static void put_keys_equal(struct buffer *sql, const struct table *table)
{
	for (int i = 0; i < table->keys; i++)
		buffer_print(sql, "%s\"%s\" = ?%d", i == 0 ? "" : " AND ", table->columns[i].name,
		             i + 1);
}

void sql_update_row(struct buffer *sql, const struct table *table, int of)
{
	int first, last;
	table_range(table, of, &first, &last);
	buffer_print(sql, "UPDATE \"%s\" SET ", table->name);
	for (int i = first; i < last; i++)
		buffer_print(sql, "%s\"%s\" = ?%d", i == first ? "" : ", ", table->columns[i].name,
		             i - first + table->keys + 1);
	buffer_text(sql, " WHERE ");
	put_keys_equal(sql, table);
}

void sql_archive_row(struct buffer *sql, const struct table *table)
{
	buffer_print(sql, "UPDATE \"%s\" SET archived = 1 WHERE ", table->name);
	put_keys_equal(sql, table);
}

void sql_delete_row(struct buffer *sql, const struct table *table)
{
	buffer_print(sql, "DELETE FROM \"%s\" WHERE ", table->name);
	put_keys_equal(sql, table);
}

static const char *array_type(const struct record_field *field)
{
	if (field->kind == FIELD_TEXT || field->kind == FIELD_ROWS || field->words)
		return "text[]";
	return field->kind == FIELD_FLAG ? "boolean[]" : "bigint[]";
}

/* $1::bigint[], ... for the keys (where they are not among the columns) and for
 * the columns from first to last - 1; what `number` counts. */
static void put_arrays(struct buffer *sql, const struct table *table, int first, int last,
                       int *number)
{
	for (int i = first; i < last; i++) {
		buffer_print(sql, "%s$%d::%s", *number == 0 ? "" : ", ", *number + 1,
		             array_type(table->columns[i].field));
		(*number)++;
	}
}

void sql_upsert_rows(struct buffer *sql, const struct table *table)
{
	int number = 0;
	buffer_print(sql, "INSERT INTO \"%s\" (", table->name);
	sql_columns(sql, table, 0, table->column_count, "");
	put_archived(sql, table);
	buffer_text(sql, ") SELECT * FROM unnest(");
	put_arrays(sql, table, 0, table->column_count, &number);
	if (!table->is_log)
		buffer_print(sql, ", $%d::boolean[]", number + 1);
	buffer_text(sql, ") ON CONFLICT (");
	sql_columns(sql, table, 0, table->keys, "");
	buffer_text(sql, ") DO UPDATE SET ");
	for (int i = table->keys; i < table->column_count; i++)
		buffer_print(sql, "%s\"%s\" = excluded.\"%s\"", i == table->keys ? "" : ", ",
		             table->columns[i].name, table->columns[i].name);
	if (!table->is_log)
		buffer_text(sql, ", archived = excluded.archived");
}

/* unnest(...) AS new (keys, columns) WHERE t.keys = new.keys */
static void put_from_arrays(struct buffer *sql, const struct table *table, int first, int last)
{
	int number = 0;
	buffer_text(sql, "unnest(");
	put_arrays(sql, table, 0, table->keys, &number);
	put_arrays(sql, table, first, last, &number);
	buffer_text(sql, ") AS new (");
	sql_columns(sql, table, 0, table->keys, "");
	if (last > first) {
		buffer_text(sql, ", ");
		sql_columns(sql, table, first, last, "");
	}
	buffer_text(sql, ") WHERE ");
	for (int i = 0; i < table->keys; i++)
		buffer_print(sql, "%sold.\"%s\" = new.\"%s\"", i == 0 ? "" : " AND ",
		             table->columns[i].name, table->columns[i].name);
}

void sql_update_rows(struct buffer *sql, const struct table *table, int of)
{
	int first, last;
	table_range(table, of, &first, &last);
	buffer_print(sql, "UPDATE \"%s\" AS old SET ", table->name);
	for (int i = first; i < last; i++)
		buffer_print(sql, "%s\"%s\" = new.\"%s\"", i == first ? "" : ", ",
		             table->columns[i].name, table->columns[i].name);
	buffer_text(sql, " FROM ");
	put_from_arrays(sql, table, first, last);
}

void sql_archive_rows(struct buffer *sql, const struct table *table)
{
	buffer_print(sql, "UPDATE \"%s\" AS old SET archived = true FROM ", table->name);
	put_from_arrays(sql, table, 0, 0);
}

void sql_delete_rows(struct buffer *sql, const struct table *table)
{
	buffer_print(sql, "DELETE FROM \"%s\" AS old USING ", table->name);
	put_from_arrays(sql, table, 0, 0);
}

void sql_select(struct buffer *sql, const struct table *table, int of, const char *rest)
{
	int first, last;
	table_range(table, of, &first, &last);
	buffer_text(sql, "SELECT ");
	sql_columns(sql, table, 0, table->keys, "");
	buffer_text(sql, ", ");
	sql_columns(sql, table, first, last, "");
	buffer_print(sql, " FROM \"%s\" %s", table->name, rest);
}

void sql_literal(struct buffer *sql, const char *text)
{
	buffer_bytes(sql, "'", 1);
	for (; *text; text++) {
		if (*text == '\'')
			buffer_bytes(sql, "'", 1);
		buffer_bytes(sql, text, 1);
	}
	buffer_text(sql, "'");
}
