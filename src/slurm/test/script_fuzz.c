/* script_fuzz.c - scripts with #SBATCH lines, and formats, of any bytes */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "slurm/directive.h"
#include "slurm/format.h"
#include "slurm/request.h"

static bool takes_value(const char *option)
{
	return slurm_takes_value(NULL, option);
}

static void print_nothing(struct buffer *to, const void *row)
{
	(void)row;
	buffer_text(to, "value");
}

static const struct slurm_column columns[] = {
	{ 'i', "JobID", "JOBID", 12, print_nothing },
	{ 'j', "JobName", "NAME", 10, print_nothing },
	{ 0 },
};

static void try_format(const char *text)
{
	struct slurm_format format = { .sacct = true };
	struct error error = { 0 };
	struct buffer to = { 0 };
	if (slurm_format_read(&format, columns, text, &error))
		slurm_format_print(&format, &to, NULL);
	if (slurm_format_read_names(&format, columns, text, &error))
		slurm_format_print(&format, &to, NULL);
	buffer_free(&to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	struct directives directives = { 0 };
	struct arguments arguments = { 0 };
	struct error error = { 0 };
	const struct option *sets[] = { slurm_job_options };
	char *script = malloc(size + 1);
	memcpy(script, data, size);
	script[size] = '\0';
	if (directives_read(&directives, script, size, &arena, &error)) {
		int count;
		char **words = slurm_split_letters(&count, directives.words, takes_value, &arena);
		if (arguments_read(&arguments, sets, 1, false, count, words, &error)) {
			struct slurm_asked asked = { .sources = { NULL, &arguments } };
			struct slurm_job job = { .asked = &asked,
				                 .script = script,
				                 .script_size = size,
				                 .now_ms = 1900000000000 };
			json_decref(slurm_request(&job, &error));
		}
	}
	try_format(script);
	arguments_free(&arguments);
	directives_free(&directives);
	arena_free(&arena);
	free(script);
	return 0;
}
