/* top_view.c - the screen of gpu-cli top */
#include "cli/job/top_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/number.h"
#include "base/size.h"
#include "cli/text/quantity.h"

enum { TITLES_ROWS_MIN = 16, HEAD_ROWS = 2, FOOT_ROWS = 1, BAR_LEAST = 16, BAR_MOST = 40 };

static bool gpu_matches(const struct top_view *view, const struct top_gpu *gpu)
{
	const struct top_data *data = view->data;
	if (!*view->filter || top_contains(gpu->node, view->filter) ||
	    top_contains(gpu->model, view->filter) || top_contains(gpu->uuid, view->filter))
		return true;
	for (size_t i = 0; i < gpu->part_count; i++) {
		const struct top_part *part = &data->parts[gpu->first_part + i];
		if (top_contains(part->owner, view->filter) ||
		    top_contains(part->label, view->filter))
			return true;
	}
	return false;
}

static bool job_matches(const struct top_view *view, const struct top_job *job)
{
	return !*view->filter || top_contains(job->id, view->filter) ||
	       top_contains(job->name, view->filter) || top_contains(job->tenant, view->filter) ||
	       top_contains(job->node, view->filter) || top_contains(job->state, view->filter);
}

/* Larger is shown first; the same keep their order. */
static int64_t rank(const struct top_gpu *gpu, enum top_sort sort)
{
	switch (sort) {
	case TOP_BY_MEMORY:
		return gpu->total_mib > 0 ? muldiv_down(gpu->used_mib, 1000, gpu->total_mib) : 0;
	case TOP_BY_BUSY:
		return gpu->busy;
	case TOP_BY_HEAT:
		return gpu->heat_c;
	default:
		return 0;
	}
}

/* By rank; those of the same keep their order. */
static void sort_gpus(struct top_view *view, size_t *places, size_t *spare, size_t count)
{
	if (count < 2)
		return;
	size_t half = count / 2, left = 0, right = half;
	sort_gpus(view, places, spare, half);
	sort_gpus(view, places + half, spare, count - half);
	for (size_t i = 0; i < count; i++) {
		bool takes_left =
		    left < half &&
		    (right == count || rank(&view->data->gpus[places[left]], view->sort) >=
		                           rank(&view->data->gpus[places[right]], view->sort));
		spare[i] = takes_left ? places[left++] : places[right++];
	}
	memcpy(places, spare, count * sizeof(*places));
}

static void keep_within(size_t *selected, size_t count)
{
	if (*selected >= count)
		*selected = count > 0 ? count - 1 : 0;
}

void top_view_arrange(struct top_view *view)
{
	const struct top_data *data = view->data;
	view->gpu_count = view->job_count = 0;
	array_reserve(view->gpus, view->gpu_capacity, data->gpu_count + 1);
	array_reserve(view->jobs, view->job_capacity, data->job_count + 1);
	for (size_t i = 0; i < data->gpu_count; i++)
		if (gpu_matches(view, &data->gpus[i]))
			view->gpus[view->gpu_count++] = i;
	for (size_t i = 0; i < data->job_count; i++)
		if (job_matches(view, &data->jobs[i]))
			view->jobs[view->job_count++] = i;
	if (view->sort != TOP_BY_NODE && view->gpu_count > 0) {
		size_t *spare = memory_alloc(view->gpu_count * sizeof(*spare));
		sort_gpus(view, view->gpus, spare, view->gpu_count);
		free(spare);
	}
	keep_within(&view->selected[TOP_GPUS], view->gpu_count);
	keep_within(&view->selected[TOP_JOBS], view->job_count);
}

const struct top_gpu *top_view_gpu(const struct top_view *view)
{
	return view->gpu_count > 0 ? &view->data->gpus[view->gpus[view->selected[TOP_GPUS]]] : NULL;
}

const struct top_job *top_view_job(const struct top_view *view)
{
	return view->job_count > 0 ? &view->data->jobs[view->jobs[view->selected[TOP_JOBS]]] : NULL;
}

