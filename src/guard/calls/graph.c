/* graph.c - memory of graphs
 *
 * A node of a graph only says that memory will be needed; the driver takes it when the
 * graph is launched, where the guard does nothing. So a node that can never fit is
 * refused, and what launched graphs hold is counted from then on. */
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

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
	CUresult result = CALL(cuDeviceGraphMemTrim, device);
	pool_synchronized();
	return result;
}
