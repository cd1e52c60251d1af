/* node.c - the tables of nodes and GPUs */
#include "resource/table.h"

/* clang-format off */
static const struct resource_field holder_fields[] = {
#define HOLDER_ROWS
#include "resource/node_table.h"
#undef HOLDER_ROWS
};
static const struct resource holder_resource = {
	.name = "holder", .help = "A reservation on a GPU", FIELDS_OF(holder_fields), .schema = "Holder",
};

static const struct resource_field gpu_fields[] = {
#define GPU_ROWS
#include "resource/node_table.h"
#undef GPU_ROWS
};
const struct resource gpu_resource = {
	.id = RESOURCE_GPU, .name = "gpu", .help = "A GPU, and what its memory is used for",
	FIELDS_OF(gpu_fields), .schema = "GPU", .no_proto = "GetClusterStatus has the totals",
};

static const struct resource_field node_fields[] = {
#define NODE_ROWS
#include "resource/node_table.h"
#undef NODE_ROWS
};
const struct resource node_resource = {
	.id = RESOURCE_NODE, .name = "node", .help = "A machine with GPUs",
	FIELDS_OF(node_fields), .schema = "Node", .no_proto = "NodeStatus has the totals",
};
/* clang-format on */
