/* progress.c - how far a long run is, for people who watch */
#include "sim/world/progress.h"

#include <stdio.h>
#include <unistd.h>

enum { WIDTH = 40 };

struct progress progress_begin(const char *what, int64_t of)
{
	return (struct progress){
		.what = what, .of = of, .shown = -1, .on = of > 0 && isatty(STDERR_FILENO) == 1
	};
}

void progress_add(struct progress *progress, int64_t done)
{
	progress->done += done;
	if (!progress->on)
		return;
	int thousandths = (int)(progress->done * 1000 / progress->of);
	if (thousandths == progress->shown)
		return;
	progress->shown = thousandths;
	int full = thousandths * WIDTH / 1000;
	fprintf(stderr, "\r%s [%.*s%.*s] %3d%%", progress->what, full,
	        "########################################", WIDTH - full,
	        "                                        ", thousandths / 10);
	fflush(stderr);
}

void progress_end(struct progress *progress)
{
	if (progress->on)
		fputs("\r\033[K", stderr);
	progress->on = false;
}
