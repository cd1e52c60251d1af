/* scenario.c - scenario files: which cases they have, and what became of each */
#include "sim/scenario/scenario.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/number_text.h"
#include "base/options.h"
#include "sim/scenario/models.h"
#include "sim/scenario/queues.h"

enum { EXIT_FAILED = 1, EXIT_UNREADABLE = 2 };

/* A file does not say what its cases are: a field that only such cases have does. */
static const struct scenario_kind {
	const char *field;
	scenario_run *run;
} scenario_kinds[] = {
	{ "tenants", queues_run },
	{ "runners", models_run_case },
};
enum { SCENARIO_KINDS = sizeof(scenario_kinds) / sizeof(scenario_kinds[0]) };

/* What was asked for, and what came of it so far. */
struct runner {
	bool verbose, json;
	const char *only; /* a number or a part of a name; NULL: all cases */
	int matched, passed, failed;
	bool unreadable;
	struct buffer reason; /* scratch */
};

/* Something apart from a case is wrong; the other files are still read. */
__attribute__((format(printf, 2, 3))) static void complain(struct runner *runner,
                                                           const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	fputs("gpu-sim: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	runner->unreadable = true;
}

static const char *text_field(const json_t *scenario, const char *name, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(scenario, name));
	return text ? text : otherwise;
}

/* True if --case asks for this one: by its number in the file, or by a part of
 * its name or of where it comes from. */
static bool is_asked_for(const struct runner *runner, const json_t *scenario, size_t number)
{
	const char *only = runner->only;
	if (!only)
		return true;
	int64_t asked;
	if (number_read(text_of(only), 0, INT64_MAX, &asked))
		return (size_t)asked == number;
	return strstr(text_field(scenario, "name", ""), only) ||
	       strstr(text_field(scenario, "origin", ""), only);
}

static void scenario_print_json(const json_t *scenario, size_t number, bool passed,
                                const char *reason)
{
	json_t *line =
	    json_pack("{s:I, s:s, s:s, s:s}", "case", (json_int_t)number, "name",
	              text_field(scenario, "name", ""), "origin",
	              text_field(scenario, "origin", ""), "status", passed ? "passed" : "failed");
	/* What the case says may be cut in the middle of a character. */
	if (!passed && json_object_set_new(line, "reason", json_string(reason)) != 0)
		json_object_set_new(line, "reason", json_string("(not text)"));
	json_dumpf(line, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(line);
}

static void scenario_print_line(const json_t *scenario, bool passed, const char *reason)
{
	const char *name = text_field(scenario, "name", "(without a name)");
	if (passed)
		printf("ok   %s\n", name);
	else
		printf("FAIL %s: %s\n", name, reason);
}

static void run_case(struct runner *runner, scenario_run *run, const json_t *scenario,
                     size_t number)
{
	FILE *trace = !runner->verbose ? NULL : runner->json ? stderr : stdout;
	if (trace)
		fprintf(trace, "case %zu: %s\n", number, text_field(scenario, "name", ""));
	buffer_clear(&runner->reason);
	buffer_text(&runner->reason, "");
	enum verdict verdict = run(scenario, trace, &runner->reason);
	bool passed = verdict == VERDICT_PASSED;
	if (runner->json)
		scenario_print_json(scenario, number, passed, runner->reason.data);
	else
		scenario_print_line(scenario, passed, runner->reason.data);
	fflush(stdout);
	runner->passed += passed;
	runner->failed += !passed;
	if (verdict == VERDICT_UNREADABLE)
		runner->unreadable = true;
}

static const struct scenario_kind *kind_of(const json_t *scenario)
{
	for (int i = 0; i < SCENARIO_KINDS; i++) {
		if (json_object_get(scenario, scenario_kinds[i].field))
			return &scenario_kinds[i];
	}
	return NULL;
}

static void run_cases(struct runner *runner, const char *path, const json_t *cases)
{
	for (size_t i = 0; i < json_array_size(cases); i++) {
		const json_t *scenario = json_array_get(cases, i);
		if (!is_asked_for(runner, scenario, i + 1))
			continue;
		runner->matched++;
		const struct scenario_kind *kind = kind_of(scenario);
		if (!kind) {
			complain(runner, "%s: case %zu ('%s') has neither tenants nor runners",
			         path, i + 1, text_field(scenario, "name", ""));
		} else {
			run_case(runner, kind->run, scenario, i + 1);
		}
	}
}

static void run_file(struct runner *runner, const char *path)
{
	json_error_t error;
	json_t *cases = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	if (!cases && error.line > 0)
		complain(runner, "%s:%d:%d: %s", path, error.line, error.column, error.text);
	else if (!cases)
		complain(runner, "%s", error.text);
	else if (!json_is_array(cases))
		complain(runner, "%s: is not a list of cases", path);
	else
		run_cases(runner, path, cases);
	json_decref(cases);
}

static bool scenario_read_arguments(struct runner *runner, struct arguments *files, int argc,
                                    char **argv)
{
	static const struct option table[] = {
		OPTION("--case", NULL, "WHICH", "only one: its number, or a part of its name",
		       STORES_TEXT(struct runner, only)),
		OPTION("--json", NULL, NULL, "print JSON", STORES_FLAG(struct runner, json)),
		OPTION("--verbose", "-v", NULL, "print every step",
		       STORES_FLAG(struct runner, verbose)),
		{ 0 },
	};
	const struct option *sets[] = { table };
	struct error error = { 0 };

	if (!arguments_read(files, sets, 1, false, argc - 1, argv + 1, &error) ||
	    !arguments_store(files, runner, &error))
		complain(runner, "%s", error.text);
	else if (runner->only && !*runner->only)
		complain(runner, "--case needs a number or a part of a case's name");
	else if (files->operand_count == 0)
		complain(runner, "scenario needs a file, such as tests/scenarios/models.json");
	else
		return true;
	return false;
}

static int run_all(struct runner *runner, int argc, char **argv)
{
	struct arguments files = { 0 };
	bool good = scenario_read_arguments(runner, &files, argc, argv);

	for (size_t i = 0; good && i < files.operand_count; i++)
		run_file(runner, files.operands[i]);
	arguments_free(&files);
	if (!good)
		return EXIT_UNREADABLE;
	if (runner->only && runner->matched == 0 && !runner->unreadable)
		complain(runner, "no case is number, or has in its name, '%s'", runner->only);
	fprintf(runner->json ? stderr : stdout, "%d passed, %d failed\n", runner->passed,
	        runner->failed);
	return runner->unreadable ? EXIT_UNREADABLE : runner->failed ? EXIT_FAILED : 0;
}

int scenario_main(int argc, char **argv)
{
	struct runner runner = { 0 };
	int status = run_all(&runner, argc, argv);
	buffer_free(&runner.reason);
	return status;
}
