/* decision.c - the table of decisions */
#include "resource/table.h"

/* clang-format off */
static const struct resource_field line_fields[] = {
#define DECISION_GPU_ROWS
#include "resource/decision_table.h"
#undef DECISION_GPU_ROWS
};
static const struct resource line_resource = {
	.name = "decision_gpu", .help = "The arithmetic for one GPU", FIELDS_OF(line_fields),
};

static const struct resource_field victim_fields[] = {
#define VICTIM_ROWS
#include "resource/decision_table.h"
#undef VICTIM_ROWS
};
static const struct resource victim_resource = {
	.name = "victim", .help = "A task that makes room", FIELDS_OF(victim_fields),
};

static const struct resource_field evicted_fields[] = {
#define EVICTED_SLOT_ROWS
#include "resource/decision_table.h"
#undef EVICTED_SLOT_ROWS
};
static const struct resource evicted_resource = {
	.name = "evicted_slot", .help = "An idle slot that makes room", FIELDS_OF(evicted_fields),
};

static const struct resource_field decision_fields[] = {
#define DECISION_ROWS
#include "resource/decision_table.h"
#undef DECISION_ROWS
};
/* clang-format on */

const struct resource decision_resource = {
	.id = RESOURCE_DECISION,
	.name = "decision",
	.help = "A decision of the scheduler, with its arithmetic",
	FIELDS_OF(decision_fields),
	.schema = "Decision",
	.no_proto = "decisions are shown over REST",
};
