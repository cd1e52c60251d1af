/* spool.h - usage that survives the gateway
 *
 * A file that is mapped into memory: what is written there is the kernel's, and outlives SIGKILL,
 * though not a loss of power. A row is one request. While it runs its totals are kept up to date;
 * it is ended by one store, after which it has a number and is counted, once, by the scheduler.
 * Rows that a gateway left running are ended as cut by the next that opens the file. */
#ifndef GATEWAY_STATE_SPOOL_H
#define GATEWAY_STATE_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { SPOOL_TEXT_MAX = 64 };

enum spool_state { SPOOL_FREE, SPOOL_RUNNING, SPOOL_ENDED };

/* As it is in the file. `state` is written last. */
struct spool_row {
	int64_t boot, number;
	int64_t tenant_id, model_id;
	int64_t prompt, cached, completion;
	int32_t is_error, is_cut;
	char key[SPOOL_TEXT_MAX], adapter[SPOOL_TEXT_MAX];
	_Atomic int32_t state;
	int32_t reserved;
};

struct spool;

/* Opens or makes the file, which nobody else has open. NULL with a reason. `boot` is this
 * gateway's, such as the time: it is raised above all that are in the file. */
struct spool *spool_open(const char *path, int64_t boot, struct error *error);
/* What runs stays in the file. */
void spool_close(struct spool *spool);
int64_t spool_boot(const struct spool *spool);

/* A row for a request that begins. Never NULL: the file grows. */
struct spool_row *spool_begin(struct spool *spool, int64_t tenant_id, int64_t model_id,
                              const char *key, const char *adapter);
/* The request has ended with what the row says. */
void spool_end(struct spool *spool, struct spool_row *row);
/* The request never was: nothing is to be counted. */
void spool_drop(struct spool *spool, struct spool_row *row);

/* The numbers that have ended and are not counted: of the oldest boot that has any, the range that
 * comes next. False: there are none. */
struct spool_range {
	int64_t boot, from, to;
};
bool spool_next(const struct spool *spool, struct spool_range *range);
/* Calls `take` for each row of the range. */
void spool_each(const struct spool *spool, const struct spool_range *range,
                void (*take)(void *context, const struct spool_row *row), void *context);
/* The scheduler has counted all of the boot up to the number. */
void spool_counted(struct spool *spool, int64_t boot, int64_t to);
/* Boots of which something is left, up to `most`. */
int spool_boots(const struct spool *spool, int64_t *boots, int most);
/* Rows that have ended and are not counted, or run. */
size_t spool_used(const struct spool *spool);

#endif
