/* plot.h - lines over an axis, as an SVG file */
#ifndef SIM_PLOT_H
#define SIM_PLOT_H

#include "base/buffer.h"
#include "base/error.h"

enum { PLOT_SERIES_MAX = 12 };

/* The lists belong to the caller. */
struct plot_series {
	const char *name;
	const double *x, *y;
	int count;
};

/* Ranges are what is shown; points outside are left out. */
struct plot {
	const char *title, *x_label, *y_label;
	double x_from, x_to, y_from, y_to;
	struct plot_series series[PLOT_SERIES_MAX];
	int series_count;
};

/* Appends the picture: deterministic, complete in itself, readable in light and
 * dark surroundings. */
void plot_print(const struct plot *plot, struct buffer *buffer);
/* Writes it to a file. */
bool plot_write(const struct plot *plot, const char *path, struct error *error);

#endif
