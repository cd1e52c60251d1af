/* measure.c - what processes and commands cost and say, for benchmarks */
#include "wire/bench/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

double process_cpu_s(pid_t process)
{
	char path[64];
	unsigned long user = 0, kernel = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)process);
	FILE *file = fopen(path, "r");
	if (!file)
		return 0;
	int count = fscanf(file, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
	                   &user, &kernel);
	fclose(file);
	return count == 2 ? (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK) : 0;
}

double command_number(const char *command, const char *word, bool before)
{
	FILE *pipe = popen(command, "r");
	char line[1024];
	double value = -1;
	if (!pipe)
		return -1;
	while (fgets(line, sizeof(line), pipe)) {
		char *at = strstr(line, word);
		if (!at || value >= 0)
			continue;
		if (!before) {
			value = strtod(at + strlen(word), NULL);
			continue;
		}
		while (at > line && at[-1] == ' ')
			at--;
		while (at > line && strchr("0123456789.", at[-1]))
			at--;
		value = strtod(at, NULL);
	}
	pclose(pipe);
	return value;
}