void top_view_free(struct top_view *view)
{
	free(view->gpus);
	free(view->jobs);
	view->gpus = view->jobs = NULL;
}

static void put_memory(struct canvas *canvas, int columns, int64_t mib)
{
	struct buffer text = { 0 };
	size_print(&text, mib);
	canvas_text(canvas, COLOUR_NONE, columns, columns > 0, "%s", text.data);
	buffer_free(&text);
}

static void draw_head(const struct top_view *view, struct canvas *canvas)
{
	const struct top_data *data = view->data;
	canvas_text(canvas, COLOUR_BOLD, 0, false, "gpu-scheduler");
	canvas_text(canvas, COLOUR_NONE, 0, false, "  nodes %lld/%lld  GPUs %lld, %lld free",
	            (long long)data->online_nodes, (long long)data->nodes,
	            (long long)data->total_gpus, (long long)data->free_gpus);
	if (data->busy >= 0)
		canvas_text(canvas, COLOUR_NONE, 0, false, ", %d%% busy", data->busy);
	canvas_text(canvas, COLOUR_NONE, 0, false, "  memory ");
	put_memory(canvas, 0, data->reserved_mib);
	canvas_text(canvas, COLOUR_NONE, 0, false, "/");
	put_memory(canvas, 0, data->total_mib);
	if (canvas->terminal.rows > 0)
		canvas_text(canvas, view->live ? COLOUR_GREEN : COLOUR_YELLOW, 0, false,
		            view->live ? "  live" : "  polling");
	canvas_text(canvas, COLOUR_GREY, 0, false, "  %s", view->server);
	canvas_end_line(canvas);
}

/* How each kind of memory looks, with colors and without. */
static const struct {
	const char *sign, *word;
	char plain;
	enum colour colour; /* COLOUR_NONE: that of its owner */
} looks[] = {
	[TOP_LIVE] = { "█", "in use", '#', COLOUR_NONE },
	[TOP_HELD] = { "▓", "starting", '+', COLOUR_NONE },
	[TOP_RELEASING] = { "▒", "being freed", '-', COLOUR_MAGENTA },
	[TOP_FOREIGN] = { "░", "foreign", '%', COLOUR_RED },
	[TOP_UNEXPLAINED] = { "▚", "unexplained", '?', COLOUR_RED },
	[TOP_OVERHEAD] = { "▁", "overhead", '_', COLOUR_GREY },
};

static void draw_legend(struct canvas *canvas)
{
	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		enum colour colour =
		    looks[i].colour == COLOUR_NONE ? COLOUR_GREEN : looks[i].colour;
		canvas_sign(canvas, colour, looks[i].sign, looks[i].plain, 1);
		canvas_text(canvas, COLOUR_GREY, 0, false, " %s  ", looks[i].word);
	}
	canvas_sign(canvas, COLOUR_GREY, "·", '.', 1);
	canvas_text(canvas, COLOUR_GREY, 0, false, " free");
	canvas_end_line(canvas);
}

/* An owner has one color on all GPUs. */
static enum colour colour_of_owner(const char *owner)
{
	static const enum colour colours[] = { COLOUR_GREEN, COLOUR_CYAN, COLOUR_BLUE,
		                               COLOUR_YELLOW };
	uint64_t hash = 1469598103934665603U;
	if (!*owner)
		return COLOUR_GREY;
	for (; *owner; owner++)
		hash = (hash ^ (unsigned char)*owner) * 1099511628211U;
	return colours[(hash >> 17) % (sizeof(colours) / sizeof(colours[0]))];
}

/* A GPU's memory in proportion. What is there at all has a column of its own, if there are
 * enough. */
