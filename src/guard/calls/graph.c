/* graph.c - memory of graphs
 *
 * A node of a graph only says that memory will be needed; the driver takes it when the
 * graph is launched. So a node that can never fit is refused; what all nodes of a graph need at
 * once is known when it is instantiated, and charged before it is launched; and what launched
 * graphs hold is counted from then on. A graph that allocates nothing passes by. */
#include <stdatomic.h>
#include <sys/mman.h>

#include "guard/budget/budget.h"
#include "guard/budget/share.h"
#include "guard/calls/charge.h"
#include "guard/calls/device.h"
#include "guard/calls/entry.h"
#include "guard/calls/pool.h"
#include "guard/calls/state.h"

/* True if the node may be added. */
static bool admit(const CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
	if (!state_active() || parameters == NULL ||
	    parameters->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return true;
	CUdevice device = parameters->poolProps.location.id;
	struct charge charge;
	if (!charge_begin(&charge, device_gpu(device), charge_size(parameters->bytesize)))
		return false;
	charge_cancel(&charge);
	if (charge.gpu >= 0)
		pool_watch_graphs(device);
	return true;
}

static bool admit_node(const CUgraphNodeParams *parameters)
{
	return parameters == NULL || parameters->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
	       admit(&parameters->of.alloc);
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
	if (!admit(parameters))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CALL(cuGraphAddMemAllocNode, node, graph, dependencies, count, parameters);
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                        size_t count, CUgraphNodeParams *parameters)
{
	if (!admit_node(parameters))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CALL(cuGraphAddNode, node, graph, dependencies, count, parameters);
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                           const void *edges, size_t count, CUgraphNodeParams *parameters)
{
	if (!admit_node(parameters))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CALL(cuGraphAddNode_v2, node, graph, dependencies, edges, count, parameters);
}

CUresult cuGraphAddNode_v3(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                           const void *edges, size_t count, CUgraphNodeParams *parameters)
{
	if (!admit_node(parameters))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CALL(cuGraphAddNode_v3, node, graph, dependencies, edges, count, parameters);
}

enum { DEPTH_MAX = 4, NODES_MAX = 1 << 20 };

/* True since a graph with memory of its own was instantiated. */
static _Atomic(bool) any_graph;

/* What a graph has allocated at some point of its nodes, in their order. */
struct need {
	int64_t live_bytes, most_bytes;
	CUdevice device;
};

/* What was allocated by a node, for the node that frees it. */
struct allocation {
	CUdeviceptr pointer;
	int64_t bytes;
};

static void add_up(CUgraph graph, int depth, struct need *need);

static void add_node(CUgraphNode node, int depth, struct need *need, struct allocation *made,
                     size_t *made_count)
{
	int type = -1;
	CUDA_MEM_ALLOC_NODE_PARAMS parameters = { 0 };
	CUdeviceptr freed;
	CUgraph child;
	if (CALL(cuGraphNodeGetType, node, &type) != CUDA_SUCCESS)
		return;
	if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
	    CALL(cuGraphMemAllocNodeGetParams, node, &parameters) == CUDA_SUCCESS &&
	    parameters.poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
		int64_t bytes = charge_size(parameters.bytesize);
		need->device = parameters.poolProps.location.id;
		if (__builtin_add_overflow(need->live_bytes, bytes, &need->live_bytes))
			need->live_bytes = INT64_MAX;
		if (need->live_bytes > need->most_bytes)
			need->most_bytes = need->live_bytes;
		made[(*made_count)++] = (struct allocation){ parameters.dptr, bytes };
	} else if (type == CU_GRAPH_NODE_TYPE_MEM_FREE &&
	           CALL(cuGraphMemFreeNodeGetParams, node, &freed) == CUDA_SUCCESS) {
		for (size_t i = 0; i < *made_count; i++) {
			if (made[i].pointer == freed) {
				need->live_bytes -= made[i].bytes;
				made[i].bytes = 0;
			}
		}
	} else if (type == CU_GRAPH_NODE_TYPE_GRAPH && depth < DEPTH_MAX &&
	           CALL(cuGraphChildGraphNodeGetGraph, node, &child) == CUDA_SUCCESS) {
		add_up(child, depth + 1, need);
	}
}

