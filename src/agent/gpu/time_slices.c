/* time_slices.c - under how many names a Kubernetes device plugin advertises each GPU */
#include "agent/gpu/time_slices.h"

#include <stdlib.h>
#include <string.h>

#include "agent/host/file.h"
#include "base/number.h"

#define REPLICAS_MAX 1024

/* How far a line is indented; -1: there is nothing on it. */
static int indent_of(const char *line, const char *end)
{
	int indent = 0;

	while (line + indent < end && (line[indent] == ' ' || line[indent] == '-'))
		indent++;
	return line + indent == end || line[indent] == '#' ? -1 : indent;
}

/* Everything that is indented further belongs to `timeSlicing`. */
int64_t time_slices_in(const char *text)
{
	int64_t replicas = 1;
	int inside = -1; /* the indent of timeSlicing, while in it */

	for (const char *line = text; line && *line;) {
		const char *end = line + strcspn(line, "\n");
		int indent = indent_of(line, end);
		const char *word = indent >= 0 ? line + indent : end;
		if (indent >= 0 && inside >= 0 && indent <= inside)
			inside = -1;
		if (indent >= 0 && strncmp(word, "timeSlicing:", 12) == 0)
			inside = indent;
		else if (inside >= 0 && strncmp(word, "replicas:", 9) == 0)
			replicas = max64(replicas, min64(atoll(word + 9), REPLICAS_MAX));
		line = *end ? end + 1 : end;
	}
	return replicas;
}

int64_t time_slices_read(const char *path)
{
	struct buffer text = { 0 };
	int64_t replicas = file_read(path, 1u << 20, &text) ? time_slices_in(text.data) : 1;

	buffer_free(&text);
	return replicas;
}
