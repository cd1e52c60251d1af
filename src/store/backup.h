/* backup.h - a copy of everything in one file, made while a scheduler works; and back */
#ifndef STORE_BACKUP_H
#define STORE_BACKUP_H

#include "store/store.h"

/* A backup is a SQLite database with the same tables, whatever database it was
 * made of; so it can be looked at, restored to either, and used to move from
 * one to the other. */

/* Copies a consistent snapshot of the database to a new file at `path`, which appears only
 * when it is complete and synced. A scheduler may keep running. False with a reason, and no
 * file, if that fails or the path exists. */
bool backup_write(const struct store_options *from, const char *path, struct error *error);

/* How far ids and terms are moved on by a restore, from the larger of the
 * backup's and the database's: nodes and people may know of some that were given
 * out after the backup was made. */
#define RESTORE_GAP 1000000

/* Replaces everything in the database with a backup. Refused while a scheduler
 * leads there, where the backup cannot be loaded, and where the database is not
 * empty and `replace` is false. After a restore that did not finish no scheduler
 * starts on the database until it is restored again. */
bool backup_restore(const struct store_options *to, const char *path, bool replace,
                    struct error *error);

#endif
