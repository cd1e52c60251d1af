/* bench_core.c - how fast the core is: bench_core JSON-FILE [FOLDER-OF-THE-OPENB-TRACE [NAME...]]
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/bench/benches.h"

static const char *trace = "../shared/traces/openb";

static void placement(struct report *report, enum size size)
{
	placement_bench(report, size, trace);
}

static const struct {
	const char *name;
	void (*run)(struct report *report, enum size size);
} benches[] = {
	{ "queue", queue_bench }, { "placement", placement }, { "reclaim", reclaim_bench },
	{ "route", route_bench }, { "evict", evict_bench },   { "predict", predict_bench },
	{ "gang", gang_bench },   { "big", big_bench },
};

static bool core_is_named(const char *name, char **names, int count)
{
	bool named = false;

	for (int i = 0; i < count; i++)
		named = named || strcmp(names[i], name) == 0;
	return named;
}

int main(int argc, char **argv)
{
	struct report report = { 0 };
	if (argc < 2) {
		fprintf(stderr,
		        "usage: bench_core JSON-FILE [FOLDER-OF-THE-OPENB-TRACE [NAME...]]\n");
		return 2;
	}
	if (argc > 2)
		trace = argv[2];
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (enum size size = 0; size < SIZES; size++)
		for (size_t i = 0; i < sizeof(benches) / sizeof(benches[0]); i++)
			if (argc < 4 || core_is_named(benches[i].name, argv + 3, argc - 3))
				benches[i].run(&report, size);
	putchar('\n');
	int missed = report_print(&report, stdout);
	if (missed > 0)
		printf("\n%d %s missed\n", missed, missed == 1 ? "target is" : "targets are");
	if (!report_write(&report, argv[1])) {
		fprintf(stderr, "bench_core: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	return 0;
}