static void draw_bar(const struct top_view *view, struct canvas *canvas, const struct top_gpu *gpu,
                     int columns)
{
	int64_t total = max64(gpu->total_mib, 1), mib = 0;
	int used = 0;
	canvas_text(canvas, COLOUR_NONE, 0, false, "[");
	for (size_t i = 0; i < gpu->part_count; i++) {
		const struct top_part *part = &view->data->parts[gpu->first_part + i];
		mib += part->mib;
		int until = (int)min64(muldiv_down(min64(mib, total), columns, total), columns);
		if (until == used && used < columns)
			until = used + 1;
		enum colour colour = looks[part->phase].colour;
		if (colour == COLOUR_NONE)
			colour = colour_of_owner(part->owner);
		/* Without colors, a line marks where the next owner begins, if there is room. */
		if (i > 0 && until > used + 1 && !canvas->terminal.colours) {
			canvas_sign(canvas, COLOUR_NONE, "│", '|', 1);
			used++;
		}
		canvas_sign(canvas, colour, looks[part->phase].sign, looks[part->phase].plain,
		            until - used);
		used = until;
	}
	canvas_sign(canvas, COLOUR_GREY, "·", '.', columns - used);
	canvas_text(canvas, COLOUR_NONE, 0, false, "]");
}

static void draw_owners(const struct top_view *view, struct canvas *canvas,
                        const struct top_gpu *gpu)
{
	const char *note = !gpu->online     ? "offline "
	                   : gpu->unhealthy ? "unhealthy "
	                   : gpu->over      ? "over "
	                   : gpu->draining  ? "draining "
	                                    : "";
	if (*note)
		canvas_text(canvas, gpu->draining ? COLOUR_YELLOW : COLOUR_RED, 0, false, "%s",
		            note);
	bool first = true;
	for (size_t i = 0; i < gpu->part_count; i++) {
		const struct top_part *part = &view->data->parts[gpu->first_part + i];
		if (!*part->owner && !*part->label)
			continue;
		canvas_text(canvas, colour_of_owner(part->owner), 0, false, "%s%s%s%s",
		            first ? "" : ", ", part->owner, *part->owner ? " " : "", part->label);
		first = false;
	}
}

/* The columns of the panel of GPUs, by how wide the terminal is. */
struct widths {
	int node, bar, owners;
};

static struct widths gpu_widths(const struct top_view *view, int columns)
{
	struct widths widths = { .node = 6 };
	for (size_t i = 0; i < view->gpu_count; i++) {
		int length = (int)strlen(view->data->gpus[view->gpus[i]].node);
		if (length > widths.node)
			widths.node = length;
	}
	if (widths.node > columns / 5)
		widths.node = columns / 5;
	/* Behind the node: index, brackets, used/total, busy, heat, and gaps. */
	int left = columns - widths.node - 4 - 4 - 12 - 6 - 6;
	widths.bar = left / 2 < BAR_LEAST ? BAR_LEAST : left / 2 > BAR_MOST ? BAR_MOST : left / 2;
	widths.owners = left > widths.bar ? left - widths.bar : 0;
	return widths;
}

static void draw_gpu(const struct top_view *view, struct canvas *canvas, const struct top_gpu *gpu,
                     const struct widths *widths, bool selected)
{
	canvas->reversed = selected;
	canvas_text(canvas, COLOUR_NONE, widths->node, false, "%s", gpu->node);
	canvas_text(canvas, COLOUR_NONE, 3, true, "%lld", (long long)gpu->index);
	canvas->reversed = false;
	canvas_text(canvas, COLOUR_NONE, 1, false, "%s", "");
	draw_bar(view, canvas, gpu, widths->bar);
	put_memory(canvas, 6, gpu->used_mib);
	canvas_text(canvas, COLOUR_NONE, 0, false, "/");
	struct buffer total = { 0 };
	size_print(&total, gpu->total_mib);
	canvas_text(canvas, COLOUR_NONE, 5, false, "%s", total.data);
	buffer_free(&total);
	if (gpu->busy >= 0)
		canvas_text(canvas, gpu->busy >= 80 ? COLOUR_GREEN : COLOUR_NONE, 5, true, "%d%%",
		            gpu->busy);
	else
		canvas_text(canvas, COLOUR_NONE, 5, true, "-");
	if (gpu->heat_c >= 0)
		canvas_text(canvas, gpu->hot ? COLOUR_RED : COLOUR_NONE, 5, true, "%dC",
		            gpu->heat_c);
	else
		canvas_text(canvas, COLOUR_NONE, 5, true, "-");
	canvas_text(canvas, COLOUR_NONE, 2, false, "%s", "");
	draw_owners(view, canvas, gpu);
	canvas_end_line(canvas);
}

