/* edit_command.c - gpu-cli edit: what can be changed of a job, tenant or model, in an editor */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/commands.h"
#include "cli/text/yaml_read.h"
#include "cli/text/yaml_text.h"
#include "json/member.h"

enum { EDIT_BYTES_MAX = 1 << 20 };

/* What is edited. */
struct edited {
	const char *word; /* job, tenant or model */
	const struct resource *resource;
	const char *get, *put; /* paths, with %s for the name */
};

static const struct edited kinds[] = {
	{ "job", &job_resource, "/api/v1/jobs/%s", "/api/v1/jobs/%s/priority" },
	{ "tenant", &tenant_resource, "/api/v1/tenants/%s", "/api/v1/tenants/%s" },
	{ "model", &model_resource, "/api/v1/models/%s", "/api/v1/models/%s" },
};

/* A job is also held or released, by requests of their own. */
static bool may_change(const struct edited *kind, const struct resource_field *field)
{
	bool is_hold = kind->resource == &job_resource && strcmp(field->name, "held") == 0;
	return is_hold || (field->setter == SET_ANY_TIME && !field->hidden && !field->shown_as);
}

/* The fields that can be changed, as they are (json_decref). */
static json_t *changeable(const struct edited *kind, const json_t *shown)
{
	json_t *fields = json_object();
	for (int i = 0; i < kind->resource->field_count; i++) {
		const struct resource_field *field = &kind->resource->fields[i];
		json_t *value = json_object_get(shown, field->name);
		if (may_change(kind, field))
			json_object_set_new(fields, field->name,
			                    value ? json_incref(value) : json_null());
	}
	return fields;
}

static const char *editor_of(void)
{
	const char *visual = getenv("VISUAL"), *editor = getenv("EDITOR");
	return visual && *visual ? visual : editor && *editor ? editor : "vi";
}

