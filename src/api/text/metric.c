/* metric.c - the metrics: one table, from which /metrics and the documentation follow */
#include "api/text/metric.h"

#include <inttypes.h>

#include "base/error.h"

enum metric_kind { GAUGE, COUNTER, HISTOGRAM };
static const char *const kind_names[] = { "gauge", "counter", "histogram" };

#define METRIC_ROW(symbol, kind, name, labels, help)                                               \
	[METRIC_##symbol] = { "gpu_scheduler_" name, labels, help, kind },
static const struct {
	const char *name, *labels, *help;
	enum metric_kind kind;
} metrics[METRIC_COUNT] = { METRICS(METRIC_ROW) };

const char *metric_name(enum metric metric)
{
	INVARIANT(metric < METRIC_COUNT);
	return metrics[metric].name;
}

void metric_head(struct buffer *text, enum metric metric)
{
	const char *name = metric_name(metric);
	buffer_print(text, "# HELP %s %s\n# TYPE %s %s\n", name, metrics[metric].help, name,
	             kind_names[metrics[metric].kind]);
}

void metric_put_integer(struct buffer *text, enum metric metric, int64_t value)
{
	metric_head(text, metric);
	buffer_print(text, "%s %" PRId64 "\n", metric_name(metric), value);
}

void metric_put_decimal(struct buffer *text, enum metric metric, double value, int places)
{
	metric_head(text, metric);
	buffer_print(text, "%s %.*f\n", metric_name(metric), places, value);
}

/* "node, gpu" as "`node`, `gpu`". */
static void describe_labels(struct buffer *text, const char *labels)
{
	if (!*labels)
		return;
	buffer_text(text, "`");
	for (; *labels; labels++) {
		if (*labels == ',')
			buffer_text(text, "`, `");
		else if (*labels != ' ')
			buffer_bytes(text, labels, 1);
	}
	buffer_text(text, "`");
}

void metrics_describe(struct buffer *text)
{
	buffer_text(text, "| metric | type | labels | |\n|---|---|---|---|\n");
	for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
		buffer_print(text, "| `%s` | %s | ", metrics[metric].name,
		             kind_names[metrics[metric].kind]);
		describe_labels(text, metrics[metric].labels);
		buffer_print(text, "%s| %s |\n", *metrics[metric].labels ? " " : "",
		             metrics[metric].help);
	}
}
