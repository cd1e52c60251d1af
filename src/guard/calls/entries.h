/* entries.h - the list of the driver's functions that the guard stands in for
 *
 * WRAPPED(symbol, name, version, per_thread): the symbol; the name by which
 * cuGetProcAddress knows it, and the first CUDA version that gets it under that
 * name; whether it is the variant with a default stream per thread. */
#ifndef GUARD_CALLS_ENTRIES_H
#define GUARD_CALLS_ENTRIES_H

#define ENTRIES_CUDA(WRAPPED)                                                                      \
	WRAPPED(cuGetProcAddress, cuGetProcAddress, 11030, 0)                                      \
	WRAPPED(cuGetProcAddress_v2, cuGetProcAddress, 12000, 0)                                   \
	WRAPPED(cuMemAlloc, cuMemAlloc, 2000, 0)                                                   \
	WRAPPED(cuMemAlloc_v2, cuMemAlloc, 3020, 0)                                                \
	WRAPPED(cuMemAllocPitch, cuMemAllocPitch, 2000, 0)                                         \
	WRAPPED(cuMemAllocPitch_v2, cuMemAllocPitch, 3020, 0)                                      \
	WRAPPED(cuMemAllocManaged, cuMemAllocManaged, 6000, 0)                                     \
	WRAPPED(cuMemFree, cuMemFree, 2000, 0)                                                     \
	WRAPPED(cuMemFree_v2, cuMemFree, 3020, 0)                                                  \
	WRAPPED(cuMemAllocAsync, cuMemAllocAsync, 11020, 0)                                        \
	WRAPPED(cuMemAllocAsync_ptsz, cuMemAllocAsync, 11020, 1)                                   \
	WRAPPED(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020, 0)                        \
	WRAPPED(cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync, 11020, 1)                   \
	WRAPPED(cuMemFreeAsync, cuMemFreeAsync, 11020, 0)                                          \
	WRAPPED(cuMemFreeAsync_ptsz, cuMemFreeAsync, 11020, 1)                                     \
	WRAPPED(cuMemPoolCreate, cuMemPoolCreate, 11020, 0)                                        \
	WRAPPED(cuMemPoolDestroy, cuMemPoolDestroy, 11020, 0)                                      \
	WRAPPED(cuMemPoolImportFromShareableHandle, cuMemPoolImportFromShareableHandle, 11020, 0)  \
	WRAPPED(cuMemPoolTrimTo, cuMemPoolTrimTo, 11020, 0)                                        \
	WRAPPED(cuStreamSynchronize, cuStreamSynchronize, 2000, 0)                                 \
	WRAPPED(cuStreamSynchronize_ptsz, cuStreamSynchronize, 7000, 1)                            \
	WRAPPED(cuEventSynchronize, cuEventSynchronize, 2000, 0)                                   \
	WRAPPED(cuCtxSynchronize, cuCtxSynchronize, 2000, 0)                                       \
	WRAPPED(cuCtxSynchronize_v2, cuCtxSynchronize, 13000, 0)                                   \
	WRAPPED(cuMemCreate, cuMemCreate, 10020, 0)                                                \
	WRAPPED(cuMemRelease, cuMemRelease, 10020, 0)                                              \
	WRAPPED(cuMemMap, cuMemMap, 10020, 0)                                                      \
	WRAPPED(cuMemUnmap, cuMemUnmap, 10020, 0)                                                  \
	WRAPPED(cuMemRetainAllocationHandle, cuMemRetainAllocationHandle, 11000, 0)                \
	WRAPPED(cuMemExportToShareableHandle, cuMemExportToShareableHandle, 10020, 0)              \
	WRAPPED(cuMemImportFromShareableHandle, cuMemImportFromShareableHandle, 10020, 0)          \
	WRAPPED(cuArrayCreate, cuArrayCreate, 2000, 0)                                             \
	WRAPPED(cuArrayCreate_v2, cuArrayCreate, 3020, 0)                                          \
	WRAPPED(cuArray3DCreate, cuArray3DCreate, 2000, 0)                                         \
	WRAPPED(cuArray3DCreate_v2, cuArray3DCreate, 3020, 0)                                      \
	WRAPPED(cuArrayDestroy, cuArrayDestroy, 2000, 0)                                           \
	WRAPPED(cuMipmappedArrayCreate, cuMipmappedArrayCreate, 5000, 0)                           \
	WRAPPED(cuMipmappedArrayDestroy, cuMipmappedArrayDestroy, 5000, 0)                         \
	WRAPPED(cuIpcGetMemHandle, cuIpcGetMemHandle, 4010, 0)                                     \
	WRAPPED(cuIpcOpenMemHandle, cuIpcOpenMemHandle, 4010, 0)                                   \
	WRAPPED(cuIpcOpenMemHandle_v2, cuIpcOpenMemHandle, 11000, 0)                               \
	WRAPPED(cuIpcCloseMemHandle, cuIpcCloseMemHandle, 4010, 0)                                 \
	WRAPPED(cuImportExternalMemory, cuImportExternalMemory, 10000, 0)                          \
	WRAPPED(cuDestroyExternalMemory, cuDestroyExternalMemory, 10000, 0)                        \
	WRAPPED(cuCtxCreate, cuCtxCreate, 2000, 0)                                                 \
	WRAPPED(cuCtxCreate_v2, cuCtxCreate, 3020, 0)                                              \
	WRAPPED(cuCtxCreate_v3, cuCtxCreate, 11040, 0)                                             \
	WRAPPED(cuCtxCreate_v4, cuCtxCreate, 12050, 0)                                             \
	WRAPPED(cuCtxDestroy, cuCtxDestroy, 2000, 0)                                               \
	WRAPPED(cuCtxDestroy_v2, cuCtxDestroy, 4000, 0)                                            \
	WRAPPED(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, 0)                       \
	WRAPPED(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease, 7000, 0)                     \
	WRAPPED(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease, 11000, 0)                 \
	WRAPPED(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset, 7000, 0)                         \
	WRAPPED(cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset, 11000, 0)                     \
	WRAPPED(cuGraphAddMemAllocNode, cuGraphAddMemAllocNode, 11040, 0)                          \
	WRAPPED(cuGraphAddNode, cuGraphAddNode, 12020, 0)                                          \
	WRAPPED(cuGraphAddNode_v2, cuGraphAddNode, 12030, 0)                                       \
	WRAPPED(cuGraphAddNode_v3, cuGraphAddNode, 13040, 0)                                       \
	WRAPPED(cuDeviceGraphMemTrim, cuDeviceGraphMemTrim, 11040, 0)                              \
	WRAPPED(cuCtxSetLimit, cuCtxSetLimit, 3010, 0)                                             \
	WRAPPED(cuModuleLoad, cuModuleLoad, 2000, 0)                                               \
	WRAPPED(cuModuleLoadData, cuModuleLoadData, 2000, 0)                                       \
	WRAPPED(cuModuleLoadDataEx, cuModuleLoadDataEx, 2010, 0)                                   \
	WRAPPED(cuModuleLoadFatBinary, cuModuleLoadFatBinary, 2000, 0)                             \
	WRAPPED(cuModuleUnload, cuModuleUnload, 2000, 0)                                           \
	WRAPPED(cuModuleGetFunction, cuModuleGetFunction, 2000, 0)                                 \
	WRAPPED(cuModuleGetGlobal, cuModuleGetGlobal, 2000, 0)                                     \
	WRAPPED(cuModuleGetGlobal_v2, cuModuleGetGlobal, 3020, 0)                                  \
	WRAPPED(cuLibraryGetKernel, cuLibraryGetKernel, 12000, 0)                                  \
	WRAPPED(cuLibraryGetModule, cuLibraryGetModule, 12000, 0)                                  \
	WRAPPED(cuLibraryGetGlobal, cuLibraryGetGlobal, 12000, 0)                                  \
	WRAPPED(cuLibraryGetManaged, cuLibraryGetManaged, 12000, 0)                                \
	WRAPPED(cuLibraryUnload, cuLibraryUnload, 12000, 0)                                        \
	WRAPPED(cuKernelGetFunction, cuKernelGetFunction, 12000, 0)                                \
	WRAPPED(cuGraphInstantiate, cuGraphInstantiate, 10000, 0)                                  \
	WRAPPED(cuGraphInstantiate_v2, cuGraphInstantiate, 11000, 0)                               \
	WRAPPED(cuGraphInstantiateWithFlags, cuGraphInstantiate, 12000, 0)                         \
	WRAPPED(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams, 12000, 0)              \
	WRAPPED(cuGraphInstantiateWithParams_ptsz, cuGraphInstantiateWithParams, 12000, 1)         \
	WRAPPED(cuGraphLaunch, cuGraphLaunch, 10000, 0)                                            \
	WRAPPED(cuGraphLaunch_ptsz, cuGraphLaunch, 10000, 1)                                       \
	WRAPPED(cuGraphUpload, cuGraphUpload, 11010, 0)                                            \
	WRAPPED(cuGraphUpload_ptsz, cuGraphUpload, 11010, 1)                                       \
	WRAPPED(cuGraphExecDestroy, cuGraphExecDestroy, 10000, 0)                                  \
	WRAPPED(cuMemGetDefaultMemPool, cuMemGetDefaultMemPool, 13000, 0)                          \
	WRAPPED(cuMemGetMemPool, cuMemGetMemPool, 13000, 0)                                        \
	WRAPPED(cuMemGetInfo, cuMemGetInfo, 2000, 0)                                               \
	WRAPPED(cuMemGetInfo_v2, cuMemGetInfo, 3020, 0)                                            \
	WRAPPED(cuDeviceTotalMem, cuDeviceTotalMem, 2000, 0)                                       \
	WRAPPED(cuDeviceTotalMem_v2, cuDeviceTotalMem, 3020, 0)

