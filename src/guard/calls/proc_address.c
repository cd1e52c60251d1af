/* proc_address.c - cuGetProcAddress, by which the CUDA runtime finds the driver */
#include "guard/calls/entry.h"
#include "guard/calls/state.h"

CUresult cuGetProcAddress(const char *symbol, void **address, int version, uint64_t flags)
{
	CUresult result = CALL(cuGetProcAddress, symbol, address, version, flags);
	if (result == CUDA_SUCCESS && *address != NULL && state_active())
		*address = entry_for_name(symbol, version, flags, *address);
	return result;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **address, int version, uint64_t flags,
                             int *status)
{
	CUresult result = CALL(cuGetProcAddress_v2, symbol, address, version, flags, status);
	if (result == CUDA_SUCCESS && *address != NULL && state_active())
		*address = entry_for_name(symbol, version, flags, *address);
	return result;
}
