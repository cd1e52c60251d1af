/* openb.h - the trace of a shared cluster: its nodes, and the pods that ask for them */
#ifndef SIM_TRACE_OPENB_H
#define SIM_TRACE_OPENB_H

#include "base/memory.h"
#include "sim/world/csv.h"

/* The columns are sn, cpu_milli, memory_mib, gpu, model and name (not read),
 * cpu_milli, memory_mib, num_gpu, gpu_milli and, where there is one, gpu_spec. */
struct openb_node {
	const char *name, *model; /* model: "" where it has no GPU */
	int64_t cpu_milli, memory_mib, gpu_count;
};

/* A kind of pods: those that ask for the same. */
struct openb_kind {
	int64_t cpu_milli, memory_mib;
	int64_t gpu_count, gpu_milli; /* gpu_milli: of each; 0 without GPUs */
	const char *models;           /* allowed ones, separated by '|'; "": any */
};
static inline int64_t openb_asks(const struct openb_kind *kind)
{
	return kind->gpu_count * kind->gpu_milli;
}

/* Texts belong to the arena. */
struct openb {
	struct openb_node *nodes;
	struct openb_kind *kinds;
	int32_t *pods; /* their kinds, in the order of the list */
	size_t node_count, node_capacity, kind_count, kind_capacity, pod_count, pod_capacity;
	int64_t gpu_milli; /* of all nodes */
	struct arena arena;
};

/* Adds the rows. False with a reason that names the line. */
bool openb_read_nodes(struct openb *openb, struct csv *csv, struct error *error);
bool openb_read_pods(struct openb *openb, struct csv *csv, struct error *error);
/* Both files. False as well if there is no GPU, or nobody asks for one. To be
 * freed in any case. */
bool openb_read(struct openb *openb, const char *nodes_path, const char *pods_path,
                struct error *error);
void openb_free(struct openb *openb);

#endif
