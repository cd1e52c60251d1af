/* listing.h - what a command shows, in the form that was asked for */
#ifndef CLI_LISTING_H
#define CLI_LISTING_H

#include "cli/session.h"
#include "cli/text/table.h"

/* A column of a table, made from one item of the answer: by `write`, or the
 * value of a field, `field` or the one named `key`. */
struct column {
	const char *title;
	void (*write)(struct session *session, struct table *table, const json_t *item);
	const struct resource_field *field;
	const char *key; /* the name of a field of what the command shows */
	bool right;
	bool shrinks; /* is cut where there is too little room */
	bool extra;   /* is shown with -o wide, and where the terminal has room for it */
};

#define COLUMN(its_title, its_write, ...)                                                          \
	{                                                                                          \
		.title = (its_title), .write = (its_write), __VA_ARGS__                            \
	}

extern const struct option listing_options[]; /* --columns, of commands that show a resource */

#define FIELD_COLUMN(its_title, its_key, ...)                                                      \
	{                                                                                          \
		.title = (its_title), .key = (its_key), __VA_ARGS__                                \
	}

/* Prints items as a table, one line for each, or as -o says. `name_key` is the member that
 * -o name prints. --columns has other columns than these printed. */
void listing_print(struct session *session, const json_t *items, const struct column *columns,
                   size_t count, const char *name_key);
/* What a list shows, for others that show it too. */
struct listing_source {
	const char *title, *name_key;
	const struct resource *resource; /* whose fields columns name */
	json_t *(*load)(struct session *session, struct error *error);
	const struct column *columns;
	size_t column_count;
};
/* Writes the items as a table for that terminal, with a line of titles. */
void listing_write(struct session *session, const json_t *items,
                   const struct listing_source *source, const struct terminal *terminal, FILE *to);
/* Prints one document as -o json, yaml or name says; false: a table is wanted. */
bool listing_print_document(const struct session *session, const json_t *document,
                            const char *name_key);

/* All of a command that lists: refuses operands (`hint` says what to do instead, or is empty),
 * reads --limit, which is `limit` where nothing is said, and shows. */
int listing_run(const struct arguments *arguments, int64_t limit, const char *hint,
                int (*show)(struct session *session, int64_t limit));

/* The most that --limit may say. */
enum { LISTING_MAX = 10000000 };

#define COLUMNS(array) (array), sizeof(array) / sizeof((array)[0])

/* Cells that many have. */
void listing_memory(struct table *table, int64_t mib);
/* How long since, or, of a moment to come, until. Nothing where it is not known (-1). */
void listing_since(struct table *table, int64_t moment_ms);
void listing_duration(struct table *table, int64_t ms);

#endif
