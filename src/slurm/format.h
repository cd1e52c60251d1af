/* format.h - the formats of squeue, sinfo and sacct: which columns, how wide, on which side */
#ifndef SLURM_FORMAT_H
#define SLURM_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

/* A column that there is. `print` writes the value for a row of the program. */
struct slurm_column {
	char letter;      /* of squeue and sinfo; 0: it has none */
	const char *name; /* of sacct and --Format, any case */
	const char *head;
	int width; /* where a format does not give one */
	void (*print)(struct buffer *to, const void *row);
};

/* One column of a format, or the text between two. */
struct slurm_piece {
	const struct slurm_column *column; /* NULL: text */
	const char *text;
	size_t text_size;
	int width;  /* 0: as wide as the value is */
	bool right; /* the value stands at the right */
};

enum { SLURM_PIECES_MAX = 100 };

/* Texts are pieces of what was parsed. */
struct slurm_format {
	struct slurm_piece pieces[SLURM_PIECES_MAX];
	size_t count;
	bool sacct;     /* heads are names, and a value that is cut ends with a plus sign */
	char separator; /* between columns, and nothing is cut; 0: none */
	bool trailing;  /* a separator stands at the end too */
};

/* Reads '%.18i %.9P %j' by the letters of the columns (a table that ends with one without a
 * head). False with a reason. */
bool slurm_format_read(struct slurm_format *format, const struct slurm_column *columns,
                       const char *text, struct error *error);
/* Reads 'JobID,JobName%20,State' by their names; %-20 stands at the left. */
bool slurm_format_read_names(struct slurm_format *format, const struct slurm_column *columns,
                             const char *text, struct error *error);

/* Prints the heads, the line below them (sacct), a row; each with a newline. */
void slurm_format_print_heads(const struct slurm_format *format, struct buffer *to);
void slurm_format_print_line(const struct slurm_format *format, struct buffer *to);
void slurm_format_print(const struct slurm_format *format, struct buffer *to, const void *row);

#endif
