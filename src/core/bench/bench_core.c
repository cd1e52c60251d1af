/* bench_core.c - how fast the core is: bench_core JSON-FILE [FOLDER-OF-THE-OPENB-TRACE] */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/bench/benches.h"

int main(int argc, char **argv)
{
	struct report report = { 0 };
	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: bench_core JSON-FILE [FOLDER-OF-THE-OPENB-TRACE]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (enum size size = 0; size < SIZES; size++) {
		queue_bench(&report, size);
		placement_bench(&report, size, argc > 2 ? argv[2] : "../shared/traces/openb");
		reclaim_bench(&report, size);
		route_bench(&report, size);
		evict_bench(&report, size);
		big_bench(&report, size);
	}
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
