/* csv_fuzz.c - whatever the bytes, a table is refused with a reason or read as a trace */
#include "sim/openb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_as(const uint8_t *data, size_t size,
                    bool (*read)(struct openb *, struct csv *, struct error *))
{
	struct csv csv;
	struct openb openb = { 0 };
	struct error error = { 0 };
	bool fine = csv_begin(&csv, "fuzz", data, size, &error) && read(&openb, &csv, &error);
	INVARIANT(fine == (error.code == ERROR_NONE));
	for (size_t i = 0; i < openb.pod_count; i++)
		INVARIANT(openb.pods[i] >= 0 && (size_t)openb.pods[i] < openb.kind_count);
	csv_free(&csv);
	openb_free(&openb);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_as(data, size, openb_read_nodes);
	read_as(data, size, openb_read_pods);
	return 0;
}