/* The editor may have options of its own. The keys that interrupt are the editor's. */
static bool run_editor(const char *path, struct error *error)
{
	struct buffer command = { 0 };
	int status = 0;
	buffer_print(&command, "%s \"$0\"", editor_of());
	void (*before)(int) = signal(SIGINT, SIG_IGN);
	pid_t child = fork();
	if (child == 0) {
		signal(SIGINT, SIG_DFL);
		execl("/bin/sh", "sh", "-c", command.data, path, (char *)NULL);
		_exit(127);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	signal(SIGINT, before);
	buffer_free(&command);
	if (child < 0)
		return error_set(error, ERROR_UNAVAILABLE, "cannot run the editor: %s",
		                 strerror(errno));
	return (WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
	       error_set(error, ERROR_INVALID,
	                 "the editor '%.60s' failed: set VISUAL or EDITOR, or try again",
	                 editor_of());
}

static bool load_edited(const char *path, struct buffer *text, struct error *error)
{
	char data[8192];
	size_t got;
	FILE *file = fopen(path, "re");
	if (!file)
		return error_set(error, ERROR_INVALID, "cannot read %.120s: %s", path,
		                 strerror(errno));
	buffer_text(text, "");
	while (text->size <= EDIT_BYTES_MAX && (got = fread(data, 1, sizeof(data), file)) > 0)
		buffer_bytes(text, data, got);
	fclose(file);
	return text->size <= EDIT_BYTES_MAX ||
	       error_set(error, ERROR_INVALID, "%.120s has more than 1 MiB", path);
}

/* The one document of a text (json_decref); an empty object where there is none. */
static json_t *read_document(const char *name, const struct buffer *text, struct error *error)
{
	json_t *documents = yaml_read(name, text->data, text->size, error);
	json_t *document = NULL;
	if (!documents)
		return NULL;
	if (json_array_size(documents) == 0)
		document = json_object();
	else if (json_array_size(documents) == 1 && json_is_object(json_array_get(documents, 0)))
		document = json_incref(json_array_get(documents, 0));
	else
		error_set(error, ERROR_INVALID, "%.120s: expected fields with values, once", name);
	json_decref(documents);
	return document;
}

/* What differs (json_decref); what was taken out stays as it is. NULL with the reason. */
static json_t *differences(const json_t *before, const json_t *after, struct error *error)
{
	json_t *changes = json_object(), *value;
	const char *key;
	json_object_foreach((json_t *)after, key, value)
	{
		const json_t *was = json_object_get(before, key);
		if (!was) {
			json_decref(changes);
			error_set(error, ERROR_INVALID,
			          "%.60s is not a field that can be changed here", key);
			return NULL;
		}
		if (!json_equal(was, value))
			json_object_set(changes, key, value);
	}
	return changes;
}

static bool ask_and_drop(struct session *session, const char *method, const char *path,
                         json_t *body, struct error *error)
{
	json_t *answer = session_ask(session, method, path, body, error);
	bool good = answer != NULL;
	json_decref(answer);
	return good;
}

static bool send_changes(struct session *session, const struct edited *kind, const char *name,
                         json_t *changes, struct error *error)
{
	const json_t *held = json_object_get(changes, "held");
	bool good = true;
	if (kind->resource == &job_resource && held) {
		if (!json_is_boolean(held))
			return error_set(error, ERROR_INVALID, "held must be true or false");
		const char *path =
		    json_is_true(held) ? "/api/v1/jobs/%s/hold" : "/api/v1/jobs/%s/release";
		good =
		    ask_and_drop(session, "POST", session_path(session, path, name), NULL, error);
		json_object_del(changes, "held");
	}
	if (good && json_object_size(changes) > 0)
		good = ask_and_drop(session, "PUT", session_path(session, kind->put, name),
		                    json_incref(changes), error);
	return good;
}

/* A file for its owner alone, with the text; its path is in `path`. */
static bool make_file(char *path, size_t size, const struct buffer *text, struct error *error)
{
	const char *directory = getenv("TMPDIR");
	snprintf(path, size, "%s/gpu-cli-edit-XXXXXX.yaml",
	         directory && *directory ? directory : "/tmp");
	int fd = mkstemps(path, (int)strlen(".yaml"));
	bool good = fd >= 0 && write(fd, text->data, text->size) == (ssize_t)text->size;
	if (fd >= 0)
		close(fd);
	return good || error_set(error, ERROR_UNAVAILABLE, "cannot write %.120s: %s", path,
	                         strerror(errno));
}

/* Edits the file and does what it says; the number of changes, -1 with the reason. */
static int edit_file(struct session *session, const struct edited *kind, const char *name,
                     const char *path, const json_t *before, struct error *error)
{
	struct buffer text = { 0 };
	json_t *after = NULL, *changes = NULL;
	int count = -1;
	if (run_editor(path, error) && load_edited(path, &text, error))
		after = read_document(path, &text, error);
	if (after)
		changes = differences(before, after, error);
	if (changes) {
		int found = (int)json_object_size(changes);
		if (send_changes(session, kind, name, changes, error))
			count = found;
	}
	json_decref(changes);
	json_decref(after);
	buffer_free(&text);
	return count;
}

static int edit(struct session *session, const struct edited *kind, const char *name)
{
	struct error error = { 0 };
	struct buffer text = { 0 };
	char path[512];
	int status = CLI_FINE;
	json_t *shown = session_get(session, session_path(session, kind->get, name), &error);
	if (!shown)
		return session_fail(session, &error);
	json_t *fields = changeable(kind, shown);
	buffer_print(&text,
	             "# %s %s: what can be changed of it. Save and leave to change it; leave\n"
	             "# without a change, or empty the file, to change nothing.\n",
	             kind->word, name);
	yaml_text_print(&text, fields);
	/* As it is read again, so that a value nobody touched does not differ. */
	json_t *before = read_document("the fields", &text, &error);
	bool made = before && make_file(path, sizeof(path), &text, &error);
	int count = made ? edit_file(session, kind, name, path, before, &error) : -1;
	if (count < 0)
		status = session_fail(session, &error);
	if (count < 0 && made)
		fprintf(stderr, "Your changes are in %s\n", path);
	else if (made)
		unlink(path);
	if (count == 0)
		fputs("nothing was changed\n", stderr);
	else if (count > 0)
		printf("%s changed\n", name);
	json_decref(before);
	json_decref(fields);
	json_decref(shown);
	buffer_free(&text);
	return status;
}

static int run_edit(const struct arguments *arguments)
{
	const struct edited *kind = &kinds[0];
	struct session session;
	int status;
	if (arguments->operand_count < 1 || arguments->operand_count > 2)
		return cli_misused(arguments->command,
		                   "give one job, or: tenant TENANT, model MODEL");
	const char *name = arguments->operands[arguments->operand_count - 1];
	if (arguments->operand_count == 2) {
		const struct edited *end = kinds + sizeof(kinds) / sizeof(kinds[0]);
		while (kind < end && strcmp(kind->word, arguments->operands[0]) != 0)
			kind++;
		if (kind == end)
			return cli_misused(arguments->command,
			                   "unknown kind '%.40s' (job, tenant, model)",
			                   arguments->operands[0]);
	}
	if (!session_open(&session, arguments, &status))
		return status;
	if (kind->resource == &job_resource)
		name = session_job(&session, name);
	status = edit(&session, kind, name);
	session_close(&session);
	return status;
}

const struct cli_command edit_command = {
	.name = "edit",
	.arguments = "JOB | tenant TENANT | model MODEL",
	.summary = "change a job, tenant or model in an editor",
	.details = "Opens $VISUAL or $EDITOR (or else vi) with what can be changed: of a job its\n"
		   "priority and whether it is held. Only what differs is sent. If the service\n"
		   "refuses it, the file is kept and its name is printed.\n",
	.examples = "edit job-12\n"
		    "edit tenant vision\n",
	.asks = true,
	.operand = COMPLETES_JOBS,
	.run = run_edit,
};
