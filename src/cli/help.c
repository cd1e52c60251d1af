/* help.c - what there is to say about commands, from their tables */
#include "cli/help.h"

#include <string.h>

#include "base/buffer.h"
#include "cli/session.h"

static const char exit_codes[] =
    "Exit codes: 0 success, 1 failure (stderr has the reason), 2 usage error, 3 not\n"
    "found, 4 the service does not answer, 5 not allowed, 6 try again later. Commands\n"
    "that wait for a job (run, submit --wait) exit with the job's exit code, or with\n"
    "125 if the job has none.\n";

void help_print_overview(FILE *to)
{
	fputs("usage: gpu-cli COMMAND [ARGUMENT...]\n\n", to);
	for (const struct cli_command *const *at = cli_commands; *at; at++)
		if (!(*at)->hidden)
			fprintf(to, "  %-13s  %s\n", (*at)->name, (*at)->summary);
	fputs("  help           explain a command: gpu-cli help COMMAND\n"
	      "\n"
	      "  --help         print this help\n"
	      "  --version      print the version\n"
	      "\n",
	      to);
	fputs(exit_codes, to);
}

static void print_options(const struct cli_command *command)
{
	const struct option *sets[CLI_SETS];
	int count = cli_options(command, sets);
	for (int i = 0; i < count; i++) {
		putchar('\n');
		options_print(stdout, sets[i]);
	}
}

static void print_examples(const struct cli_command *command)
{
	const char *at = command->examples;
	if (!at)
		return;
	putchar('\n');
	while (*at) {
		size_t length = strcspn(at, "\n");
		printf("  gpu-cli %.*s\n", (int)length, at);
		at += length + 1;
	}
}

void help_print_command(const struct cli_command *command)
{
	printf("usage: gpu-cli %s%s%s\n\n%s\n", command->name, *command->arguments ? " " : "",
	       command->arguments, command->summary);
	if (command->details)
		printf("\n%s", command->details);
	print_options(command);
	print_examples(command);
}

/* Text for troff: a backslash is written out, a dash is one that can be copied, and no line
 * begins as a request does. */
static void print_troff(const char *text)
{
	bool begins = true;
	for (; *text; text++) {
		if (begins && (*text == '.' || *text == '\''))
			fputs("\\&", stdout);
		if (*text == '\\')
			fputs("\\e", stdout);
		else if (*text == '-')
			fputs("\\-", stdout);
		else
			putchar(*text);
		begins = *text == '\n';
	}
}

static void print_manual_option(const struct option *option)
{
	if (!option->help)
		return;
	fputs(".TP\n.B ", stdout);
	if (option->letter) {
		print_troff(option->letter);
		fputs(", ", stdout);
	}
	print_troff(option->name);
	if (option->value) {
		fputs(" \\fI", stdout);
		print_troff(option->value);
		fputs("\\fR", stdout);
	}
	putchar('\n');
	print_troff(option->help);
	putchar('\n');
}

void help_print_manual_command(const struct cli_command *command)
{
	fputs(".SS ", stdout);
	print_troff(command->name);
	if (*command->arguments) {
		putchar(' ');
		print_troff(command->arguments);
	}
	putchar('\n');
	print_troff(command->summary);
	fputs(".\n", stdout);
	if (command->details) {
		fputs(".PP\n.nf\n", stdout);
		print_troff(command->details);
		fputs(".fi\n", stdout);
	}
	const struct option *sets[CLI_SETS];
	int count = cli_options(command, sets);
	for (int i = 0; i < count; i++)
		if (sets[i] != session_options && sets[i] != session_output_options)
			for (const struct option *option = sets[i]; option->name; option++)
				print_manual_option(option);
	if (command->examples) {
		fputs(".PP\n.nf\n", stdout);
		for (const char *at = command->examples; *at;) {
			size_t length = strcspn(at, "\n");
			struct buffer line = { 0 };
			buffer_print(&line, "    gpu-cli %.*s\n", (int)length, at);
			print_troff(line.data);
			buffer_free(&line);
			at += length + 1;
		}
		fputs(".fi\n", stdout);
	}
}

static void print_manual_options(const char *title, const struct option *options)
{
	printf(".SH %s\n", title);
	for (const struct option *option = options; option->name; option++)
		print_manual_option(option);
}

void help_print_manual(void)
{
	static const struct cli_command all = { .asks = true, .lists = true };
	const struct option *sets[CLI_SETS];

	fputs(
	    ".TH GPU-CLI 1 \"\" \"gpu-scheduler " GPU_SCHEDULER_VERSION "\" \"User Commands\"\n"
	    ".SH NAME\ngpu\\-cli \\- share GPUs among teams, from the command line\n"
	    ".SH SYNOPSIS\n.B gpu\\-cli\n.I COMMAND\n[\\fIARGUMENT\\fR...]\n"
	    ".SH DESCRIPTION\n"
	    "Submits jobs to a gpu\\-scheduler, shows what became of them and why, and what is on\n"
	    "every GPU of the cluster.\n.SH COMMANDS\n",
	    stdout);
	for (const struct cli_command *const *at = cli_commands; *at; at++)
		if (!(*at)->hidden)
			help_print_manual_command(*at);
	cli_options(&all, sets);
	print_manual_options("OUTPUT", sets[0]);
	print_manual_options("OPTIONS OF ALL THAT ASK THE SERVICE", sets[1]);
	fputs(".SH EXIT STATUS\n.nf\n", stdout);
	print_troff(exit_codes);
	fputs(".fi\n.SH FILES\n.TP\n.I ~/.config/gpu\\-scheduler/config.yaml\n"
	      "Contexts: where the service is, and how to sign in ($XDG_CONFIG_HOME is heeded).\n"
	      ".SH ENVIRONMENT\n.TP\n.B GPU_SCHEDULER_URL\nWhere the service is.\n"
	      ".TP\n.B GPU_SCHEDULER_TOKEN, GPU_SCHEDULER_TOKEN_FILE\nThe token to sign in with.\n"
	      ".TP\n.B GPU_SCHEDULER_TENANT\nWhose jobs they are.\n"
	      ".TP\n.B GPU_SCHEDULER_CA\nCertificates to trust.\n"
	      ".TP\n.B GPU_SCHEDULER_CONTEXT\nThe context to use.\n"
	      ".TP\n.B NO_COLOR\nNo colors.\n",
	      stdout);
}
