/* submission.c - what sbatch and srun submit */
#include "cli/slurm/submission.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "json/member.h"

extern char **environ;

void submission_warn(const struct slurm_call *call, const struct slurm_asked *asked)
{
	if (slurm_has(asked, "--quiet"))
		return;
	for (const struct option *option = slurm_job_options; option->name; option++)
		if (slurm_is_ignored(option->name) && strcmp(option->name, "--verbose") != 0 &&
		    slurm_has(asked, option->name))
			fprintf(stderr, "%s: %s has no effect here\n", call->program->name,
			        option->name);
}

json_t *submission_send(struct slurm_call *call, json_t *job)
{
	struct error error = { 0 };
	if (!member_has(job, "tenant_id")) {
		const char *tenant = session_tenant(&call->session, &error);
		if (!tenant) {
			json_decref(job);
			slurm_fail(call, "%s", error.text);
			return NULL;
		}
		if (*tenant)
			json_object_set_new(job, "tenant_id", json_string(tenant));
	}
	json_t *answer = session_ask(&call->session, "POST", "/api/v1/jobs", job, &error);
	if (!answer)
		slurm_fail(call, "%s", error.text);
	return answer;
}

void submission_begin(struct slurm_job *job, const struct slurm_asked *asked, char *directory,
                      size_t size)
{
	job->asked = asked;
	job->directory = getcwd(directory, size);
	job->environment = environ;
	job->now_ms = clock_unix_ms();
}

const char *submission_number(const char *id)
{
	return strncmp(id, "job-", 4) == 0 ? id + 4 : id;
}
