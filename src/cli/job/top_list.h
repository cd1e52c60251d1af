/* top_list.h - the other views of gpu-cli top: a list as its command shows it, and output */
#ifndef CLI_JOB_TOP_LIST_H
#define CLI_JOB_TOP_LIST_H

#include "cli/listing.h"
#include "cli/text/canvas.h"

/* The rows of a list, as wide as the screen. `lines` and `ids` are those that pass the filter. */
struct top_list {
	const struct listing_source *source;
	json_t *items; /* NULL: not loaded */
	char *text;    /* the heading and all rows, one after the other */
	const char *heading;
	const char **lines, **ids;
	size_t count, line_capacity, id_capacity;
	size_t selected, first; /* the row that is chosen, and the topmost */
};

/* Asks the service. False with a reason, and what was there stays. */
bool top_list_load(struct top_list *list, struct session *session, struct error *error);
void top_list_layout(struct top_list *list, struct session *session,
                     const struct terminal *terminal, const char *filter);
/* Draws a title, the heading and `rows` rows. */
void top_list_draw(struct top_list *list, struct canvas *canvas, size_t rows, const char *filter);
/* The id of the row that is chosen; NULL: there is none. */
const char *top_list_id(const struct top_list *list);
void top_list_move(struct top_list *list, long rows);
void top_list_free(struct top_list *list);

/* The end of what a job or a model's server has written, line by line. */
struct top_log {
	char title[128];
	struct buffer text; /* each line ends with a NUL */
	size_t *starts;     /* of lines in the text */
	size_t count, capacity;
	size_t first;
	bool left; /* it was scrolled up: it does not follow */
};

/* Replaces it by the last part of the output at `path`. Control characters are taken out. */
bool top_log_load(struct top_log *log, const struct client *client, const char *path,
                  struct error *error);
void top_log_read(struct top_log *log, const char *data, size_t size);
void top_log_move(struct top_log *log, long rows, size_t shown);
void top_log_draw(struct top_log *log, struct canvas *canvas, size_t rows);
void top_log_free(struct top_log *log);

/* Whether the text has the part in it, in upper or lower case. */
bool top_contains(const char *text, const char *part);

#endif
