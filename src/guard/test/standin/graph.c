/* graph.c - the stand-in's graphs: nodes that allocate and free, taken when they are launched */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { NODES_MAX = 256 };

struct CUgraphNode_st {
	int type;
	CUDA_MEM_ALLOC_NODE_PARAMS parameters; /* of an allocation; its pointer of a free */
};
struct CUgraph_st {
	struct CUgraphNode_st nodes[NODES_MAX];
	size_t count;
	struct CUgraph_st *next; /* none is freed: programs seldom do */
};
struct CUgraphExec_st {
	int gpu;
	int64_t most_bytes, left_bytes; /* while it runs, and when it has ended */
	struct CUgraphExec_st *next;
};

/* What graphs hold, and what of it is in use. */
static int64_t graph_bytes[STANDIN_GPUS_MAX], graph_used[STANDIN_GPUS_MAX];
static struct CUgraph_st *graphs;
static struct CUgraphExec_st *executables;
static struct CUgraph_st *captured; /* by the one stream that is */
static CUdeviceptr next_pointer = UINT64_C(0x700000000000);

void standin_forget_graphs(void)
{
	memset(graph_bytes, 0, sizeof graph_bytes);
	memset(graph_used, 0, sizeof graph_used);
}

void standin_end_graphs(int gpu)
{
	(void)standin_take(gpu, -graph_bytes[gpu]);
	graph_bytes[gpu] = graph_used[gpu] = 0;
}

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
	(void)flags;
	*graph = calloc(1, sizeof **graph);
	(*graph)->next = graphs;
	graphs = *graph;
	return CUDA_SUCCESS;
}

static CUresult graph_add(CUgraph graph, const struct CUgraphNode_st *node, CUgraphNode *added)
{
	static struct CUgraph_st nowhere;
	standin_count_call();
	if (graph == NULL) {
		graph = &nowhere;
		graph->count = 0;
	}
	if (graph->count == NODES_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	graph->nodes[graph->count] = *node;
	if (added != NULL)
		*added = &graph->nodes[graph->count];
	graph->count++;
	return CUDA_SUCCESS;
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
	(void)dependencies, (void)count;
	parameters->dptr = next_pointer += UINT64_C(1) << 40;
	return graph_add(
	    graph, &(struct CUgraphNode_st){ CU_GRAPH_NODE_TYPE_MEM_ALLOC, *parameters }, node);
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                               size_t count, CUdeviceptr pointer)
{
	(void)dependencies, (void)count;
	return graph_add(
	    graph, &(struct CUgraphNode_st){ CU_GRAPH_NODE_TYPE_MEM_FREE, { .dptr = pointer } },
	    node);
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                        size_t count, CUgraphNodeParams *parameters)
{
	(void)node, (void)graph, (void)dependencies, (void)count, (void)parameters;
	standin_count_call();
	return CUDA_SUCCESS;
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                           const void *edges, size_t count, CUgraphNodeParams *parameters)
{
	(void)edges;
	return cuGraphAddNode(node, graph, dependencies, count, parameters);
}

CUresult cuGraphAddNode_v3(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                           const void *edges, size_t count, CUgraphNodeParams *parameters)
{
	(void)edges;
	return cuGraphAddNode(node, graph, dependencies, count, parameters);
}

CUresult standin_capture_allocation(CUstream stream, CUdeviceptr *pointer, int64_t bytes)
{
	CUDA_MEM_ALLOC_NODE_PARAMS parameters = { .bytesize = (size_t)bytes };
	parameters.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	parameters.poolProps.location.id = stream->context != NULL ? stream->context->device : 0;
	CUresult result = cuGraphAddMemAllocNode(NULL, captured, NULL, 0, &parameters);
	*pointer = parameters.dptr;
	return result;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode)
{
	(void)mode;
	standin_capture(stream, true);
	return cuGraphCreate(&captured, 0);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	standin_capture(stream, false);
	*graph = captured;
	captured = NULL;
	return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	size_t room = nodes != NULL ? *count : 0;
	for (size_t i = 0; i < room && i < graph->count; i++)
		nodes[i] = &graph->nodes[i];
	*count = graph->count;
	return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode node, int *type)
{
	*type = node->type;
	return CUDA_SUCCESS;
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
	*parameters = node->parameters;
	return CUDA_SUCCESS;
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *pointer)
{
	*pointer = node->parameters.dptr;
	return CUDA_SUCCESS;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph)
{
	(void)node, (void)graph;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	(void)flags;
	CUgraphExec made = calloc(1, sizeof *made);
	made->next = executables;
	executables = made;
	for (size_t i = 0; i < graph->count; i++) {
		const struct CUgraphNode_st *node = &graph->nodes[i];
		if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
			made->gpu = standin_gpu(node->parameters.poolProps.location.id);
			made->left_bytes += (int64_t)node->parameters.bytesize;
		}
		for (size_t j = 0; j < i && node->type == CU_GRAPH_NODE_TYPE_MEM_FREE; j++) {
			if (graph->nodes[j].type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
			    graph->nodes[j].parameters.dptr == node->parameters.dptr)
				made->left_bytes -= (int64_t)graph->nodes[j].parameters.bytesize;
		}
		if (made->left_bytes > made->most_bytes)
			made->most_bytes = made->left_bytes;
	}
	*exec = made;
	return CUDA_SUCCESS;
}

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log,
                            size_t size)
{
	(void)node, (void)log, (void)size;
	return cuGraphInstantiateWithFlags(exec, graph, 0);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log,
                               size_t size)
{
	return cuGraphInstantiate(exec, graph, node, log, size);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, void *parameters)
{
	(void)parameters;
	return cuGraphInstantiateWithFlags(exec, graph, 0);
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph, void *parameters)
{
	(void)parameters;
	return cuGraphInstantiateWithFlags(exec, graph, 0);
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	(void)exec;
	return CUDA_SUCCESS;
}

static CUresult launch(int gpu, int64_t most_bytes, int64_t left_bytes)
{
	pthread_mutex_lock(&standin_mutex);
	int64_t more_bytes = graph_used[gpu] + most_bytes - graph_bytes[gpu];
	bool fits = more_bytes <= 0 || standin_take(gpu, more_bytes);
	if (fits && more_bytes > 0)
		graph_bytes[gpu] += more_bytes;
	if (fits)
		graph_used[gpu] += left_bytes;
	pthread_mutex_unlock(&standin_mutex);
	return fits ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	(void)stream;
	return launch(exec->gpu, exec->most_bytes, exec->left_bytes);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
	return cuGraphLaunch(exec, stream);
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
	(void)exec, (void)stream;
	return CUDA_SUCCESS;
}

CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream)
{
	return cuGraphUpload(exec, stream);
}

void standin_launch_graph(int64_t bytes)
{
	(void)launch(standin_current_gpu(), bytes, 0);
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *value)
{
	const int64_t *bytes =
	    attribute == CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT ? graph_used : graph_bytes;
	pthread_mutex_lock(&standin_mutex);
	memcpy(value, &bytes[standin_gpu(device)], sizeof *bytes);
	pthread_mutex_unlock(&standin_mutex);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
	pthread_mutex_lock(&standin_mutex);
	int gpu = standin_gpu(device);
	(void)standin_take(gpu, graph_used[gpu] - graph_bytes[gpu]);
	graph_bytes[gpu] = graph_used[gpu];
	pthread_mutex_unlock(&standin_mutex);
	return CUDA_SUCCESS;
}
