/* slot.c - the table of slots */
#include "resource/table.h"

/* clang-format off */
static const struct resource_field part_fields[] = {
#define SLOT_PART_ROWS
#include "resource/slot_table.h"
#undef SLOT_PART_ROWS
};
static const struct resource part_resource = {
	.name = "slot_gpu", .help = "A GPU, or a part of one, that a slot has", FIELDS_OF(part_fields),
};

static const struct resource_field slot_fields[] = {
#define SLOT_ROWS
#include "resource/slot_table.h"
#undef SLOT_ROWS
};
/* clang-format on */

const struct resource slot_resource = {
	.id = RESOURCE_SLOT,
	.name = "slot",
	.help = "A loaded instance of a model",
	FIELDS_OF(slot_fields),
	.schema = "Slot",
	.no_proto = "slots are shown over REST",
};
