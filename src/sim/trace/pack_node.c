/* pack_node.c - a node as the simulator follows it, where the simulator chooses nodes itself */
#include "sim/trace/pack_node.h"

#include <string.h>

void pack_node_begin(struct pack_node *node, const struct openb_node *is, int64_t first_gpu_id)
{
	*node = (struct pack_node){ .is = is,
		                    .first_gpu_id = first_gpu_id,
		                    .cpu_milli = is->cpu_milli,
		                    .memory_mib = is->memory_mib,
		                    .version = 1 };
	for (int64_t g = 0; g < is->gpu_count; g++)
		node->free_milli[g] = WHOLE_GPU;
}

static bool lists_model(const char *models, const char *model)
{
	size_t size = strlen(model);

	for (const char *at = models; *at; at += strcspn(at, "|"), at += *at == '|')
		if (strcspn(at, "|") == size && memcmp(at, model, size) == 0)
			return true;
	return *models == '\0';
}

bool pack_node_fits(const struct pack_node *node, const struct openb_kind *kind)
{
	int64_t fitting = 0;

	for (int64_t g = 0; g < node->is->gpu_count; g++)
		fitting += node->free_milli[g] >= kind->gpu_milli;
	return node->cpu_milli >= kind->cpu_milli && node->memory_mib >= kind->memory_mib &&
	       fitting >= kind->gpu_count && lists_model(kind->models, node->is->model);
}

void pack_node_take(struct pack_node *node, const struct openb_kind *kind, struct rows parts)
{
	node->version++;
	node->cpu_milli -= kind->cpu_milli;
	node->memory_mib -= kind->memory_mib;
	for (int64_t i = 0; i < parts.count; i++) {
		const int64_t *part = parts.at + i * PART_WIDTH;
		node->free_milli[part[PART_GPU] - node->first_gpu_id] -= (int32_t)part[PART_SHARE];
	}
}
