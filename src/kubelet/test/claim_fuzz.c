/* claim_fuzz.c - ResourceClaims, kept claims and ResourceSlices of any kind: read or refused with a
 * reason */
#include <stdlib.h>
#include <string.h>

#include "kubelet/cdi.h"
#include "kubelet/slice.h"
#include "json/json_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_claim(const struct claim *claim)
{
	INVARIANT(claim_uid_is_valid(claim->uid) && claim_name_is_valid(claim->name));
	INVARIANT(claim->device_count >= 1 && claim->device_count <= CLAIM_DEVICES_MAX);
	for (int64_t i = 0; i < claim->device_count; i++)
		INVARIANT(claim->devices[i].memory_mib >= 0);
}

/* What is kept of a claim is what it was. */
static void check_kept(const struct claim *claim)
{
	struct buffer kept = { 0 }, again = { 0 }, spec = { 0 };
	struct claim *copy = claim_copy(claim);
	struct error error = { 0 };

	for (int64_t i = 0; i < copy->device_count; i++)
		copy->devices[i].uuid = "GPU-1";
	claim_write(copy, &kept);
	struct claim *loaded = claim_load((struct text){ kept.data, kept.size }, &error);
	INVARIANT(loaded);
	claim_write(loaded, &again);
	INVARIANT(kept.size == again.size && memcmp(kept.data, again.data, kept.size) == 0);
	cdi_write(loaded, &(struct cdi_node){ 0 }, &spec);
	claim_free(loaded);
	claim_free(copy);
	buffer_free(&kept);
	buffer_free(&again);
	buffer_free(&spec);
}

static void check_slice(struct text text)
{
	struct slice_gpu gpu = { .uuid = "GPU-1", .model = "A100", .memory_mib = 40000 };
	json_t *there = json_read(text, NULL, NULL), *wanted = slice_make("node-1", "", &gpu, 1);
	json_t *written = slice_update(wanted, there, 256);

	json_decref(written);
	json_decref(wanted);
	json_decref(there);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct text text = { (const char *)data, size };
	struct error error = { 0 };
	struct claim *claim = claim_read(text, "node-1", &error);

	INVARIANT(claim || error.text[0]);
	if (claim) {
		check_claim(claim);
		check_kept(claim);
	}
	claim_free(claim);
	error_clear(&error);
	claim = claim_load(text, &error);
	INVARIANT(claim || error.text[0]);
	if (claim)
		check_claim(claim);
	claim_free(claim);
	check_slice(text);
	return 0;
}
