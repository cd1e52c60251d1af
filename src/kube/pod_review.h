/* pod_review.h - what an API server asks before it takes a pod, and the answers */
#ifndef KUBE_POD_REVIEW_H
#define KUBE_POD_REVIEW_H

#include <jansson.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"

/* An AdmissionReview (admission.k8s.io/v1) about a pod. The texts are the document's. */
struct pod_review {
	json_t *document; /* to be given back with json_decref */
	const char *uid;
	bool creates; /* a pod is to be created; false: something that is not judged here */
	json_t *pod;  /* with the namespace of the request; NULL unless `creates` */
};
/* False with a reason if it is no review that can be answered. */
bool pod_review_read(struct text body, struct pod_review *asked, struct error *error);

/* Appends the answer. `refusal` NULL: it is allowed; `patch`: a JSON patch in base64, or NULL. */
void pod_review_answer(const char *uid, const char *refusal, const char *patch,
                       struct buffer *answer);

/* The patch, new, that gives a pod which asks for a part of a GPU by annotation what it needs to
 * find that: environment from its annotations, and the marker resource by which a device plugin
 * gives it the device files. NULL: it needs none. A container that has set one of these itself
 * keeps it. */
json_t *pod_review_patch(const json_t *pod);

#endif