/* A title, and which of how many rows are shown; the rest of the line is for whoever calls. */
static void draw_title(struct canvas *canvas, bool chosen, const char *title, size_t first,
                       size_t shown, size_t count)
{
	canvas_text(canvas, chosen ? COLOUR_CYAN : COLOUR_BOLD, 0, false, "%s", title);
	if (shown < count)
		canvas_text(canvas, COLOUR_GREY, 0, false, " %zu-%zu of %zu", first + 1,
		            first + shown, count);
	else
		canvas_text(canvas, COLOUR_GREY, 0, false, " %zu", count);
}

/* Scrolls so that the chosen row is seen. */
static size_t scroll(struct top_view *view, enum top_panel panel, size_t count, size_t rows)
{
	size_t *first = &view->first[panel], selected = view->selected[panel];
	if (selected < *first)
		*first = selected;
	if (rows > 0 && selected >= *first + rows)
		*first = selected - rows + 1;
	if (*first + rows > count)
		*first = count > rows ? count - rows : 0;
	return *first;
}

/* Small terminals have no row to spare for titles of columns. */
static bool has_titles(int rows)
{
	return rows == 0 || rows >= TITLES_ROWS_MIN;
}

static void draw_gpu_titles(struct canvas *canvas, const struct widths *widths)
{
	canvas_text(canvas, COLOUR_GREY, widths->node, false, "%s", "NODE");
	canvas_text(canvas, COLOUR_GREY, 3, true, "%s", "GPU");
	canvas_text(canvas, COLOUR_GREY, widths->bar + 3, false, " %s", "MEMORY");
	canvas_text(canvas, COLOUR_GREY, 12, false, "  %s", "USED/TOTAL");
	canvas_text(canvas, COLOUR_GREY, 5, true, "%s", "BUSY");
	canvas_text(canvas, COLOUR_GREY, 5, true, "%s", "TEMP");
	canvas_text(canvas, COLOUR_GREY, 0, false, "  %s", "JOBS AND MODELS");
	canvas_end_line(canvas);
}

static void draw_gpus(struct top_view *view, struct canvas *canvas, size_t rows)
{
	static const char *const sorts[TOP_SORTS] = { "node", "memory", "busy", "temperature" };
	struct widths widths = gpu_widths(view, canvas->terminal.columns);
	size_t first = scroll(view, TOP_GPUS, view->gpu_count, rows);
	size_t shown = view->gpu_count - first < rows ? view->gpu_count - first : rows;
	draw_title(canvas, view->panel == TOP_GPUS, "GPUS", first, shown, view->gpu_count);
	canvas_text(canvas, COLOUR_GREY, 0, false, "  sort: %s", sorts[view->sort]);
	if (*view->filter)
		canvas_text(canvas, COLOUR_YELLOW, 0, false, "  filter: %s", view->filter);
	canvas_end_line(canvas);
	if (shown > 0 && has_titles(canvas->terminal.rows))
		draw_gpu_titles(canvas, &widths);
	for (size_t i = first; i < first + shown; i++)
		draw_gpu(view, canvas, &view->data->gpus[view->gpus[i]], &widths,
		         view->panel == TOP_GPUS && i == view->selected[TOP_GPUS]);
}

static void put_moment(struct canvas *canvas, int columns, int64_t ms)
{
	struct buffer text = { 0 };
	buffer_text(&text, "");
	if (ms >= 0)
		quantity_print_moment(&text, ms);
	canvas_text(canvas, COLOUR_NONE, columns, false, "%s", ms >= 0 ? text.data : "-");
	buffer_free(&text);
}

static void put_since(struct canvas *canvas, int columns, int64_t ms)
{
	struct buffer text = { 0 };
	duration_print(&text, max64(clock_unix_ms() - ms, 0));
	canvas_text(canvas, COLOUR_NONE, columns, true, "%s", ms >= 0 ? text.data : "-");
	buffer_free(&text);
}

