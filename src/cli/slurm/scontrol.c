/* scontrol.c - scontrol: shows and changes jobs and nodes */
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "cli/slurm/job_row.h"
#include "cli/slurm/submission.h"
#include "slurm/value.h"
#include "json/member.h"

static const struct option options[] = {
	OPTION("--oneliner", "-o", NULL, "one line for each"),
	OPTION("--details", "-d", NULL, NULL),
	OPTION("--all", "-a", NULL, NULL),
	{ 0 },
};

/* A value of a job's page by a column of squeue and sacct. */
static void put(struct buffer *to, const char *key, const char *column, const struct job_row *row,
                const char *end)
{
	buffer_print(to, "%s=", key);
	size_t before = to->size;
	for (const struct slurm_column *at = job_columns; at->head; at++)
		if (at->name && strcmp(at->name, column) == 0)
			at->print(to, row);
	buffer_print(to, "%s%s", to->size == before ? "(null)" : "", end);
}

static void print_job(struct slurm_call *call, const json_t *job, struct buffer *to)
{
	struct job_row row = { &call->session, job, clock_unix_ms() };
	const char *end = slurm_given(call, "--oneliner") ? " " : "\n   ";
	put(to, "JobId", "JobID", &row, " ");
	if (member_has(job, "array_id")) {
		put(to, "ArrayJobId", "ArrayJobID", &row, " ");
		put(to, "ArrayTaskId", "ArrayTaskID", &row, " ");
	}
	put(to, "JobName", "JobName", &row, end);
	put(to, "UserId", "User", &row, " ");
	put(to, "Account", "Account", &row, " ");
	put(to, "QOS", "QOS", &row, " ");
	put(to, "Priority", "Priority", &row, end);
	put(to, "JobState", "State", &row, " ");
	put(to, "Reason", "Reason", &row, end);
	buffer_print(to, "Requeue=%d Restarts=%lld ", member_flag(job, "preemptible") ? 1 : 0,
	             (long long)member_integer(job, "preempted_count"));
	put(to, "ExitCode", "ExitCode", &row, end);
	put(to, "RunTime", "Elapsed", &row, " ");
	put(to, "TimeLimit", "Timelimit", &row, end);
	put(to, "SubmitTime", "Submit", &row, " ");
	put(to, "StartTime", "Start", &row, " ");
	put(to, "EndTime", "End", &row, end);
	put(to, "Partition", "Partition", &row, " ");
	put(to, "NodeList", "NodeList", &row, " ");
	put(to, "NumNodes", "NNodes", &row, " ");
	put(to, "NumTasks", "NTasks", &row, " ");
	put(to, "NumCPUs", "AllocCPUS", &row, end);
	put(to, "MinMemoryNode", "ReqMem", &row, " ");
	put(to, "TRES", "AllocTRES", &row, " ");
	put(to, "TresPerNode", "TresPerNode", &row, end);
	put(to, "Command", "SubmitLine", &row, end);
	put(to, "WorkDir", "WorkDir", &row, end);
	put(to, "Comment", "Comment", &row, "\n");
	if (!slurm_given(call, "--oneliner"))
		buffer_text(to, "\n");
}

static int show_jobs(struct slurm_call *call, const char *id)
{
	struct error error = { 0 };
	struct buffer text = { 0 };
	if (id) {
		json_t *job = session_get(&call->session,
		                          session_path(&call->session, "/api/v1/jobs/%s",
		                                       session_job(&call->session, id)),
		                          &error);
		if (!job)
			return slurm_fail(call, "%s", error.text);
		print_job(call, job, &text);
		json_decref(job);
		return slurm_print(&text);
	}
	json_t *jobs = slurm_jobs(call, "pending,scheduled,running,preempted", 100000);
	size_t place;
	const json_t *job;
	if (!jobs)
		return 1;
	json_array_foreach(jobs, place, job) print_job(call, job, &text);
	if (text.size == 0)
		buffer_text(&text, "No jobs in the system\n");
	json_decref(jobs);
	return slurm_print(&text);
}

