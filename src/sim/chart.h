/* chart.h - lines over an axis, as an SVG file */
#ifndef SIM_CHART_H
#define SIM_CHART_H

#include "base/buffer.h"
#include "base/error.h"

enum { CHART_SERIES_MAX = 12 };

/* The lists belong to the caller. */
struct chart_series {
	const char *name;
	const double *x, *y;
	int count;
};

/* Ranges are what is shown; points outside are left out. */
struct chart {
	const char *title, *x_label, *y_label;
	double x_from, x_to, y_from, y_to;
	struct chart_series series[CHART_SERIES_MAX];
	int series_count;
};

/* Appends the picture: deterministic, complete in itself, readable in light and
 * dark surroundings. */
void chart_print(const struct chart *chart, struct buffer *buffer);
/* Writes it to a file. */
bool chart_write(const struct chart *chart, const char *path, struct error *error);

#endif
