/* openb.c - the trace of a shared cluster: its nodes, and the pods that ask for them */
#include "sim/trace/openb.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "core/record/types.h"

#define MIB_OF_HOST_MAX (HOST_BYTES_MAX >> 20)

static bool openb_parse_node(struct openb *openb, const struct csv *csv, const int *column,
                             struct error *error)
{
	struct openb_node node;
	if (!csv_text(csv, column[0], &node.name, error) ||
	    !csv_number(csv, column[1], 0, CPU_MILLI_MAX, &node.cpu_milli, error) ||
	    !csv_number(csv, column[2], 0, MIB_OF_HOST_MAX, &node.memory_mib, error) ||
	    !csv_number(csv, column[3], 0, GPUS_PER_NODE_MAX, &node.gpu_count, error))
		return false;
	node.model = csv->cells[column[4]];
	if (node.gpu_count > 0 && !csv_text(csv, column[4], &node.model, error))
		return false;
	if (strpbrk(node.name, " =") || strchr(node.model, '|'))
		return error_set(error, ERROR_INVALID,
		                 "%s:%" PRId64
		                 ": names of nodes have no blank and no '=', models no '|'",
		                 csv->name, csv->line);
	node.name = arena_string(&openb->arena, node.name);
	node.model = arena_string(&openb->arena, node.model);
	array_reserve(openb->nodes, openb->node_capacity, openb->node_count + 1);
	openb->nodes[openb->node_count++] = node;
	openb->gpu_milli += node.gpu_count * WHOLE_GPU;
	return true;
}

static bool need_all(const struct csv *csv, const char *const *names, int count, int *columns,
                     struct error *error)
{
	for (int i = 0; i < count; i++)
		if (!csv_need(csv, names[i], &columns[i], error))
			return false;
	return true;
}

bool openb_read_nodes(struct openb *openb, struct csv *csv, struct error *error)
{
	static const char *const names[] = { "sn", "cpu_milli", "memory_mib", "gpu", "model" };
	struct text_map known = { 0 };
	int column[5], found = -1;

	if (need_all(csv, names, 5, column, error)) {
		while ((found = csv_next(csv, error)) > 0) {
			if (!openb_parse_node(openb, csv, column, error)) {
				found = -1;
				break;
			}
			struct openb_node *node = &openb->nodes[openb->node_count - 1];
			if (text_map_get(&known, node->name)) {
				error_set(error, ERROR_INVALID,
				          "%s:%" PRId64 ": there is a node '%s' already", csv->name,
				          csv->line, node->name);
				found = -1;
				break;
			}
			text_map_put(&known, node->name, (void *)node->name);
		}
	}
	text_map_free(&known);
	return found == 0;
}

static bool same_kind(const struct openb_kind *a, const struct openb_kind *b)
{
	return a->cpu_milli == b->cpu_milli && a->memory_mib == b->memory_mib &&
	       a->gpu_count == b->gpu_count && a->gpu_milli == b->gpu_milli &&
	       strcmp(a->models, b->models) == 0;
}

/* Finds or adds it. `by_hash` has numbers, in the arena; those with the same hash
 * count on. */
static int32_t kind_number(struct openb *openb, struct map *by_hash, const struct openb_kind *kind)
{
	uint64_t hash = hash_combine(hash_text(kind->models), (uint64_t)kind->cpu_milli);
	hash = hash_combine(hash, (uint64_t)kind->memory_mib);
	hash = hash_combine(hash, (uint64_t)(kind->gpu_count * 1024 + kind->gpu_milli));
	for (int64_t key = (int64_t)(hash >> 1);; key++) {
		int32_t *number = map_get(by_hash, key);
		if (number && same_kind(&openb->kinds[*number], kind))
			return *number;
		if (number)
			continue;
		array_reserve(openb->kinds, openb->kind_capacity, openb->kind_count + 1);
		openb->kinds[openb->kind_count] = *kind;
		openb->kinds[openb->kind_count].models = arena_string(&openb->arena, kind->models);
		number = arena_alloc(&openb->arena, sizeof(*number));
		*number = (int32_t)openb->kind_count++;
		map_put(by_hash, key, number);
		return *number;
	}
}

/* Columns: cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec or -1. */
static bool read_kind(struct openb_kind *kind, const struct csv *csv, const int *column,
                      struct error *error)
{
	*kind = (struct openb_kind){ .models = column[4] >= 0 ? csv->cells[column[4]] : "" };
	if (!csv_number(csv, column[0], 0, CPU_MILLI_MAX, &kind->cpu_milli, error) ||
	    !csv_number(csv, column[1], 0, MIB_OF_HOST_MAX, &kind->memory_mib, error) ||
	    !csv_number(csv, column[2], 0, PARTS_MAX, &kind->gpu_count, error) ||
	    !csv_number(csv, column[3], kind->gpu_count > 0, WHOLE_GPU, &kind->gpu_milli, error))
		return false;
	if (kind->gpu_count > 1 && kind->gpu_milli != WHOLE_GPU)
		return error_set(error, ERROR_INVALID,
		                 "%s:%" PRId64 ": asks for %" PRId64
		                 " thousandths of each of %" PRId64
		                 " GPUs; only one GPU can be asked for in part",
		                 csv->name, csv->line, kind->gpu_milli, kind->gpu_count);
	if (kind->gpu_count == 0) {
		kind->gpu_milli = 0;
		kind->models = "";
	}
	return true;
}

bool openb_read_pods(struct openb *openb, struct csv *csv, struct error *error)
{
	static const char *const names[] = { "cpu_milli", "memory_mib", "num_gpu", "gpu_milli" };
	struct map by_hash = { 0 };
	struct openb_kind kind;
	int column[5], found = -1;

	if (need_all(csv, names, 4, column, error)) {
		column[4] = csv_column(csv, "gpu_spec");
		while ((found = csv_next(csv, error)) > 0) {
			if (!read_kind(&kind, csv, column, error)) {
				found = -1;
				break;
			}
			array_reserve(openb->pods, openb->pod_capacity, openb->pod_count + 1);
			openb->pods[openb->pod_count++] = kind_number(openb, &by_hash, &kind);
		}
	}
	map_free(&by_hash);
	return found == 0;
}

static bool openb_parse_file(struct openb *openb, const char *path,
                             bool (*read)(struct openb *, struct csv *, struct error *),
                             struct error *error)
{
	struct csv csv;
	bool fine = csv_open(&csv, path, error) && read(openb, &csv, error);
	csv_free(&csv);
	return fine;
}

bool openb_read(struct openb *openb, const char *nodes_path, const char *pods_path,
                struct error *error)
{
	int64_t asked = 0;

	*openb = (struct openb){ 0 };
	if (!openb_parse_file(openb, nodes_path, openb_read_nodes, error) ||
	    !openb_parse_file(openb, pods_path, openb_read_pods, error))
		return false;
	for (size_t i = 0; i < openb->kind_count; i++)
		asked += openb_asks(&openb->kinds[i]);
	if (openb->gpu_milli == 0)
		return error_set(error, ERROR_INVALID, "%s: no node has a GPU", nodes_path);
	return asked > 0 || error_set(error, ERROR_INVALID, "%s: no pod asks for a GPU", pods_path);
}

void openb_free(struct openb *openb)
{
	free(openb->nodes);
	free(openb->kinds);
	free(openb->pods);
	arena_free(&openb->arena);
	*openb = (struct openb){ 0 };
}
