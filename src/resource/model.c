/* model.c - the table of models */
#include "resource/table.h"

/* clang-format off */
static const struct resource_field split_fields[] = {
FIELD(gpus, .label = "GPUs", .help = "The number of GPUs",
	.kind = VALUE_INTEGER, .unit = UNIT_GPUS, .least = 1, .most = PARTS_MAX, .required = true,
	.setter = SET_ANY_TIME, .option = { .absent = "part of --splits" })
FIELD(memory_mb, .label = "Memory", .help = "Memory on each GPU; 0: gpu_memory_mb divided",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB, .most = MIB_MAX, .initial = "0",
	.setter = SET_ANY_TIME, .option = { .absent = "estimated by --from" })
};
/* clang-format on */
static const struct resource split_resource = {
	.name = "split",
	.help = "A number of GPUs that a model may be split over",
	FIELDS_OF(split_fields),
	.no_form = "the dashboard shows models, and does not change them",
};

/* clang-format off */
static const struct resource_field model_waiting_fields[] = {
FIELD(tenant_id, .label = "Tenant", .help = "The tenant; null: administrators",
	.kind = VALUE_ID, .refers = "tenant", .empty = EMPTY_NULL)
FIELD(requests, .label = "Requests", .help = "Requests that wait",
	.kind = VALUE_INTEGER)
FIELD(oldest_wait_ms, .label = "Oldest wait", .help = "How long the oldest of them has waited",
	.kind = VALUE_INTEGER, .unit = UNIT_MILLISECONDS)
FIELD(tokens, .label = "Tokens", .help = "Tokens that they are expected to take",
	.kind = VALUE_INTEGER)
};
/* clang-format on */
static const struct resource model_waiting_resource = {
	.name = "model_waiting",
	.help = "A tenant whose requests wait for a model",
	FIELDS_OF(model_waiting_fields),
	.no_form = "the dashboard shows models, and does not change them",
};

static const struct resource_field model_fields[] = {
#include "resource/model_table.h"
};

const struct resource model_resource = {
	.id = RESOURCE_MODEL,
	.name = "model",
	.help = "A model that is served, and how",
	FIELDS_OF(model_fields),
	.schema = "Model",
	.request_schema = "ModelRequest",
	.null_is_default = true,
	.no_proto = "models are managed over REST",
	.no_form = "the dashboard shows models, and does not change them",
};