static void draw_job(const struct top_view *view, struct canvas *canvas, const struct top_job *job,
                     bool selected)
{
	int columns = canvas->terminal.columns;
	int name = columns >= 120 ? 30 : 14, tenant = columns >= 120 ? 20 : 10;
	(void)view;
	canvas->reversed = selected;
	canvas_text(canvas, COLOUR_NONE, 10, false, "%s", job->id);
	canvas->reversed = false;
	canvas_text(canvas, colour_of_state(job->state), 11, false, "%s", job->state);
	canvas_text(canvas, COLOUR_NONE, name, false, "%s", job->name);
	canvas_text(canvas, COLOUR_NONE, 1, false, "%s", "");
	canvas_text(canvas, COLOUR_NONE, tenant, false, "%s", job->tenant);
	canvas_text(canvas, COLOUR_NONE, 7, true, "%s", job->gpus);
	canvas_text(canvas, COLOUR_NONE, 7, true, "%lld", (long long)job->priority);
	bool waits = job->started_ms < 0;
	put_since(canvas, 8, waits ? job->submitted_ms : job->started_ms);
	canvas_text(canvas, COLOUR_NONE, 2, false, "%s", "");
	if (!waits)
		canvas_text(canvas, COLOUR_NONE, columns >= 120 ? 24 : 10, false, "%s", job->node);
	else
		put_moment(canvas, columns >= 120 ? 24 : 10, job->start_ms);
	if (columns >= 120 && job->position > 0)
		canvas_text(canvas, COLOUR_NONE, 0, false, "# %lld", (long long)job->position);
	canvas_end_line(canvas);
}

static void draw_job_titles(struct canvas *canvas)
{
	bool wide = canvas->terminal.columns >= 120;
	canvas_text(canvas, COLOUR_GREY, 10, false, "%s", "JOB");
	canvas_text(canvas, COLOUR_GREY, 11, false, "%s", "STATE");
	canvas_text(canvas, COLOUR_GREY, wide ? 31 : 15, false, "%s", "NAME");
	canvas_text(canvas, COLOUR_GREY, wide ? 20 : 10, false, "%s", "TENANT");
	canvas_text(canvas, COLOUR_GREY, 7, true, "%s", "GPUS");
	canvas_text(canvas, COLOUR_GREY, 7, true, "%s", "PRIO");
	canvas_text(canvas, COLOUR_GREY, 8, true, "%s", "FOR");
	canvas_text(canvas, COLOUR_GREY, 0, false, "  %s", "NODE/START");
	canvas_end_line(canvas);
}

static void draw_jobs(struct top_view *view, struct canvas *canvas, size_t rows)
{
	size_t first = scroll(view, TOP_JOBS, view->job_count, rows);
	size_t shown = view->job_count - first < rows ? view->job_count - first : rows;
	draw_title(canvas, view->panel == TOP_JOBS, "JOBS", first, shown, view->job_count);
	canvas_text(canvas, COLOUR_GREY, 0, false, "  %lld waiting, %lld running",
	            (long long)view->data->waiting, (long long)view->data->running);
	canvas_end_line(canvas);
	if (shown > 0 && has_titles(canvas->terminal.rows))
		draw_job_titles(canvas);
	for (size_t i = first; i < first + shown; i++)
		draw_job(view, canvas, &view->data->jobs[view->jobs[i]],
		         view->panel == TOP_JOBS && i == view->selected[TOP_JOBS]);
}

static void draw_lines(struct canvas *canvas, const char *const *lines)
{
	for (; *lines; lines++) {
		canvas_text(canvas, COLOUR_NONE, 0, false, "  %s", *lines);
		canvas_end_line(canvas);
	}
}

