/* script.c - a script of sbatch as a node runs it: with SLURM_ variables, and its output in files
 */
#include "slurm/script.h"

#include <string.h>

#include "base/text.h"

/* Text inside of double quotes of a shell. */
static void print_quoted(struct buffer *to, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (strchr("\"\\$`", text[i]))
			buffer_text(to, "\\");
		buffer_bytes(to, &text[i], 1);
	}
}

bool slurm_pattern_print(const char *pattern, const char *name, struct buffer *to,
                         struct error *error)
{
	static const struct {
		char letter;
		const char *text;
	} letters[] = {
		{ 'j', "$SLURM_JOB_ID" },
		{ 'J', "$SLURM_JOB_ID" },
		{ 'A', "${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}" },
		{ 'a', "${SLURM_ARRAY_TASK_ID:-0}" },
		{ 'u', "$USER" },
		{ 'N', "$SLURMD_NODENAME" },
		{ 'n', "$SLURM_NODEID" },
		{ 't', "$SLURM_PROCID" },
		{ 's', "batch" },
	};
	buffer_text(to, "\"");
	for (const char *at = pattern; *at; at++) {
		if (*at != '%') {
			print_quoted(to, at, 1);
			continue;
		}
		at++;
		/* A width, such as %4t, is for zeros; it is not needed to tell files apart. */
		while (*at >= '0' && *at <= '9')
			at++;
		const char *text = NULL;
		for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
			if (*at && letters[i].letter == *at)
				text = letters[i].text;
		if (*at == 'x')
			print_quoted(to, name, strlen(name));
		else if (*at == '%')
			buffer_text(to, "%");
		else if (text)
			buffer_text(to, text);
		else
			return error_set(error, ERROR_INVALID,
			                 "invalid file name '%.80s': %%%c is not known here",
			                 pattern, *at ? *at : '%');
	}
	buffer_text(to, "\"");
	return true;
}

/* The name of the program in the first line, without its directory; empty: there is none. */
static struct text interpreter(const struct slurm_script *script)
{
	const char *end = memchr(script->text, '\n', script->size);
	struct text line = { script->text, end ? (size_t)(end - script->text) : script->size };
	if (!text_starts(line, "#!"))
		return (struct text){ "", 0 };
	for (int word = 0; word < 2; word++) {
		size_t at = word == 0 ? 2 : 0;
		while (at < line.size && (line.data[at] == ' ' || line.data[at] == '\t'))
			at++;
		line.data += at;
		line.size -= at;
		size_t size = 0, start = 0;
		while (size < line.size && line.data[size] != ' ' && line.data[size] != '\t')
			if (line.data[size++] == '/')
				start = size;
		struct text name = { line.data + start, size - start };
		if (!text_is(name, "env"))
			return name;
		line.data += size;
		line.size -= size;
	}
	return (struct text){ "", 0 };
}

static bool is_shell(struct text name)
{
	static const char *const shells[] = { "sh", "bash", "dash", "ksh", "zsh", "ash" };
	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
		if (text_is(name, shells[i]))
			return true;
	return false;
}

static void print_variables(const struct slurm_script *script, struct buffer *to)
{
	buffer_text(to, "export SLURM_JOB_ID=\"${GPU_SCHEDULER_JOB_ID#job-}\" "
	                "SLURM_PROCID=\"${RANK:-0}\" SLURM_LOCALID=\"${LOCAL_RANK:-0}\" "
	                "SLURM_NODEID=\"${NODE_RANK:-0}\" "
	                "SLURMD_NODENAME=\"$GPU_SCHEDULER_NODE\" "
	                "SLURM_GPUS_ON_NODE=\"$GPU_SCHEDULER_GPU_COUNT\" SLURM_JOB_NAME=\"");
	print_quoted(to, script->name, strlen(script->name));
	buffer_print(to,
	             "\" SLURM_NTASKS=%lld SLURM_NPROCS=%lld SLURM_NNODES=%lld "
	             "SLURM_JOB_NUM_NODES=%lld",
	             (long long)script->tasks, (long long)script->tasks, (long long)script->nodes,
	             (long long)script->nodes);
	if (script->cpus > 0)
		buffer_print(to, " SLURM_CPUS_PER_TASK=%lld", (long long)script->cpus);
	buffer_text(to, "; export SLURM_JOBID=\"$SLURM_JOB_ID\"");
	if (script->is_array)
		buffer_text(to, "; export SLURM_ARRAY_TASK_ID=\"$GPU_SCHEDULER_ARRAY_INDEX\" "
		                "SLURM_ARRAY_TASK_MIN=\"$GPU_SCHEDULER_ARRAY_FIRST\" "
		                "SLURM_ARRAY_TASK_MAX=\"$GPU_SCHEDULER_ARRAY_LAST\" "
		                "SLURM_ARRAY_TASK_COUNT=\"$GPU_SCHEDULER_ARRAY_COUNT\"");
}

static bool print_redirection(const struct slurm_script *script, struct buffer *to,
                              struct error *error)
{
	const char *how = script->appends ? ">>" : ">";
	bool has_both = script->output && !script->error;
	if (!script->output && !script->error && !script->input)
		return true;
	buffer_text(to, "; exec");
	if (script->input) {
		buffer_text(to, " <");
		if (!slurm_pattern_print(script->input, script->name, to, error))
			return false;
	}
	if (script->output) {
		buffer_print(to, " %s", how);
		if (!slurm_pattern_print(script->output, script->name, to, error))
			return false;
	}
	if (script->error) {
		buffer_print(to, " 2%s", how);
		if (!slurm_pattern_print(script->error, script->name, to, error))
			return false;
	} else if (has_both) {
		buffer_text(to, " 2>&1");
	}
	return true;
}

bool slurm_script_print(const struct slurm_script *script, struct buffer *to, struct error *error)
{
	bool has_files = script->output || script->error || script->input;
	if (!is_shell(interpreter(script))) {
		if (has_files)
			return error_set(
			    error, ERROR_INVALID,
			    "--output, --error and --input need a script for sh, bash, "
			    "dash, ksh or zsh: 'gpu-cli logs' shows the output");
		buffer_bytes(to, script->text, script->size);
		return true;
	}
	const char *end = script->text + script->size;
	const char *second = memchr(script->text, '\n', script->size);
	second = second ? second + 1 : end;
	buffer_bytes(to, script->text, (size_t)(second - script->text));
	if (second == end && script->size > 0 && end[-1] != '\n')
		buffer_text(to, "\n");
	print_variables(script, to);
	if (!print_redirection(script, to, error))
		return false;
	buffer_text(to, "\n");
	/* The line that it replaces. */
	if (second < end && *second == '#') {
		const char *next = memchr(second, '\n', (size_t)(end - second));
		second = next ? next + 1 : end;
	}
	buffer_bytes(to, second, (size_t)(end - second));
	return true;
}
