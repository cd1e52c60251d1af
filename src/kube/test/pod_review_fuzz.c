/* pod_review_fuzz.c - reviews of pods that strangers wrote: read, patched and answered */
#include <stdint.h>
#include <stdlib.h>

#include "kube/pod_review.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pod_review asked;
	struct buffer answer = { 0 };
	struct error error = { 0 };

	if (!pod_review_read((struct text){ (const char *)data, size }, &asked, &error)) {
		if (!error.text[0] || asked.document)
			abort();
		return 0;
	}
	if (asked.creates != (asked.pod != NULL))
		abort();
	if (asked.pod)
		json_decref(pod_review_patch(asked.pod));
	pod_review_answer(asked.uid, "no", NULL, &answer);
	buffer_free(&answer);
	json_decref(asked.document);
	return 0;
}