#define ENTRIES_NVML(WRAPPED)                                                                      \
	WRAPPED(nvmlDeviceGetMemoryInfo, nvmlDeviceGetMemoryInfo, 0, 0)                            \
	WRAPPED(nvmlDeviceGetMemoryInfo_v2, nvmlDeviceGetMemoryInfo_v2, 0, 0)                      \
	WRAPPED(nvmlDeviceGetComputeRunningProcesses, nvmlDeviceGetComputeRunningProcesses, 0, 0)  \
	WRAPPED(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDeviceGetComputeRunningProcesses_v2,  \
	        0, 0)                                                                              \
	WRAPPED(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDeviceGetComputeRunningProcesses_v3,  \
	        0, 0)                                                                              \
	WRAPPED(nvmlDeviceGetGraphicsRunningProcesses, nvmlDeviceGetGraphicsRunningProcesses, 0,   \
	        0)                                                                                 \
	WRAPPED(nvmlDeviceGetGraphicsRunningProcesses_v2,                                          \
	        nvmlDeviceGetGraphicsRunningProcesses_v2, 0, 0)                                    \
	WRAPPED(nvmlDeviceGetGraphicsRunningProcesses_v3,                                          \
	        nvmlDeviceGetGraphicsRunningProcesses_v3, 0, 0)                                    \
	WRAPPED(nvmlDeviceGetMPSComputeRunningProcesses, nvmlDeviceGetMPSComputeRunningProcesses,  \
	        0, 0)                                                                              \
	WRAPPED(nvmlDeviceGetMPSComputeRunningProcesses_v2,                                        \
	        nvmlDeviceGetMPSComputeRunningProcesses_v2, 0, 0)                                  \
	WRAPPED(nvmlDeviceGetMPSComputeRunningProcesses_v3,                                        \
	        nvmlDeviceGetMPSComputeRunningProcesses_v3, 0, 0)

