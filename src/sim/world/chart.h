/* chart.h - lines over an axis, as an SVG file */
#ifndef SIM_WORLD_CHART_H
#define SIM_WORLD_CHART_H

#include "base/buffer.h"
#include "base/error.h"

enum { CHART_SERIES_MAX = 12 };

/* The lists belong to the caller. */
struct chart_series {
	const char *name;
	const double *x, *y;
	int count;
};

/* Ranges are what is shown; points outside are left out. Where it is stacked, each
 * series is the upper edge of an area that begins where the one before ends, over the
 * same points. */
struct chart {
	const char *title, *x_label, *y_label;
	double x_from, x_to, y_from, y_to;
	struct chart_series series[CHART_SERIES_MAX];
	int series_count;
	bool stacked;
};

/* Appends a picture of all, one below the other: deterministic, complete in itself,
 * readable in light and dark surroundings. */
void charts_print(const struct chart *charts, int count, struct buffer *buffer);
/* Writes it to a file. */
bool charts_write(const struct chart *charts, int count, const char *path, struct error *error);

#endif