static void print_node(struct slurm_call *call, const json_t *node, struct buffer *to)
{
	const char *end = slurm_given(call, "--oneliner") ? " " : "\n   ";
	const char *state = !member_flag(node, "online")                  ? "DOWN*"
	                    : member_flag(node, "draining")               ? "IDLE+DRAIN"
	                    : member_integer(node, "reservations") == 0   ? "IDLE"
	                    : member_integer(node, "available_gpus") == 0 ? "ALLOCATED"
	                                                                  : "MIXED";
	int64_t cpus = member_integer(node, "total_cpu_cores");
	int64_t gpus = member_integer(node, "total_gpus");
	buffer_print(to, "NodeName=%s%s", member_text(node, "name"), end);
	buffer_print(to, "CPUAlloc=%lld CPUTot=%lld%s",
	             (long long)member_integer(node, "used_cpu_cores"), (long long)cpus, end);
	buffer_print(to, "Gres=gpu:%lld%s", (long long)gpus, end);
	buffer_print(to, "RealMemory=%lld AllocMem=%lld%s",
	             (long long)member_integer(node, "total_memory_mb"),
	             (long long)member_integer(node, "used_memory_mb"), end);
	buffer_print(to, "State=%s%s", state, end);
	buffer_print(to, "CfgTRES=cpu=%lld,mem=%lldM,gres/gpu=%lld%s", (long long)cpus,
	             (long long)member_integer(node, "total_memory_mb"), (long long)gpus, end);
	buffer_print(to, "AllocTRES=cpu=%lld,mem=%lldM,gres/gpu=%lld\n",
	             (long long)member_integer(node, "used_cpu_cores"),
	             (long long)member_integer(node, "used_memory_mb"),
	             (long long)(gpus - member_integer(node, "available_gpus")));
	if (!slurm_given(call, "--oneliner"))
		buffer_text(to, "\n");
}

static int show_nodes(struct slurm_call *call, const char *name)
{
	struct error error = { 0 };
	struct buffer text = { 0 };
	size_t place;
	const json_t *node;
	json_t *answer = session_get(&call->session, "/api/v1/nodes", &error);
	if (!answer)
		return slurm_fail(call, "%s", error.text);
	json_array_foreach(json_object_get(answer, "nodes"), place,
	                   node) if (!name || strcmp(member_text(node, "name"), name) == 0)
	    print_node(call, node, &text);
	json_decref(answer);
	if (name && text.size == 0)
		return slurm_fail(call, "Node %s not found", name);
	return slurm_print(&text);
}

static int show_ping(struct slurm_call *call)
{
	struct error error = { 0 };
	json_t *answer = session_get(&call->session, "/health", &error);
	struct buffer text = { 0 };
	buffer_print(&text, "gpu-scheduler at %s is %s\n", call->session.server,
	             answer ? "UP" : "DOWN");
	json_decref(answer);
	return slurm_print(&text) || !answer;
}

/* hold, release, requeue: of each job in a list. */
static int change_jobs(struct slurm_call *call, const char *verb)
{
	int status = 0;
	for (size_t i = 1; i < call->arguments.operand_count; i++) {
		char *list = arena_string(&call->session.arena, call->arguments.operands[i]), *rest;
		for (char *id = strtok_r(list, ",", &rest); id; id = strtok_r(NULL, ",", &rest)) {
			struct error error = { 0 };
			const char *path = session_path(&call->session, "/api/v1/jobs/%s/%s",
			                                session_job(&call->session, id), verb);
			json_t *answer =
			    session_ask(&call->session, "POST", path, json_object(), &error);
			if (!answer)
				status = slurm_fail(call, "%s", error.text);
			json_decref(answer);
		}
	}
	return call->arguments.operand_count > 1 ? status : slurm_fail(call, "no job given");
}

/* The value of KEY=VALUE among the operands of update; NULL: it is not there. */
static const char *setting(const struct slurm_call *call, const char *key)
{
	size_t size = strlen(key);
	for (size_t i = 1; i < call->arguments.operand_count; i++)
		if (strncasecmp(call->arguments.operands[i], key, size) == 0 &&
		    call->arguments.operands[i][size] == '=')
			return call->arguments.operands[i] + size + 1;
	return NULL;
}

static bool refuse_settings(const struct slurm_call *call, const char *known)
{
	for (size_t i = 1; i < call->arguments.operand_count; i++) {
		char key[40];
		const char *word = call->arguments.operands[i];
		snprintf(key, sizeof(key), "%.*s", (int)strcspn(word, "="), word);
		if (!strchr(word, '=') || !slurm_in_list(known, key)) {
			slurm_fail(call, "cannot change '%s'; known here: %s", key, known);
			return true;
		}
	}
	return false;
}

