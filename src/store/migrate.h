/* migrate.h - tables that are made, and brought from any older form to this one */
#ifndef STORE_MIGRATE_H
#define STORE_MIGRATE_H

#include "store/backend.h"

/* What this program writes. It grows when a table changes in another way than
 * by new columns and tables, which come by themselves; the step that does it is
 * in migrate.c. */
#define SCHEMA_VERSION 1
/* Written while a backup is being restored: nobody starts on half of it. */
#define SCHEMA_RESTORING (-1)

/* Makes the two tables that everything else hangs on: schema_version, leader. */
bool migrate_bootstrap(struct backend *backend, struct error *error);
/* True if there is a table of this name. */
bool migrate_exists(struct backend *backend, const char *table, bool *exists, struct error *error);
/* Brings the tables to this program's form. To be called in a transaction, so
 * that all of it happens or nothing. ERROR_CONFLICT where the database is newer:
 * its version is, or it has columns that this program does not know. */
bool migrate_run(struct backend *backend, struct error *error);
/* True if the tables have this program's form; ERROR_NOT_FOUND where there are
 * none, ERROR_CONFLICT where they differ. */
bool migrate_check(struct backend *backend, struct error *error);

#endif
