/* exposition_fuzz.c - whatever an exporter says, samples are within it and readings stay sane */
#include <stdint.h>
#include <stdlib.h>

#include "agent/gpu/dcgm.h"
#include "agent/gpu/exposition.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct text page = { (const char *)data, size }, rest = page, value;
	struct gpu_readings readings = { 0 };
	struct exposed sample;

	while (exposition_next(&rest, &sample)) {
		if (sample.name.size == 0 || sample.name.data < page.data ||
		    sample.labels.data + sample.labels.size > page.data + page.size)
			abort();
		if (exposition_label(&sample, "UUID", &value) &&
		    (value.data < sample.labels.data ||
		     value.data + value.size > sample.labels.data + sample.labels.size))
			abort();
	}
	struct gpu_reading *gpu = gpu_readings_add(&readings);
	gpu->uuid = "GPU-1";
	gpu->healthy = true;
	dcgm_apply(page, &readings);
	if (gpu->sm_active < 0 || gpu->sm_active > 1000 || gpu->dram_active < 0 ||
	    gpu->dram_active > 1000 || gpu->healthy == (gpu->reason != NULL))
		abort();
	gpu_readings_free(&readings);
	return 0;
}