/* Functions that the guard only asks. */
#define ENTRIES_CUDA_ASKED(ASKED)                                                                  \
	ASKED(cuCtxGetDevice)                                                                      \
	ASKED(cuCtxGetCurrent)                                                                     \
	ASKED(cuCtxPushCurrent_v2)                                                                 \
	ASKED(cuCtxPopCurrent_v2)                                                                  \
	ASKED(cuDeviceGetUuid)                                                                     \
	ASKED(cuDeviceGetUuid_v2)                                                                  \
	ASKED(cuDevicePrimaryCtxGetState)                                                          \
	ASKED(cuDeviceGetMemPool)                                                                  \
	ASKED(cuMemPoolGetAttribute)                                                               \
	ASKED(cuDeviceGetGraphMemAttribute)                                                        \
	ASKED(cuStreamGetCtx)                                                                      \
	ASKED(cuStreamIsCapturing)                                                                 \
	ASKED(cuMemGetAddressRange_v2)                                                             \
	ASKED(cuPointerGetAttribute)                                                               \
	ASKED(cuMemGetAllocationPropertiesFromHandle)                                              \
	ASKED(cuCtxGetLimit)                                                                       \
	ASKED(cuDeviceGetAttribute)                                                                \
	ASKED(cuFuncGetAttribute)                                                                  \
	ASKED(cuKernelGetAttribute)                                                                \
	ASKED(cuGraphGetNodes)                                                                     \
	ASKED(cuGraphNodeGetType)                                                                  \
	ASKED(cuGraphMemAllocNodeGetParams)                                                        \
	ASKED(cuGraphMemFreeNodeGetParams)                                                         \
	ASKED(cuGraphChildGraphNodeGetGraph)                                                       \
	ASKED(cuArrayGetMemoryRequirements)                                                        \
	ASKED(cuMipmappedArrayGetMemoryRequirements)                                               \
	ASKED(cuMemAddressReserve)                                                                 \
	ASKED(cuMemAddressFree)

#define ENTRIES_NVML_ASKED(ASKED)                                                                  \
	ASKED(nvmlInit_v2)                                                                         \
	ASKED(nvmlDeviceGetUUID)                                                                   \
	ASKED(nvmlDeviceGetHandleByUUID)

#endif
