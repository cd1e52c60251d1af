/* words_test.c - what Slurm's users write: times, sizes, GPUs, directives, formats, scripts */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "slurm/directive.h"
#include "slurm/format.h"
#include "slurm/request.h"
#include "slurm/script.h"
#include "slurm/value.h"

static int64_t seconds_of(const char *text)
{
	int64_t seconds = -1;
	struct error error = { 0 };
	return slurm_time("--time", text, &seconds, &error) ? seconds : -1;
}

static void times_are_read_in_all_forms(void **state)
{
	(void)state;
	assert_int_equal(seconds_of("30"), 1800);
	assert_int_equal(seconds_of("30:15"), 1815);
	assert_int_equal(seconds_of("1:30:15"), 5415);
	assert_int_equal(seconds_of("2-3"), 2 * 86400 + 3 * 3600);
	assert_int_equal(seconds_of("2-3:30"), 2 * 86400 + 3 * 3600 + 1800);
	assert_int_equal(seconds_of("2-3:30:05"), 2 * 86400 + 3 * 3600 + 1805);
	assert_int_equal(seconds_of("UNLIMITED"), 0);
	assert_int_equal(seconds_of("1h"), -1);
	assert_int_equal(seconds_of("-1"), -1);
	assert_int_equal(seconds_of("1:2:3:4"), -1);
	assert_int_equal(seconds_of(""), -1);
}

static int64_t mib_of(const char *text)
{
	int64_t mib = -1;
	struct error error = { 0 };
	return slurm_memory("--mem", text, &mib, &error) ? mib : -1;
}

static void memory_is_in_mib_unless_it_says_otherwise(void **state)
{
	(void)state;
	assert_int_equal(mib_of("4000"), 4000);
	assert_int_equal(mib_of("16G"), 16384);
	assert_int_equal(mib_of("1500K"), 2);
	assert_int_equal(mib_of("1TB"), 1048576);
	assert_int_equal(mib_of("16X"), -1);
	assert_int_equal(mib_of("G"), -1);
}

static void gpus_have_a_type_or_none(void **state)
{
	struct slurm_gpus gpus;
	struct error error = { 0 };
	(void)state;
	assert_true(slurm_gres("--gres", "gpu", &gpus, &error));
	assert_int_equal(gpus.count, 1);
	assert_true(slurm_gres("--gres", "gpu:a100:2", &gpus, &error));
	assert_int_equal(gpus.count, 2);
	assert_int_equal(gpus.type_length, 4);
	assert_true(slurm_gres("--gres", "gpu:h100", &gpus, &error));
	assert_int_equal(gpus.count, 1);
	assert_true(slurm_gpus("--gpus", "a100:8", &gpus, &error));
	assert_int_equal(gpus.count, 8);
	assert_false(slurm_gres("--gres", "shard:2", &gpus, &error));
	assert_false(slurm_gres("--gres", "gpu:2,nic:1", &gpus, &error));
	assert_false(slurm_gpus("--gpus", "a:b:8", &gpus, &error));
	assert_false(slurm_gpus("--gpus", "two", &gpus, &error));
}

static void moments_are_relative_or_absolute(void **state)
{
	struct error error = { 0 };
	int64_t now = INT64_C(1900000000000), moment; /* 2030-03-17T17:46:40Z */
	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	assert_true(slurm_moment("--begin", "now+2hours", now, &moment, &error));
	assert_int_equal(moment, now + 7200000);
	assert_true(slurm_moment("--begin", "2030-03-18T10:30", now, &moment, &error));
	assert_int_equal(moment, INT64_C(1900060200000));
	assert_true(slurm_moment("--begin", "03/18/30-10:30", now, &moment, &error));
	assert_int_equal(moment, INT64_C(1900060200000));
	assert_true(slurm_moment("--begin", "10:30", now, &moment, &error));
	assert_int_equal(moment, INT64_C(1900060200000));
	assert_true(slurm_moment("--begin", "tomorrow", now, &moment, &error));
	assert_int_equal(moment, INT64_C(1900022400000));
	assert_false(slurm_moment("--begin", "now+2parsecs", now, &moment, &error));
	assert_false(slurm_moment("--begin", "soon", now, &moment, &error));
}

