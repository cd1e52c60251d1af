/* report.h - what was measured: a table for people, and JSON for programs */
#ifndef CORE_BENCH_REPORT_H
#define CORE_BENCH_REPORT_H

#include <stdbool.h>
#include <stdio.h>

/* Everything is measured at the size that its target is for, and at twice that. */
enum size { SIZE_ONCE, SIZE_TWICE, SIZES };

/* The measured values, in the order of the table. Zero-initialised has none. */
#define METRICS_MAX 32
struct report {
	struct {
		double value;
		bool measured;
	} of[METRICS_MAX][SIZES];
};

/* Sets a value by the name of its metric, which must be one of the table's. */
void report_put(struct report *report, const char *name, enum size size, double value);

/* Prints one line per metric: value, unit, target, whether that is met, and the
 * value at twice the size. Returns how many targets are missed. */
int report_print(const struct report *report, FILE *file);
/* Writes one flat object of numbers: each value by its name, those at twice the
 * size with "_2x" behind it. False, with errno set, if it cannot be written. */
bool report_write(const struct report *report, const char *path);

#endif
