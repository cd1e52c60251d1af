/* gpu_view.h - a GPU as people read it: its ledger, its owners, and its measurements */
#ifndef API_NODE_GPU_VIEW_H
#define API_NODE_GPU_VIEW_H

#include "api/read/catalogue.h"
#include "api/read/identity.h"
#include "wire/text/json_writer.h"

struct agents;
struct service;

/* Who asks. The catalogue is locked. */
struct gpu_view {
	const struct service *service;
	const struct identity *identity;
	bool with_holders; /* others' work is shown without names */
};

/* The GPU as an object in an array, under the names that scripts know (`total_memory` ...),
 * and those of the ledger. */
void gpu_view_write(struct json_writer *json, const struct gpu_view *view,
                    const struct node_record *node, const struct gpu_record *gpu);
/* A hash of everything that gpu_view_write() shows, measurements excepted. */
uint64_t gpu_view_digest(const struct catalogue *catalogue, const struct agents *agents,
                         const struct node_record *node, const struct gpu_record *gpu);

#endif