static void directives_end_at_the_first_command(void **state)
{
	static const char script[] = "#!/bin/bash\n"
				     "#SBATCH --job-name='two words' -N2 # comment\n"
				     "\n"
				     "# a comment\n"
				     "#SBATCH\t--mem=4G\n"
				     "##SBATCH --time=5\n"
				     "#SBATCHX --time=5\n"
				     "echo hello\n"
				     "#SBATCH --time=6\n";
	struct arena arena = { 0 };
	struct directives directives = { 0 };
	struct error error = { 0 };
	(void)state;
	assert_true(directives_read(&directives, script, strlen(script), &arena, &error));
	assert_int_equal(directives.count, 3);
	assert_string_equal(directives.words[0], "--job-name=two words");
	assert_string_equal(directives.words[1], "-N2");
	assert_string_equal(directives.words[2], "--mem=4G");
	assert_int_equal(directives.lines[2], 5);
	directives_free(&directives);
	directives = (struct directives){ 0 };
	assert_false(directives_read(&directives, "#SBATCH --comment='x\n", 21, &arena, &error));
	assert_string_equal(error.text, "line 1: a quote does not end");
	directives_free(&directives);
	arena_free(&arena);
}

static bool takes_value(const char *option)
{
	return slurm_takes_value(NULL, option);
}

static void letters_are_split_up_to_the_command(void **state)
{
	char *words[] = { "-N2", "--ntasks", "4", "-HQc8", "prog", "-n2", NULL };
	static const char *const expected[] = { "-N", "2", "--ntasks", "4",   "-H", "-Q",
		                                "-c", "8", "prog",     "-n2", NULL };
	struct arena arena = { 0 };
	int count;
	(void)state;
	char **split = slurm_split_letters(&count, words, takes_value, &arena);
	assert_int_equal(count, 10);
	for (int i = 0; i < count; i++)
		assert_string_equal(split[i], expected[i]);
	arena_free(&arena);
}

/* The request for a command line; NULL with the reason in `error`. */
static json_t *request_of(const char *script, char **words, struct error *error)
{
	struct arena arena = { 0 };
	struct arguments arguments = { 0 };
	const struct option *sets[] = { slurm_job_options };
	int count;
	char **split = slurm_split_letters(&count, words, takes_value, &arena);
	assert_true(arguments_read(&arguments, sets, 1, true, count, split, error));
	struct slurm_asked asked = { .sources = { &arguments } };
	static const char *const command[] = { "hostname" };
	struct slurm_job job = { .asked = &asked,
		                 .script = script,
		                 .script_size = script ? strlen(script) : 0,
		                 .script_name = "job.sh",
		                 .command = command,
		                 .command_count = script ? 0 : 1,
		                 .now_ms = INT64_C(1900000000000) };
	json_t *request = slurm_request(&job, error);
	arguments_free(&arguments);
	arena_free(&arena);
	return request;
}

static json_int_t number(const json_t *request, const char *name)
{
	return json_integer_value(json_object_get(request, name));
}

static void nodes_and_gpus_become_tasks(void **state)
{
	struct error error = { 0 };
	(void)state;
	json_t *two = request_of(
	    NULL, (char *[]){ "-N2", "--gres=gpu:a100:8", "--mem=64G", "-c16", "-t", "1-0", NULL },
	    &error);
	assert_int_equal(number(two, "tasks"), 2);
	assert_int_equal(number(two, "gpu_count"), 8);
	assert_int_equal(number(two, "memory_mb"), 65536);
	assert_int_equal(number(two, "cpu_cores"), 16);
	assert_string_equal(json_string_value(json_object_get(two, "gpu_model")), "a100");
	assert_string_equal(json_string_value(json_object_get(two, "max_runtime")), "86400s");
	json_decref(two);
	json_t *eight = request_of(
	    NULL, (char *[]){ "-n8", "-N2", "--gpus-per-node=4", "--mem=64G", NULL }, &error);
	assert_int_equal(number(eight, "tasks"), 8);
	assert_int_equal(number(eight, "gpu_count"), 1);
	assert_int_equal(number(eight, "memory_mb"), 16384);
	json_decref(eight);
	json_t *all = request_of(NULL, (char *[]){ "-G4", "-n2", NULL }, &error);
	assert_int_equal(number(all, "gpu_count"), 2);
	json_decref(all);
	assert_null(request_of(NULL, (char *[]){ "-G3", "-n2", NULL }, &error));
	assert_string_equal(error.text, "--gpus: 3 GPUs cannot be divided among 2 tasks: use "
	                                "--gpus-per-task");
	assert_null(request_of(NULL, (char *[]){ "-w", "n1", NULL }, &error));
	assert_non_null(strstr(error.text, "--nodelist is not supported"));
}

