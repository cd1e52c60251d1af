/* top_view.h - the screen of gpu-cli top */
#ifndef CLI_JOB_TOP_VIEW_H
#define CLI_JOB_TOP_VIEW_H

#include "cli/job/top_data.h"
#include "cli/job/top_list.h"
#include "cli/text/canvas.h"

enum top_panel { TOP_GPUS, TOP_JOBS };
enum top_sort { TOP_BY_NODE, TOP_BY_MEMORY, TOP_BY_BUSY, TOP_BY_HEAT, TOP_SORTS };
enum top_mode {
	TOP_LOOKING,
	TOP_FILTERING,
	TOP_ASKING,
	TOP_HELPING,
	TOP_EXPLAINING,
	TOP_READING /* output */
};

/* What top shows. `gpus` and `jobs` are the indexes of the rows that pass the filter, in their
 * order on the screen. */
struct top_view {
	const struct top_data *data;
	const char *server;
	enum top_panel panel;
	enum top_sort sort;
	enum top_mode mode;
	char filter[80];
	size_t *gpus, gpu_count, gpu_capacity;
	size_t *jobs, job_count, job_capacity;
	size_t selected[2], first[2]; /* by panel: the row that is chosen, and the topmost */
	bool live;                    /* events come; otherwise it is looked at from time to time */
	char message[256];            /* what just happened, or a question */
	const json_t *sentences;      /* why, while explaining */
	struct top_list *list;        /* shown in place of GPUs and jobs; NULL: those are */
	struct top_log *log;          /* while reading */
};

/* Applies filter and order, and keeps the selection within what there is. */
void top_view_arrange(struct top_view *view);
/* Writes the whole screen: exactly as many lines as the terminal has, or, where it has no end
 * (rows 0), as many as there are. */
void top_view_draw(struct top_view *view, struct canvas *canvas);
/* The one that is chosen; NULL: there is none. */
const struct top_gpu *top_view_gpu(const struct top_view *view);
const struct top_job *top_view_job(const struct top_view *view);
/* The rows that a list or output has on a screen of `rows`. */
size_t top_view_rows(int rows);
void top_view_free(struct top_view *view);

#endif
