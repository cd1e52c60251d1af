/* nvml_api.h - the part of NVIDIA's management library that is used, as its interface defines it
 *
 * Declared here, because no header of a driver is needed to build this: names, numbers and
 * layouts are those of the library's stable binary interface. */
#ifndef AGENT_GPU_NVML_API_H
#define AGENT_GPU_NVML_API_H

#include "base/error.h"

typedef struct nvmlDevice_st *nvml_device;
typedef struct nvmlEventSet_st *nvml_events;

enum {
	NVML_SUCCESS = 0,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_INSUFFICIENT_SIZE = 7,
	NVML_ERROR_GPU_IS_LOST = 15,
	NVML_TEMPERATURE_GPU = 0,
	NVML_TEMPERATURE_SLOWDOWN = 1, /* of thresholds */
	NVML_UNCORRECTED = 1,
	NVML_VOLATILE_ECC = 0,
	NVML_FEATURE_ENABLED = 1,
	NVML_LINKS_MAX = 18,
	NVML_TEXT_MAX = 96,
	NVML_VALUE_NOT_AVAILABLE = -1,
};
#define NVML_EVENT_XID 0x8ULL
#define NVML_EVENT_DOUBLE_BIT_ECC 0x2ULL
#define NVML_SLOWDOWN_HARDWARE_THERMAL 0x40ULL
#define NVML_SLOWDOWN_SOFTWARE_THERMAL 0x20ULL

struct nvml_memory {
	unsigned long long total, free, used;
};
struct nvml_memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};
#define NVML_MEMORY_VERSION_2 ((unsigned)sizeof(struct nvml_memory_v2) | 2u << 24)

struct nvml_utilisation {
	unsigned gpu, memory; /* percent */
};
/* As of version 3 of the functions; version 2 has the same layout. */
struct nvml_process {
	unsigned pid;
	unsigned long long used_bytes; /* all ones: not known */
	unsigned gpu_instance, compute_instance;
};
/* As of version 1. */
struct nvml_process_v1 {
	unsigned pid;
	unsigned long long used_bytes;
};
struct nvml_pci {
	char bus_id_legacy[16];
	unsigned domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
};
struct nvml_event {
	nvml_device device;
	unsigned long long kind, data;
	unsigned gpu_instance, compute_instance;
};

/* NULL where the library does not have it. Suffixes of versions are the library's affair. */
struct nvml_api {
	void *library;
	int (*init)(void);
	int (*shutdown)(void);
	const char *(*error_text)(int);
	int (*driver_version)(char *, unsigned);
	int (*count)(unsigned *);
	int (*by_index)(unsigned, nvml_device *);
	int (*uuid)(nvml_device, char *, unsigned);
	int (*name)(nvml_device, char *, unsigned);
	int (*minor)(nvml_device, unsigned *);
	int (*memory)(nvml_device, struct nvml_memory *);
	int (*memory_v2)(nvml_device, struct nvml_memory_v2 *);
	int (*temperature)(nvml_device, int, unsigned *);
	int (*temperature_threshold)(nvml_device, int, unsigned *);
	int (*power)(nvml_device, unsigned *);
	int (*utilisation)(nvml_device, struct nvml_utilisation *);
	int (*slowdown)(nvml_device, unsigned long long *);
	int (*ecc_errors)(nvml_device, int, int, unsigned long long *);
	int (*compute_processes)(nvml_device, unsigned *, struct nvml_process *);
	int (*compute_processes_v1)(nvml_device, unsigned *, struct nvml_process_v1 *);
	int (*graphics_processes)(nvml_device, unsigned *, struct nvml_process *);
	int (*mig_mode)(nvml_device, unsigned *, unsigned *);
	int (*mig_count)(nvml_device, unsigned *);
	int (*mig_by_index)(nvml_device, unsigned, nvml_device *);
	int (*gpu_instance)(nvml_device, unsigned *);
	int (*compute_instance)(nvml_device, unsigned *);
	int (*link_state)(nvml_device, unsigned, int *);
	int (*link_remote)(nvml_device, unsigned, struct nvml_pci *);
	int (*pci)(nvml_device, struct nvml_pci *);
	int (*events_new)(nvml_events *);
	int (*events_free)(nvml_events);
	int (*events_add)(nvml_device, unsigned long long, nvml_events);
	int (*events_wait)(nvml_events, struct nvml_event *, unsigned);
};

/* Loads the library (`path`, or where the system finds it) and begins to use it. False with a
 * reason. */
bool nvml_api_open(struct nvml_api *api, const char *path, struct error *error);
void nvml_api_close(struct nvml_api *api);

#endif