static void add_up(CUgraph graph, int depth, struct need *need)
{
	size_t count = 0;
	if (CALL(cuGraphGetNodes, graph, NULL, &count) != CUDA_SUCCESS || count == 0 ||
	    count > NODES_MAX)
		return;
	size_t bytes = count * (sizeof(CUgraphNode) + sizeof(struct allocation));
	struct allocation *made =
	    mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (made == MAP_FAILED)
		return;
	CUgraphNode *nodes = (CUgraphNode *)(void *)(made + count);
	size_t made_count = 0;
	if (CALL(cuGraphGetNodes, graph, nodes, &count) == CUDA_SUCCESS)
		for (size_t i = 0; i < count; i++)
			add_node(nodes[i], depth, need, made, &made_count);
	munmap(made, bytes);
}

/* Remembers a graph that can be launched, if it allocates. False if that can never fit. */
static bool instantiated(CUgraphExec exec, CUgraph graph)
{
	struct need need = { .device = -1 };
	if (!state_active())
		return true;
	add_up(graph, 0, &need);
	int gpu = device_gpu(need.device);
	const struct member *member = gpu >= 0 ? state_member() : NULL;
	if (need.most_bytes == 0 || member == NULL)
		return true;
	if (need.most_bytes > segment_get(&member->segment->gpus[gpu].limit_bytes)) {
		budget_refuse(member, gpu, need.most_bytes);
		return false;
	}
	struct track_item item = { .key = (uint64_t)(uintptr_t)exec,
		                   .bytes = need.most_bytes,
		                   .owner = (uint64_t)need.device,
		                   .references = 1,
		                   .share = SHARE_NONE,
		                   .kind = TRACK_GRAPH,
		                   .gpu = -1 };
	pool_watch_graphs(need.device);
	atomic_store(&any_graph, true);
	return track_add(&item);
}

#define INSTANTIATE(symbol, ...)                                                                   \
	CUresult result = CALL(symbol, __VA_ARGS__);                                               \
	if (result != CUDA_SUCCESS || instantiated(*exec, graph))                                  \
		return result;                                                                     \
	(void)CALL(cuGraphExecDestroy, *exec);                                                     \
	return CUDA_ERROR_OUT_OF_MEMORY

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log,
                            size_t size)
{
	INSTANTIATE(cuGraphInstantiate, exec, graph, node, log, size);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log,
                               size_t size)
{
	INSTANTIATE(cuGraphInstantiate_v2, exec, graph, node, log, size);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	INSTANTIATE(cuGraphInstantiateWithFlags, exec, graph, flags);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, void *parameters)
{
	INSTANTIATE(cuGraphInstantiateWithParams, exec, graph, parameters);
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph, void *parameters)
{
	INSTANTIATE(cuGraphInstantiateWithParams_ptsz, exec, graph, parameters);
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	struct track_item item;
	if (atomic_load_explicit(&any_graph, memory_order_relaxed))
		(void)track_remove(TRACK_GRAPH, (uint64_t)(uintptr_t)exec, &item);
	return CALL(cuGraphExecDestroy, exec);
}

/* The GPU had no memory left for a graph. */
static void launch_failed(const struct track_item *item)
{
	const struct member *member = state_member();
	int gpu = device_gpu((CUdevice)item->owner);
	if (gpu >= 0 && member != NULL)
		budget_fail(member, gpu, item->bytes);
}

/* Around the driver's functions that take a graph's memory. */
#define LAUNCH(symbol, ...)                                                                        \
	struct track_item item;                                                                    \
	if (!atomic_load_explicit(&any_graph, memory_order_relaxed) ||                             \
	    !track_find(TRACK_GRAPH, (uint64_t)(uintptr_t)exec, &item))                            \
		return CALL(symbol, __VA_ARGS__);                                                  \
	if (!pool_launch_begin((CUdevice)item.owner, item.bytes))                                  \
		return CUDA_ERROR_OUT_OF_MEMORY;                                                   \
	CUresult result = CALL(symbol, __VA_ARGS__);                                               \
	pool_launched((CUdevice)item.owner);                                                       \
	if (result == CUDA_ERROR_OUT_OF_MEMORY)                                                    \
		launch_failed(&item);                                                              \
	return result

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	LAUNCH(cuGraphLaunch, exec, stream);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
	LAUNCH(cuGraphLaunch_ptsz, exec, stream);
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
	LAUNCH(cuGraphUpload, exec, stream);
}

CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream)
{
	LAUNCH(cuGraphUpload_ptsz, exec, stream);
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
	CUresult result = CALL(cuDeviceGraphMemTrim, device);
	pool_synchronized();
	return result;
}