static void dependencies_name_jobs_by_number(void **state)
{
	struct error error = { 0 };
	(void)state;
	json_t *job =
	    request_of(NULL, (char *[]){ "-d", "afterok:12:13,afterany:job-14", NULL }, &error);
	char *text = json_dumps(json_object_get(job, "depends_on"), JSON_COMPACT);
	assert_string_equal(text, "[{\"job\":\"job-12\",\"condition\":\"success\"},"
	                          "{\"job\":\"job-13\",\"condition\":\"success\"},"
	                          "{\"job\":\"job-14\",\"condition\":\"any\"}]");
	free(text);
	json_decref(job);
	assert_null(request_of(NULL, (char *[]){ "-d", "singleton", NULL }, &error));
	assert_null(request_of(NULL, (char *[]){ "-d", "afterok:1?afterok:2", NULL }, &error));
}

static void a_script_keeps_the_numbers_of_its_lines(void **state)
{
	static const char script[] = "#!/bin/bash -l\n#SBATCH -o %x-%j.out\necho \"$0\"\n";
	struct error error = { 0 };
	(void)state;
	json_t *job =
	    request_of(script, (char *[]){ "-J", "a$b", "-o", "%x-%j.out", NULL }, &error);
	const char *text = json_string_value(json_object_get(job, "script"));
	assert_non_null(strstr(text, "#!/bin/bash -l\nexport SLURM_JOB_ID="));
	assert_non_null(strstr(text, "SLURM_JOB_NAME=\"a\\$b\""));
	assert_non_null(strstr(text, "; exec >\"a\\$b-$SLURM_JOB_ID.out\" 2>&1\necho \"$0\"\n"));
	json_decref(job);
	static const char python[] = "#!/usr/bin/env python3\nprint(1)\n";
	job = request_of(python, (char *[]){ "-G1", NULL }, &error);
	assert_string_equal(json_string_value(json_object_get(job, "script")), python);
	json_decref(job);
	assert_null(request_of(python, (char *[]){ "-o", "x", NULL }, &error));
}

struct row {
	const char *name, *state;
};

static void print_name(struct buffer *to, const void *row)
{
	buffer_text(to, ((const struct row *)row)->name);
}

static void print_state(struct buffer *to, const void *row)
{
	buffer_text(to, ((const struct row *)row)->state);
}

static const struct slurm_column columns[] = {
	{ 'j', "JobName", "NAME", 10, print_name },
	{ 'T', "State", "STATE", 8, print_state },
	{ 0 },
};

static void formats_cut_and_pad_as_slurm_does(void **state)
{
	struct slurm_format format = { 0 };
	struct error error = { 0 };
	struct buffer text = { 0 };
	const struct row row = { "training", "RUNNING" };
	(void)state;
	assert_true(slurm_format_read(&format, columns, "%.10j|%5T|%j%%", &error));
	slurm_format_print_heads(&format, &text);
	slurm_format_print(&format, &text, &row);
	assert_string_equal(text.data, "      NAME|STATE|NAME%\n  training|RUNNI|training%\n");
	assert_false(slurm_format_read(&format, columns, "%?", &error));
	buffer_clear(&text);
	format = (struct slurm_format){ .sacct = true };
	assert_true(slurm_format_read_names(&format, columns, "jobname%5,State%-9", &error));
	slurm_format_print_line(&format, &text);
	slurm_format_print(&format, &text, &row);
	assert_string_equal(text.data, "----- ---------\ntrai+ RUNNING  \n");
	buffer_clear(&text);
	format = (struct slurm_format){ .separator = '|', .trailing = true };
	assert_true(slurm_format_read_names(&format, columns, "JobName,State", &error));
	slurm_format_print(&format, &text, &row);
	assert_string_equal(text.data, "training|RUNNING|\n");
	assert_false(slurm_format_read_names(&format, columns, "JobNam", &error));
	assert_string_equal(error.text, "invalid field 'JobNam'; did you mean JobName?");
	buffer_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_read_in_all_forms),
		cmocka_unit_test(memory_is_in_mib_unless_it_says_otherwise),
		cmocka_unit_test(gpus_have_a_type_or_none),
		cmocka_unit_test(moments_are_relative_or_absolute),
		cmocka_unit_test(directives_end_at_the_first_command),
		cmocka_unit_test(letters_are_split_up_to_the_command),
		cmocka_unit_test(nodes_and_gpus_become_tasks),
		cmocka_unit_test(dependencies_name_jobs_by_number),
		cmocka_unit_test(a_script_keeps_the_numbers_of_its_lines),
		cmocka_unit_test(formats_cut_and_pad_as_slurm_does),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
