/* drive.h - a workload driven into a store, for tests */
#ifndef STORE_TEST_DRIVE_H
#define STORE_TEST_DRIVE_H

#include "store/test/scratch.h"
#include "store/test/workload.h"

/* All fail the test where something goes wrong. */

struct store *drive_open(const struct scratch *scratch, const char *name);
/* A store that leads. */
struct store *drive_lead(const struct scratch *scratch);
/* A store that reads. */
struct store *drive_read(const struct scratch *scratch);
/* A workload with a core that has what is stored. */
void drive_load(struct store *store, struct workload *workload, uint64_t seed);
/* Runs `count` commands, several to a batch, with a mirror (or NULL) of the stored rows. */
void drive_steps(struct store *store, struct workload *workload, struct mirror *mirror, int steps);
/* That the store has what the mirror has. */
void drive_compare(struct mirror *mirror, struct store *store);

#endif