static void draw_help(struct canvas *canvas)
{
	static const char *const lines[] = {
		"",
		"q          quit",
		"Tab        GPUs, or jobs: the chosen panel has the cursor",
		"up, down   choose (also j and k, page up and down, home and end)",
		"1 to 5     view: GPUs and jobs, queue, tenants, models, nodes",
		"l          output of the chosen job or model; arrows scroll, any other key leaves",
		"s          sort the GPUs: by node, memory, busy, temperature",
		"/          filter the rows: node, job, name, tenant. Enter keeps it, Esc drops it",
		"w, Enter   why the chosen job waits, or is where it is",
		"c          cancel the chosen job",
		"d          drain the chosen node, or that of the chosen GPU; or resume it",
		"r          look again now",
		"",
		"any key goes back",
		NULL,
	};
	draw_lines(canvas, lines);
}

/* Sentences, each broken at spaces to fit. */
static void draw_sentences(const struct top_view *view, struct canvas *canvas, int rows)
{
	size_t place;
	json_t *sentence;
	canvas_end_line(canvas);
	json_array_foreach(view->sentences, place, sentence)
	{
		const char *text = json_string_value(sentence);
		canvas_text(canvas, COLOUR_NONE, 0, false, "  ");
		while (*text && canvas->row < rows - 2) {
			size_t word = strcspn(text, " ");
			if (canvas->column > 2 &&
			    canvas->column + 1 + (int)word > canvas->terminal.columns) {
				canvas_end_line(canvas);
				canvas_text(canvas, COLOUR_NONE, 0, false, "    ");
			}
			canvas_text(canvas, COLOUR_NONE, 0, false, "%.*s ", (int)word, text);
			text += word + strspn(text + word, " ");
		}
		if (canvas->row >= rows - 2)
			break;
		canvas_end_line(canvas);
	}
}

static void draw_foot(const struct top_view *view, struct canvas *canvas)
{
	if (view->mode == TOP_FILTERING)
		canvas_text(canvas, COLOUR_YELLOW, 0, false, "/%s_", view->filter);
	else if (*view->message)
		canvas_text(canvas, COLOUR_YELLOW, 0, false, "%s", view->message);
	else
		canvas_text(canvas, COLOUR_GREY, 0, false,
		            "q quit  1-5 view  Tab panel  / filter  l output  w why  c cancel  d "
		            "drain  ? help");
}

/* Rows of each panel: jobs get what they need up to a third, more where GPUs need less. */
static void top_divide_rows(const struct top_view *view, int rows, size_t *gpus, size_t *jobs)
{
	size_t room = rows > HEAD_ROWS + FOOT_ROWS + 4
	                  ? (size_t)(rows - HEAD_ROWS - FOOT_ROWS - 2 - (has_titles(rows) ? 2 : 0))
	                  : 2;
	size_t third = room / 3;
	*gpus = view->gpu_count < room - third ? view->gpu_count : room - third;
	*jobs = room - *gpus;
	if (view->job_count < *jobs) {
		*jobs = view->job_count;
		*gpus = room - *jobs < view->gpu_count ? room - *jobs : view->gpu_count;
	}
}

size_t top_view_rows(int rows)
{
	int left = rows - HEAD_ROWS - FOOT_ROWS - 1;
	return left > 1 ? (size_t)left : 2;
}

void top_view_draw(struct top_view *view, struct canvas *canvas)
{
	int rows = canvas->terminal.rows;
	size_t gpus = view->gpu_count, jobs = view->job_count;
	if (rows > 0)
		top_divide_rows(view, rows, &gpus, &jobs);
	draw_head(view, canvas);
	draw_legend(canvas);
	if (view->mode == TOP_HELPING) {
		draw_help(canvas);
	} else if (view->mode == TOP_EXPLAINING) {
		draw_sentences(view, canvas, rows);
	} else if (view->mode == TOP_READING) {
		top_log_draw(view->log, canvas, top_view_rows(rows));
	} else if (view->list) {
		top_list_draw(view->list, canvas, top_view_rows(rows) - 1, view->filter);
	} else {
		draw_gpus(view, canvas, gpus);
		draw_jobs(view, canvas, jobs);
	}
	if (rows == 0)
		return;
	while (canvas->row < rows - FOOT_ROWS)
		canvas_end_line(canvas);
	draw_foot(view, canvas);
}
