/* nvml_devices.c - the device files that a task must be able to open to use its GPUs */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "agent/gpu/nvml.h"
#include "agent/host/file.h"

static void allow(struct buffer *rules, const char *path)
{
	struct stat status;

	if (stat(path, &status) != 0 || !S_ISCHR(status.st_mode))
		return;
	struct device_rule rule = { .major = major(status.st_rdev),
		                    .minor = minor(status.st_rdev) };
	buffer_bytes(rules, &rule, sizeof(rule));
}

/* The right to an instance is a device too; its number is in a file of the driver. */
static void allow_capability(struct buffer *rules, const char *access_path)
{
	struct buffer text = { 0 };
	int number = -1;

	if (file_read(access_path, 4096, &text)) {
		const char *at = strstr(text.data, "DeviceFileMinor:");
		if (at && sscanf(at, "DeviceFileMinor: %d", &number) == 1) {
			char *path = file_path("/dev/nvidia-caps/nvidia-cap%d", number);
			allow(rules, path);
			free(path);
		}
	}
	buffer_free(&text);
}

static void allow_instance(struct buffer *rules, const struct nvml_gpu *gpu)
{
	char *gpu_path = file_path("/proc/driver/nvidia/capabilities/gpu%lld/mig/gi%u/access",
	                           (long long)gpu->minor, gpu->gpu_instance);
	char *compute_path =
	    file_path("/proc/driver/nvidia/capabilities/gpu%lld/mig/gi%u/ci%u/access",
	              (long long)gpu->minor, gpu->gpu_instance, gpu->compute_instance);

	allow_capability(rules, gpu_path);
	allow_capability(rules, compute_path);
	free(gpu_path);
	free(compute_path);
}

void nvml_devices(struct gpu_source *source, const char *uuid, struct buffer *rules)
{
	static const char *const common[] = { "/dev/nvidiactl", "/dev/nvidia-uvm",
		                              "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset" };
	struct nvml_source *nvml = (struct nvml_source *)source;

	for (size_t i = 0; i < sizeof(common) / sizeof(*common); i++)
		allow(rules, common[i]);
	pthread_mutex_lock(&nvml->lock);
	for (size_t i = 0; i < nvml->count; i++) {
		const struct nvml_gpu *gpu = &nvml->gpus[i];
		if (strcmp(gpu->uuid, uuid) != 0)
			continue;
		char *path = file_path("/dev/nvidia%lld", (long long)gpu->minor);
		allow(rules, path);
		free(path);
		if (gpu->parent[0])
			allow_instance(rules, gpu);
	}
	pthread_mutex_unlock(&nvml->lock);
}
