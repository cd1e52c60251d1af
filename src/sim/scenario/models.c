/* models.c - runs cases of models in slots, with runners and requests */
#include "sim/scenario/models.h"

#include <stdlib.h>

#include "sim/scenario/models_run.h"

static void trace_step(const struct models_run *run, const struct model_step *step, int64_t number)
{
	if (!run->driver.trace)
		return;
	char *text = json_dumps(step->json, JSON_COMPACT);
	fprintf(run->driver.trace, "  step %lld: %s\n", (long long)number, text ? text : "");
	free(text);
}

/* What is wrong begins with the step after which it is. */
static bool run_steps(struct models_run *run)
{
	struct buffer reason = { 0 };
	struct buffer *whole = run->reason;
	bool fine = true;
	run->reason = &reason;
	for (int64_t i = 0; fine && i < run->models_case->step_count; i++) {
		const struct model_step *step = &run->models_case->steps[i];
		trace_step(run, step, i + 1);
		fine = step_run(run, step);
		if (!fine)
			buffer_print(whole, "step %lld (%s): %s", (long long)i + 1,
			             step_word(step->kind), reason.size ? reason.data : "failed");
	}
	run->reason = whole;
	buffer_free(&reason);
	return fine;
}

enum verdict models_run_case(const json_t *scenario, FILE *trace, struct buffer *reason)
{
	struct models_case models_case = { 0 };
	struct error error = { 0 };
	enum verdict verdict = VERDICT_UNREADABLE;
	if (models_case_read(&models_case, scenario, &error)) {
		struct models_run run = { .models_case = &models_case, .reason = reason };
		run.driver.trace = trace;
		verdict = run_begin(&run) && run_steps(&run) ? VERDICT_PASSED : VERDICT_FAILED;
		run_free(&run);
	} else {
		buffer_print(reason, "the case cannot be read: %s", error.text);
	}
	models_case_free(&models_case);
	return verdict;
}