static int send(struct slurm_call *call, const char *method, const char *path, json_t *body)
{
	struct error error = { 0 };
	json_t *answer = session_ask(&call->session, method, path, body, &error);
	json_decref(answer);
	return answer ? 0 : slurm_fail(call, "%s", error.text);
}

static int update_job(struct slurm_call *call, const char *id)
{
	const char *priority = setting(call, "Priority");
	int64_t number;
	struct error error = { 0 };
	if (refuse_settings(call, "JobId,Priority"))
		return 1;
	if (!priority)
		return slurm_fail(call, "nothing to change: Priority=N");
	if (!slurm_number("Priority", priority, 0, INT32_MAX, &number, &error))
		return slurm_fail(call, "%s", error.text);
	return send(call, "PUT",
	            session_path(&call->session, "/api/v1/jobs/%s/priority",
	                         session_job(&call->session, id)),
	            json_pack("{s:I}", "priority", (json_int_t)number));
}

static int update_node(struct slurm_call *call, const char *name)
{
	const char *state = setting(call, "State"), *reason = setting(call, "Reason");
	if (refuse_settings(call, "NodeName,State,Reason"))
		return 1;
	bool drains = state && strcasecmp(state, "DRAIN") == 0;
	bool resumes =
	    state && (strcasecmp(state, "RESUME") == 0 || strcasecmp(state, "UNDRAIN") == 0 ||
	              strcasecmp(state, "IDLE") == 0);
	if (!drains && !resumes)
		return slurm_fail(call, "State must be DRAIN or RESUME");
	json_t *body = json_object();
	if (drains && reason)
		json_object_set_new(body, "reason", json_string(reason));
	return send(call, "POST",
	            session_path(&call->session,
	                         drains ? "/api/v1/nodes/%s/drain" : "/api/v1/nodes/%s/resume",
	                         name),
	            body);
}

static int scontrol_run(struct slurm_call *call)
{
	const char *const *words = call->arguments.operands;
	size_t count = call->arguments.operand_count;
	if (count == 0)
		return slurm_fail(call,
		                  "no command given: show, hold, release, requeue, update, ping");
	if (!slurm_open(call))
		return 1;
	const char *what = count > 1 ? words[1] : "", *name = count > 2 ? words[2] : NULL;
	const char *equals = strchr(what, '=');
	if (strcmp(words[0], "ping") == 0)
		return show_ping(call);
	if (strcmp(words[0], "hold") == 0 || strcmp(words[0], "release") == 0 ||
	    strcmp(words[0], "requeue") == 0)
		return change_jobs(call, words[0]);
	if (strcmp(words[0], "update") == 0) {
		const char *job = setting(call, "JobId"), *node = setting(call, "NodeName");
		if (job)
			return update_job(call, job);
		return node ? update_node(call, node)
		            : slurm_fail(call, "update needs JobId=ID or NodeName=NAME");
	}
	if (strcmp(words[0], "show") == 0 && strncasecmp(what, "job", 3) == 0)
		return show_jobs(call, equals ? equals + 1 : name);
	if (strcmp(words[0], "show") == 0 && strncasecmp(what, "node", 4) == 0)
		return show_nodes(call, equals ? equals + 1 : name);
	if (strncasecmp(what, "reservation", 3) == 0)
		return slurm_fail(call, "reservations are windows here: use 'gpu-cli reserve "
		                        "create|list|show|delete'");
	return slurm_fail(call,
	                  "'%s%s%s' is not supported; known are show job, show node, hold, "
	                  "release, requeue, update JobId=, update NodeName=, ping",
	                  words[0], *what ? " " : "", what);
}

const struct slurm_program slurm_scontrol = {
	.name = "scontrol",
	.usage = "[OPTION...] COMMAND [ARGUMENT...]",
	.summary = "show and change jobs and nodes",
	.notes = "  show job [ID]            show node [NAME]\n"
		 "  hold|release|requeue ID[,ID...]\n"
		 "  update JobId=ID Priority=N\n"
		 "  update NodeName=NAME State=DRAIN|RESUME [Reason=TEXT]\n"
		 "  ping\n",
	.options = options,
	.run = scontrol_run,
};
