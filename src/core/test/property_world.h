/* property_world.h - machines with GPUs that come, change, fail and go */
#ifndef CORE_TEST_PROPERTY_WORLD_H
#define CORE_TEST_PROPERTY_WORLD_H

#include "core/record/command.h"
#include "core/test/property_keeper.h"

#define MACHINES 12
#define CHIPS 8     /* of a machine */
#define INSTANCES 4 /* of a chip in MIG mode */

struct chip {
	int64_t number; /* its UUID is made of this */
	const char *model;
	int64_t capacity_mib, overhead_mib, foreign_mib, temperature_c, nvlink_group;
	int replicas;  /* names that it is advertised under */
	int instances; /* that it is cut into; 0: not in MIG mode */
	bool there, healthy;
};

struct machine {
	char name[16];
	bool built;
	int64_t boots;
	const char *zone, *rack, *labels;
	int64_t cpu_milli, host_bytes;
	struct chip chips[CHIPS];
	int chip_count;
};

/* What the hardware of a run is like. */
struct hardware {
	int machines; /* at the most */
	int chips;    /* of one, at the most */
	const char *models[2];
	int64_t capacity_mib[2]; /* of the models */
	int replicas;            /* of a chip, at the most */
	bool mig;
};

struct world {
	struct hardware hardware;
	struct machine machines[MACHINES];
	int64_t last_chip;
	uint64_t *random;
};

void world_init(struct world *world, uint64_t *random);
/* Gives the machine new hardware. */
void machine_build(struct world *world, struct machine *machine);
/* Something about it changes, for the worse or for the better. */
void machine_wear(struct world *world, struct machine *machine);
/* Takes a chip from one machine and puts it into another, where there is room. */
void machine_trade(struct world *world, struct machine *from, struct machine *to);
/* All chips there, healthy, cool, and nothing foreign on them. */
void machine_heal(struct machine *machine);

/* What the machine would report; lists and texts are in the arena. `honest`: it
 * leaves nothing out of what it runs, and measures nothing above what is reserved. */
struct node_report_command machine_report(struct world *world, const struct machine *machine,
                                          const struct keeper *keeper, bool honest,
                                          struct arena *arena);
/* Makes a report contradict itself. */
void report_spoil(struct world *world, struct node_report_command *report, struct arena *arena);

/* The record of the machine, or NULL where it is not known. */
const struct node_record *machine_record(const struct machine *machine,
                                         const struct keeper *keeper);

#endif
