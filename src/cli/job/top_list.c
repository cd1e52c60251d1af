/* top_list.c - the other views of gpu-cli top: a list as its command shows it, and output */
#include "cli/job/top_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/text/text_width.h"
#include "json/member.h"

enum { WAIT_MS = 1000 };

bool top_contains(const char *text, const char *part)
{
	size_t size = strlen(part);
	for (; strlen(text) >= size; text++)
		if (strncasecmp(text, part, size) == 0)
			return true;
	return false;
}

bool top_list_load(struct top_list *list, struct session *session, struct error *error)
{
	json_t *items = list->source->load(session, error);
	if (!items)
		return false;
	/* Lines and ids point into the old ones. */
	list->count = 0;
	json_decref(list->items);
	list->items = items;
	return true;
}

void top_list_layout(struct top_list *list, struct session *session,
                     const struct terminal *terminal, const char *filter)
{
	struct terminal plain = *terminal;
	size_t size = 0, place = 0;
	char *rest, *line;
	free(list->text);
	list->text = NULL;
	FILE *to = open_memstream(&list->text, &size);
	if (!to)
		abort();
	plain.colours = false;
	listing_write(session, list->items, list->source, &plain, to);
	fclose(to);
	rest = list->text;
	list->heading = strsep(&rest, "\n");
	list->count = 0;
	for (; (line = strsep(&rest, "\n")) != NULL && place < json_array_size(list->items);
	     place++) {
		if (*filter && !top_contains(line, filter))
			continue;
		array_reserve(list->lines, list->line_capacity, list->count + 1);
		array_reserve(list->ids, list->id_capacity, list->count + 1);
		list->lines[list->count] = line;
		list->ids[list->count++] =
		    member_text(json_array_get(list->items, place), list->source->name_key);
	}
	top_list_move(list, 0);
}

void top_list_move(struct top_list *list, long rows)
{
	long to = (long)list->selected + rows;
	if (to >= (long)list->count)
		to = (long)list->count - 1;
	list->selected = to < 0 ? 0 : (size_t)to;
}

const char *top_list_id(const struct top_list *list)
{
	return list->selected < list->count ? list->ids[list->selected] : NULL;
}

void top_list_draw(struct top_list *list, struct canvas *canvas, size_t rows, const char *filter)
{
	if (list->selected < list->first)
		list->first = list->selected;
	if (rows > 0 && list->selected >= list->first + rows)
		list->first = list->selected - rows + 1;
	if (list->first + rows > list->count)
		list->first = list->count > rows ? list->count - rows : 0;
	canvas_text(canvas, COLOUR_CYAN, 0, false, "%s", list->source->title);
	canvas_text(canvas, COLOUR_GREY, 0, false, " %zu", list->count);
	if (*filter)
		canvas_text(canvas, COLOUR_YELLOW, 0, false, "  filter: %s", filter);
	canvas_end_line(canvas);
	canvas_text(canvas, COLOUR_GREY, 0, false, "%s", list->heading);
	canvas_end_line(canvas);
	for (size_t i = list->first; i < list->count && i < list->first + rows; i++) {
		canvas->reversed = i == list->selected;
		canvas_text(canvas, COLOUR_NONE, 0, false, "%s", list->lines[i]);
		canvas->reversed = false;
		canvas_end_line(canvas);
	}
}

void top_list_free(struct top_list *list)
{
	json_decref(list->items);
	free(list->text);
	free(list->lines);
	free(list->ids);
	*list = (struct top_list){ .source = list->source };
}

static void take_output(void *context, const char *data, size_t size)
{
	buffer_bytes(context, data, size);
}

bool top_log_load(struct top_log *log, const struct client *client, const char *path,
                  struct error *error)
{
	struct buffer output = { 0 };
	struct client_stream stream = { .part = take_output, .context = &output };
	enum fetch_state state = FETCH_RUNS;
	if (!client_stream_open(&stream, client, path, error))
		return false;
	while ((state = fetch_advance(stream.fetch, error)) == FETCH_RUNS)
		fetch_wait(stream.fetch, WAIT_MS);
	bool good = state == FETCH_COMPLETE && stream.answer.status == 200;
	if (state == FETCH_COMPLETE && !good)
		client_refusal(&stream.answer, client, error);
	if (good)
		top_log_read(log, output.data ? output.data : "", output.size);
	client_stream_close(&stream);
	buffer_free(&output);
	return good;
}

void top_log_read(struct top_log *log, const char *data, size_t size)
{
	struct buffer line = { 0 };
	size_t at = 0;
	buffer_clear(&log->text);
	log->count = 0;
	while (at < size) {
		const char *end = memchr(data + at, '\n', size - at);
		size_t length = end ? (size_t)(end - data) - at : size - at;
		buffer_clear(&line);
		/* What is behind a NUL is not text. */
		buffer_bytes(&line, data + at, length);
		buffer_bytes(&line, "", 1);
		size_t begin = log->text.size;
		text_clean(&log->text, line.data);
		buffer_bytes(&log->text, "", 1);
		array_reserve(log->starts, log->capacity, log->count + 1);
		log->starts[log->count++] = begin;
		at += length + (end ? 1 : 0);
	}
	buffer_free(&line);
}

void top_log_move(struct top_log *log, long rows, size_t shown)
{
	long last = log->count > shown ? (long)(log->count - shown) : 0;
	long to = (long)log->first + rows;
	log->first = to < 0 ? 0 : to > last ? (size_t)last : (size_t)to;
	log->left = (long)log->first < last;
}

void top_log_draw(struct top_log *log, struct canvas *canvas, size_t rows)
{
	if (!log->left || log->first + rows > log->count)
		log->first = log->count > rows ? log->count - rows : 0;
	canvas_text(canvas, COLOUR_CYAN, 0, false, "OUTPUT");
	canvas_text(canvas, COLOUR_GREY, 0, false, " of %s, %s", log->title,
	            log->left ? "scrolled up" : "following");
	canvas_end_line(canvas);
	for (size_t i = log->first; i < log->count && i < log->first + rows; i++) {
		canvas_text(canvas, COLOUR_NONE, 0, false, "%s", log->text.data + log->starts[i]);
		canvas_end_line(canvas);
	}
}

void top_log_free(struct top_log *log)
{
	buffer_free(&log->text);
	free(log->starts);
	*log = (struct top_log){ 0 };
}
