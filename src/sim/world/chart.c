/* chart.c - lines over an axis, as an SVG file */
#include "sim/world/chart.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Pixels. The names of the series stand to the right of the lines. */
enum { WIDTH = 860, HEIGHT = 460, LEFT = 70, RIGHT = 150, TOP = 46, BOTTOM = 56, LINE = 20 };

/* Distinguishable for most people, color-blind ones included. */
static const char *const colours[] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7",
	                               "#e69f00", "#56b4e9", "#999999", "#6a3d9a",
	                               "#b15928", "#b2df8a", "#fb9a99", "#444444" };
enum { COLOURS = sizeof(colours) / sizeof(colours[0]) };

static void chart_print_text(struct buffer *buffer, const char *text)
{
	for (; *text; text++) {
		if (*text == '<')
			buffer_text(buffer, "&lt;");
		else if (*text == '&')
			buffer_text(buffer, "&amp;");
		else
			buffer_bytes(buffer, text, 1);
	}
}

static double x_of(const struct chart *chart, double x)
{
	return LEFT + (x - chart->x_from) / (chart->x_to - chart->x_from) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct chart *chart, double y)
{
	return HEIGHT - BOTTOM -
	       (y - chart->y_from) / (chart->y_to - chart->y_from) * (HEIGHT - TOP - BOTTOM);
}

/* A round distance that gives five to ten lines: 1, 2 or 5 times a power of ten. */
static double step_of(double range)
{
	double step = pow(10, floor(log10(range / 5)));

	if (range / step > 20)
		return step * 5;
	return range / step > 10 ? step * 2 : step;
}

static void print_label(struct buffer *buffer, double x, double y, const char *anchor,
                        const char *text)
{
	buffer_print(buffer, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
	chart_print_text(buffer, text);
	buffer_text(buffer, "</text>\n");
}

static void chart_print_line(struct buffer *buffer, double x1, double y1, double x2, double y2)
{
	buffer_print(buffer,
	             "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#888\" "
	             "stroke-opacity=\"0.35\"/>\n",
	             x1, y1, x2, y2);
}

static void print_axes(const struct chart *chart, struct buffer *buffer)
{
	double x_step = step_of(chart->x_to - chart->x_from);
	double y_step = step_of(chart->y_to - chart->y_from);
	char text[32];

	for (int i = 0; chart->x_from + i * x_step <= chart->x_to + x_step / 1000; i++) {
		double x = chart->x_from + i * x_step;
		snprintf(text, sizeof(text), "%g", x);
		chart_print_line(buffer, x_of(chart, x), TOP, x_of(chart, x), HEIGHT - BOTTOM);
		print_label(buffer, x_of(chart, x), HEIGHT - BOTTOM + LINE, "middle", text);
	}
	for (int i = 0; chart->y_from + i * y_step <= chart->y_to + y_step / 1000; i++) {
		double y = chart->y_from + i * y_step;
		snprintf(text, sizeof(text), "%g", y);
		chart_print_line(buffer, LEFT, y_of(chart, y), WIDTH - RIGHT, y_of(chart, y));
		print_label(buffer, LEFT - 8, y_of(chart, y) + 4, "end", text);
	}
	print_label(buffer, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 12, "middle", chart->x_label);
	buffer_print(buffer, "<g transform=\"translate(18 %.1f) rotate(-90)\">",
	             (TOP + HEIGHT - BOTTOM) / 2.0);
	print_label(buffer, 0, 0, "middle", chart->y_label);
	buffer_text(buffer, "</g>\n");
}

static bool is_shown(const struct chart *chart, double x, double y)
{
	return x >= chart->x_from && x <= chart->x_to && y >= chart->y_from && y <= chart->y_to;
}

static void print_line_of(const struct chart *chart, const struct chart_series *series,
                          const char *colour, struct buffer *buffer)
{
	buffer_print(buffer, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"",
	             colour);
	for (int i = 0; i < series->count; i++)
		if (is_shown(chart, series->x[i], series->y[i]))
			buffer_print(buffer, "%.1f,%.1f ", x_of(chart, series->x[i]),
			             y_of(chart, series->y[i]));
	buffer_text(buffer, "\"/>\n");
}

static void print_area_of(const struct chart *chart, int number, const char *colour,
                          struct buffer *buffer)
{
	const struct chart_series *upper = &chart->series[number];

	buffer_print(buffer, "<polygon fill=\"%s\" fill-opacity=\"0.85\" points=\"", colour);
	for (int i = 0; i < upper->count; i++)
		buffer_print(buffer, "%.1f,%.1f ", x_of(chart, upper->x[i]),
		             y_of(chart, upper->y[i]));
	for (int i = upper->count; i-- > 0;) {
		double lower = number > 0 ? chart->series[number - 1].y[i] : chart->y_from;
		buffer_print(buffer, "%.1f,%.1f ", x_of(chart, upper->x[i]), y_of(chart, lower));
	}
	buffer_text(buffer, "\"/>\n");
}

static void print_series(const struct chart *chart, int number, struct buffer *buffer)
{
	const struct chart_series *series = &chart->series[number];
	const char *colour = colours[number % COLOURS];
	double y = TOP + 12 + (double)number * LINE;

	if (chart->stacked)
		print_area_of(chart, number, colour, buffer);
	else
		print_line_of(chart, series, colour, buffer);
	buffer_print(buffer,
	             "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"%s\" "
	             "stroke-width=\"3\"/>\n",
	             WIDTH - RIGHT + 14, y - 4, WIDTH - RIGHT + 38, y - 4, colour);
	print_label(buffer, WIDTH - RIGHT + 46, y, "start", series->name);
}

static void print_chart(const struct chart *chart, struct buffer *buffer)
{
	INVARIANT(chart->x_from < chart->x_to && chart->y_from < chart->y_to);
	INVARIANT(chart->series_count <= CHART_SERIES_MAX);
	buffer_text(buffer, "<g font-size=\"16\">");
	print_label(buffer, LEFT, TOP - 18, "start", chart->title);
	buffer_text(buffer, "</g>\n");
	print_axes(chart, buffer);
	for (int i = 0; i < chart->series_count; i++)
		print_series(chart, i, buffer);
}

void charts_print(const struct chart *charts, int count, struct buffer *buffer)
{
	buffer_print(buffer,
	             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
	             "font-family=\"sans-serif\" font-size=\"13\" fill=\"#777\">\n",
	             WIDTH, HEIGHT * count);
	for (int i = 0; i < count; i++) {
		buffer_print(buffer, "<g transform=\"translate(0 %d)\">\n", i * HEIGHT);
		print_chart(&charts[i], buffer);
		buffer_text(buffer, "</g>\n");
	}
	buffer_text(buffer, "</svg>\n");
}

bool charts_write(const struct chart *charts, int count, const char *path, struct error *error)
{
	struct buffer buffer = { 0 };
	FILE *file = fopen(path, "wb");

	if (!file)
		return error_set(error, ERROR_INVALID, "%s: cannot be written: %s", path,
		                 strerror(errno));
	charts_print(charts, count, &buffer);
	bool fine = fwrite(buffer.data, 1, buffer.size, file) == buffer.size;
	fine = fclose(file) == 0 && fine;
	buffer_free(&buffer);
	return fine || error_set(error, ERROR_INVALID, "%s: could not be written completely", path);
}
