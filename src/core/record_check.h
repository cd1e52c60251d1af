/* record_check.h - whether stored records can be what a scheduler wrote */
#ifndef CORE_RECORD_CHECK_H
#define CORE_RECORD_CHECK_H

#include "base/error.h"
#include "core/record/record.h"

struct sched;

/* Loading trusts a store that keeps what it was given, and nothing else: a
 * record that no scheduler could have written, or that does not go with those
 * before it, is refused with the reason. Called before the record is taken in. */
bool record_check(const struct sched *sched, enum record_kind kind, const void *record,
                  struct error *error);
/* Checks all records together, after the last one was loaded and before anything is derived
 * from them. */
bool record_check_all(const struct sched *sched, struct error *error);

#endif
