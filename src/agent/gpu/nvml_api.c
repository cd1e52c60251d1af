/* nvml_api.c - NVIDIA's management library, loaded when the agent starts */
#include "agent/gpu/nvml_api.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* The first of the names that is there; a wanted one must be. */
struct nvml_function {
	size_t offset;
	bool wanted;
	const char *names[3];
};
#define FUNCTION(member, is_wanted, ...)                                                           \
	{                                                                                          \
		offsetof(struct nvml_api, member), is_wanted,                                      \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

static const struct nvml_function functions[] = {
	FUNCTION(init, true, "nvmlInit_v2", "nvmlInit"),
	FUNCTION(shutdown, true, "nvmlShutdown"),
	FUNCTION(error_text, true, "nvmlErrorString"),
	FUNCTION(driver_version, false, "nvmlSystemGetDriverVersion"),
	FUNCTION(count, true, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"),
	FUNCTION(by_index, true, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"),
	FUNCTION(uuid, true, "nvmlDeviceGetUUID"),
	FUNCTION(name, true, "nvmlDeviceGetName"),
	FUNCTION(minor, false, "nvmlDeviceGetMinorNumber"),
	FUNCTION(memory, true, "nvmlDeviceGetMemoryInfo"),
	FUNCTION(memory_v2, false, "nvmlDeviceGetMemoryInfo_v2"),
	FUNCTION(temperature, false, "nvmlDeviceGetTemperature"),
	FUNCTION(temperature_threshold, false, "nvmlDeviceGetTemperatureThreshold"),
	FUNCTION(power, false, "nvmlDeviceGetPowerUsage"),
	FUNCTION(utilisation, false, "nvmlDeviceGetUtilizationRates"),
	FUNCTION(slowdown, false, "nvmlDeviceGetCurrentClocksEventReasons",
	         "nvmlDeviceGetCurrentClocksThrottleReasons"),
	FUNCTION(ecc_errors, false, "nvmlDeviceGetTotalEccErrors"),
	FUNCTION(compute_processes, false, "nvmlDeviceGetComputeRunningProcesses_v3",
	         "nvmlDeviceGetComputeRunningProcesses_v2"),
	FUNCTION(compute_processes_v1, false, "nvmlDeviceGetComputeRunningProcesses"),
	FUNCTION(graphics_processes, false, "nvmlDeviceGetGraphicsRunningProcesses_v3",
	         "nvmlDeviceGetGraphicsRunningProcesses_v2"),
	FUNCTION(mig_mode, false, "nvmlDeviceGetMigMode"),
	FUNCTION(mig_count, false, "nvmlDeviceGetMaxMigDeviceCount"),
	FUNCTION(mig_by_index, false, "nvmlDeviceGetMigDeviceHandleByIndex"),
	FUNCTION(gpu_instance, false, "nvmlDeviceGetGpuInstanceId"),
	FUNCTION(compute_instance, false, "nvmlDeviceGetComputeInstanceId"),
	FUNCTION(link_state, false, "nvmlDeviceGetNvLinkState"),
	FUNCTION(link_remote, false, "nvmlDeviceGetNvLinkRemotePciInfo_v2",
	         "nvmlDeviceGetNvLinkRemotePciInfo"),
	FUNCTION(pci, false, "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2"),
	FUNCTION(events_new, false, "nvmlEventSetCreate"),
	FUNCTION(events_free, false, "nvmlEventSetFree"),
	FUNCTION(events_add, false, "nvmlDeviceRegisterEvents"),
	FUNCTION(events_wait, false, "nvmlEventSetWait_v2", "nvmlEventSetWait"),
};

static bool find_functions(struct nvml_api *api, struct error *error)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		const struct nvml_function *function = &functions[i];
		void *found = NULL;
		for (size_t j = 0; j < 3 && function->names[j] && !found; j++)
			found = dlsym(api->library, function->names[j]);
		if (!found && function->wanted)
			return error_set(error, ERROR_UNAVAILABLE, "NVIDIA's library has no %s",
			                 function->names[0]);
		/* A function's address as an object's, as dlsym gives it. */
		memcpy((char *)api + function->offset, &found, sizeof(found));
	}
	return true;
}

bool nvml_api_open(struct nvml_api *api, const char *path, struct error *error)
{
	*api = (struct nvml_api){ .library = dlopen(path ? path : "libnvidia-ml.so.1",
		                                    RTLD_NOW | RTLD_LOCAL) };
	if (!api->library)
		return error_set(error, ERROR_UNAVAILABLE, "NVIDIA's library cannot be loaded: %s",
		                 dlerror());
	if (!find_functions(api, error)) {
		dlclose(api->library);
		return false;
	}
	int code = api->init();
	if (code == NVML_SUCCESS)
		return true;
	error_set(error, ERROR_UNAVAILABLE, "NVIDIA's driver does not answer: %s",
	          api->error_text(code));
	dlclose(api->library);
	return false;
}

void nvml_api_close(struct nvml_api *api)
{
	api->shutdown();
	dlclose(api->library);
}
