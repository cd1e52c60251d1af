/* sql.h - the statements of both databases, made from the schema */
#ifndef STORE_SQL_H
#define STORE_SQL_H

#include "base/buffer.h"
#include "store/schema.h"

/* All append to `sql`, without a semicolon. Every table but a log has, behind
 * its columns, `archived`: kept for readers, not loaded. */

/* CREATE TABLE; and a column's definition, as ALTER TABLE ADD COLUMN takes it. */
void sql_create(struct buffer *sql, const struct table *table, enum dialect dialect);
void sql_column(struct buffer *sql, const struct column *column, enum dialect dialect);
/* "id", "name", ... : columns from first to last - 1, with the prefix before each. */
void sql_columns(struct buffer *sql, const struct table *table, int first, int last,
                 const char *prefix);

/* SQLite: one row per statement. Parameters are the columns in their order, then
 * archived; for an update, the keys, then that type's columns; for an archiving
 * or a deletion, the keys. */
void sql_insert_row(struct buffer *sql, const struct table *table, bool replace);
void sql_update_row(struct buffer *sql, const struct table *table, int of);
void sql_archive_row(struct buffer *sql, const struct table *table);
void sql_delete_row(struct buffer *sql, const struct table *table);

/* PostgreSQL: any number of rows per statement. Parameters are arrays, one for
 * each of the parameters above. */
void sql_upsert_rows(struct buffer *sql, const struct table *table);
void sql_update_rows(struct buffer *sql, const struct table *table, int of);
void sql_archive_rows(struct buffer *sql, const struct table *table);
void sql_delete_rows(struct buffer *sql, const struct table *table);

/* SELECT the keys and the columns of one type FROM the table, and then `rest`. */
void sql_select(struct buffer *sql, const struct table *table, int of, const char *rest);

/* A text as a literal. */
void sql_literal(struct buffer *sql, const char *text);

#endif
