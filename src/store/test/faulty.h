/* faulty.h - a file system and an allocator for SQLite that fail when they are told to */
#ifndef STORE_TEST_FAULTY_H
#define STORE_TEST_FAULTY_H

#include <stdbool.h>
#include <stdint.h>

/* What fails, and how. */
enum fault {
	FAULT_NONE,
	FAULT_WRITE,  /* an I/O error, with half of it written */
	FAULT_FULL,   /* the disk is full */
	FAULT_SYNC,   /* a sync fails */
	FAULT_MEMORY, /* no memory is to be had */
};

#define FAULTY_VFS "faulty"

/* Registers the file system, as FAULTY_VFS, and the allocator. To be called
 * before anything else of SQLite is. Nothing is really synced. */
void faulty_install(void);
/* From now on, the `nth` of these operations fails, and `times` - 1 after it. */
void faulty_arm(enum fault fault, int64_t nth, int64_t times);
/* Nothing fails any more; whether something did. */
bool faulty_disarm(void);

/* The power is lost: of all that was written and not synced since, only some
 * pieces, by chance from the seed, have reached the files. No connection may be
 * open any more; they must have been closed by faulty_forget(). */
void faulty_power_loss(uint64_t seed);
/* From now on all writes fail, silently for SQLite's clean-up at closing, so that
 * a connection can be closed as if the process had died. Ends with
 * faulty_power_loss. */
void faulty_freeze(void);

#endif
