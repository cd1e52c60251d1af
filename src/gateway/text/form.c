/* form.c - the fields of multipart/form-data that name a model */
#include "gateway/text/form.h"

#include <stdio.h>

enum { BOUNDARY_MAX = 70, PARTS_MAX = 1000, HEAD_MAX = 4096 };

bool form_is(struct text content_type)
{
	struct text list = content_type, type;

	return text_next(&list, ';', &type) && text_is_any_case(type, "multipart/form-data");
}

/* The value of a parameter such as boundary=x or name="x"; no data: it is not there. */
static struct text parameter(struct text header, const char *name)
{
	struct text list = header, item;
	size_t size = strlen(name);

	while (text_next(&list, ';', &item)) {
		if (item.size <= size || strncasecmp(item.data, name, size) != 0 ||
		    item.data[size] != '=')
			continue;
		struct text value = text_from(item, size + 1);
		if (value.size >= 2 && value.data[0] == '"' && value.data[value.size - 1] == '"')
			value = (struct text){ value.data + 1, value.size - 2 };
		return value;
	}
	return (struct text){ 0 };
}

static struct text head_line(struct text *head)
{
	const char *end = memmem(head->data, head->size, "\r\n", 2);
	struct text line = { head->data, end ? (size_t)(end - head->data) : head->size };

	*head = text_from(*head, line.size + (end ? 2 : 0));
	return line;
}

/* The name of the field that a part's head is of; no data: it has none, or is a file. */
static struct text field_name(struct text head)
{
	static const char title[] = "content-disposition:";
	struct text line;

	while (head.size > 0) {
		line = head_line(&head);
		if (line.size < sizeof(title) ||
		    strncasecmp(line.data, title, sizeof(title) - 1) != 0)
			continue;
		if (parameter(line, "filename").data || parameter(line, "filename*").data)
			return (struct text){ 0 };
		return parameter(line, "name");
	}
	return (struct text){ 0 };
}

static bool take_field(struct text body, struct text name, struct text value,
                       struct body_scan *scan, struct error *error)
{
	if (text_is(name, "model")) {
		if (scan->model_span.size > 0 || scan->model[0])
			return error_set(error, ERROR_INVALID,
			                 "the form has the field model twice");
		if (value.size == 0 || value.size >= BODY_MODEL_MAX || text_has_control(value))
			return error_set(error, ERROR_INVALID, "the form's field model is no name");
		scan->model_span = (struct span){ (size_t)(value.data - body.data), value.size };
		memcpy(scan->model, value.data, value.size);
		scan->model[value.size] = '\0';
	} else if (text_is(name, "stream")) {
		scan->stream = text_is_any_case(value, "true") ? BODY_STREAM_YES : BODY_STREAM_NO;
	} else if (text_is_any_case(name, "model")) {
		return error_set(error, ERROR_INVALID, "the form's field model is in lower case");
	}
	return true;
}

/* One part, between two delimiters. */
static bool take_part(struct text body, struct text part, struct body_scan *scan,
                      struct error *error)
{
	size_t head_most = part.size < HEAD_MAX ? part.size : HEAD_MAX;
	const char *end = memmem(part.data, head_most, "\r\n\r\n", 4);

	if (!end)
		return error_set(error, ERROR_INVALID, "a part of the form has no proper head");
	struct text head = { part.data, (size_t)(end - part.data) };
	struct text name = field_name(head);
	return !name.data || take_field(body, name, text_from(part, head.size + 4), scan, error);
}

bool form_scan(struct text body, struct text content_type, struct body_scan *scan,
               struct error *error)
{
	struct text boundary = parameter(content_type, "boundary");
	char delimiter[BOUNDARY_MAX + 8];

	*scan = (struct body_scan){ 0 };
	if (boundary.size == 0 || boundary.size > BOUNDARY_MAX)
		return error_set(error, ERROR_INVALID, "the form's content type has no boundary");
	int size =
	    snprintf(delimiter, sizeof(delimiter), "\r\n--%.*s", (int)boundary.size, boundary.data);
	/* The first delimiter has no line end before it. */
	if (body.size < (size_t)size || memcmp(body.data, delimiter + 2, (size_t)size - 2) != 0)
		return error_set(error, ERROR_INVALID, "the form does not begin with its boundary");
	struct text rest = text_from(body, (size_t)size - 2);
	for (int parts = 0; rest.size >= 2 && memcmp(rest.data, "--", 2) != 0; parts++) {
		const char *end = memmem(rest.data, rest.size, delimiter, (size_t)size);
		if (!end || parts == PARTS_MAX)
			return error_set(error, ERROR_INVALID,
			                 parts == PARTS_MAX ? "the form has too many parts"
			                                    : "the form ends too early");
		struct text part = { rest.data, (size_t)(end - rest.data) };
		if (part.size < 2 || !text_starts(part, "\r\n"))
			return error_set(error, ERROR_INVALID,
			                 "a part of the form has no line end");
		if (!take_part(body, text_from(part, 2), scan, error))
			return false;
		rest = text_from(rest, part.size + (size_t)size);
	}
	if (rest.size < 2)
		return error_set(error, ERROR_INVALID, "the form ends too early");
	return true;
}

void form_edit(const struct body_scan *scan, const char *model, struct body_edits *edits)
{
	edits->count = 0;
	if (!model || strlen(model) >= BODY_MODEL_MAX || scan->model_span.size == 0)
		return;
	buffer_clear(&edits->made);
	buffer_text(&edits->made, model);
	edits->of[edits->count++] = (struct body_edit){ scan->model_span.at, scan->model_span.size,
		                                        text_of(edits->made.data) };
}
