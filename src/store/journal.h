/* journal.h - the commands as they were applied, for diagnosis and replay */
#ifndef STORE_JOURNAL_H
#define STORE_JOURNAL_H

#include "core/record/command.h"

/* Files in a directory, named by the number of their first command. A file is
 * closed when it is large enough, and the oldest are deleted. Nothing is synced:
 * a crash of the machine may cost the tail, and recovery never reads a journal.
 * Each command has its number among all that were ever applied (the store's
 * `commands`), so a journal can be replayed upon a backup, and gaps show.
 *
 * A file is a line of text, then frames: size of the payload (4 bytes, as all
 * numbers little-endian), how many commands (4), number of the first (8),
 * checksum of all that and the payload (8), payload: each command's size as a
 * varint and its encoding. */
struct journal;

struct journal_options {
	const char *directory; /* made where it is not there */
	int64_t file_bytes;    /* 0: 64 MiB */
	int64_t files;         /* kept at the most; 0: 8 */
};

/* Never NULL; what goes wrong is told by journal_append. */
struct journal *journal_new(const struct journal_options *options);
void journal_free(struct journal *journal);

/* Appends a batch's commands, of which `first` is the number of the first. False
 * with a reason if they could not be written; the next append begins a new file. */
bool journal_append(struct journal *journal, int64_t first, int64_t count,
                    const struct buffer *commands, struct error *error);

/* One command of a journal; valid during the call. False ends the reading. */
typedef bool (*journal_command)(void *context, int64_t number, const struct command *command,
                                struct error *error);

/* Reads all commands with a number above `after`, in order, from all files of
 * the directory. A torn end of a file is passed over; `*missing`, which may be
 * NULL, counts the numbers that should have been there and were not. False with
 * a reason if the callback said so, or nothing can be read. */
bool journal_read(const char *directory, int64_t after, journal_command each, void *context,
                  int64_t *missing, struct error *error);
/* Reads the frames in memory that is one file's content. */
bool journal_read_bytes(const uint8_t *data, size_t size, int64_t *next, journal_command each,
                        void *context, int64_t *missing, struct error *error);

#endif
