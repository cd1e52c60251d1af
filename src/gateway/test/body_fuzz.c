/* body_fuzz.c - whatever the body, it is refused or every span lies within it and edits keep the
 * rest */
#include "base/error.h"
#include "gateway/text/body.h"
#include "gateway/text/form.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_span(struct span span, size_t size)
{
	INVARIANT(span.size == 0 || (span.at <= size && span.size <= size - span.at));
}

static void check(struct text body, const struct body_scan *scan, bool is_form)
{
	struct body_edits edits = { 0 };
	struct buffer out = { 0 };
	struct body_scan again;
	struct error error = { 0 };
	uint64_t hashes[4];

	check_span(scan->model_span, body.size);
	check_span(scan->options, body.size);
	check_span(scan->include_usage, body.size);
	check_span(scan->turns, body.size);
	INVARIANT(strlen(scan->model) <= BODY_MODEL_MAX);
	INVARIANT(body_prefix(body, scan, 1, hashes, 4) <= 4);
	if (is_form)
		form_edit(scan, "replaced", &edits);
	else
		body_edit(scan, "repl\"aced", true, &edits);
	body_write(body, &edits, &out);
	INVARIANT(out.size == body_edited_size(body, &edits));
	if (!is_form) {
		INVARIANT(body_scan((struct text){ out.data, out.size }, &again, &error));
		INVARIANT(!scan->model[0] || strcmp(again.model, "repl\"aced") == 0);
		INVARIANT(scan->is_empty || again.wants_usage);
		INVARIANT(again.stream == scan->stream);
	}
	buffer_free(&out);
	body_edits_free(&edits);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct text body = { (const char *)data, size };
	struct body_scan scan;
	struct error error = { 0 };

	if (body_scan(body, &scan, &error))
		check(body, &scan, false);
	else
		INVARIANT(error.text[0]);
	if (form_scan(body, TEXT("multipart/form-data; boundary=x"), &scan, &error))
		check(body, &scan, true);
	return 0;
}
