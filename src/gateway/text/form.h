/* form.h - the fields of multipart/form-data that name a model */
#ifndef GATEWAY_TEXT_FORM_H
#define GATEWAY_TEXT_FORM_H

#include "gateway/text/body.h"

/* Finds the fields `model` and `stream` of a form and fills in the scan, whose model_span is the
 * field's value. `content_type` is the request's. False with a reason: it is no such form, or a
 * field that matters is there twice. */
bool form_scan(struct text body, struct text content_type, struct body_scan *scan,
               struct error *error);
/* True if it is the content type of a form. */
bool form_is(struct text content_type);
/* Has the form name `model`. */
void form_edit(const struct body_scan *scan, const char *model, struct body_edits *edits);

#endif
