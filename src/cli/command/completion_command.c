/* completion_command.c - gpu-cli completion: lets shells complete what is typed */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/completion.h"

static const char bash_script[] =
    "# Completion of gpu-cli for bash: source <(gpu-cli completion bash)\n"
    "_gpu_cli()\n"
    "{\n"
    "\tlocal words=(\"${COMP_WORDS[@]:1:COMP_CWORD}\") line current=${COMP_WORDS[COMP_CWORD]}\n"
    "\t# '=' and ':' are words of their own to bash; they are put together again.\n"
    "\tlocal joined=() word glue=\n"
    "\tfor word in \"${words[@]}\"; do\n"
    "\t\tif [[ $word == '=' && ${#joined[@]} -gt 0 ]]; then\n"
    "\t\t\tjoined[-1]+==\n"
    "\t\t\tglue=1\n"
    "\t\telif [[ -n $glue ]]; then\n"
    "\t\t\tjoined[-1]+=$word\n"
    "\t\t\tglue=\n"
    "\t\telse\n"
    "\t\t\tjoined+=(\"$word\")\n"
    "\t\tfi\n"
    "\tdone\n"
    "\t[[ $current != '=' ]] || current=\n"
    "\tCOMPREPLY=()\n"
    "\twhile IFS= read -r line; do\n"
    "\t\tif [[ $line == @files ]]; then\n"
    "\t\t\tcompopt -o default 2>/dev/null\n"
    "\t\t\tmapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -f -- \"$current\")\n"
    "\t\telse\n"
    "\t\t\tCOMPREPLY+=(\"$line\")\n"
    "\t\tfi\n"
    "\tdone < <(\"${COMP_WORDS[0]}\" __complete -- \"${joined[@]}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _gpu_cli gpu-cli\n";

static const char zsh_script[] =
    "#compdef gpu-cli\n"
    "# Completion of gpu-cli for zsh: source <(gpu-cli completion zsh), or put this into a\n"
    "# file _gpu-cli in one of the directories of $fpath.\n"
    "_gpu_cli()\n"
    "{\n"
    "\tlocal -a offers\n"
    "\tlocal line files=\n"
    "\tfor line in \"${(@f)$(\"${words[1]}\" __complete -- \"${(@)words[2,CURRENT]}\" "
    "2>/dev/null)}\"; do\n"
    "\t\tif [[ $line == @files ]]; then\n"
    "\t\t\tfiles=1\n"
    "\t\telif [[ -n $line ]]; then\n"
    "\t\t\toffers+=(\"$line\")\n"
    "\t\tfi\n"
    "\tdone\n"
    "\t[[ $PREFIX != --*=* ]] || compset -P '*='\n"
    "\t[[ ${#offers} -eq 0 ]] || compadd -- \"${offers[@]}\"\n"
    "\t[[ -z $files ]] || _files\n"
    "}\n"
    "compdef _gpu_cli gpu-cli\n";

static const char fish_script[] =
    "# Completion of gpu-cli for fish: gpu-cli completion fish | source\n"
    "function __gpu_cli_complete\n"
    "\tset -l word (commandline -ct)\n"
    "\tset -l words (commandline -opc) \"$word\"\n"
    "\tset -l option (string match -r -- '^--[^=]+=' \"$word\")\n"
    "\tfor line in ($words[1] __complete -- $words[2..-1] 2>/dev/null)\n"
    "\t\tif test \"$line\" = @files\n"
    "\t\t\tfor path in (__fish_complete_path (string replace -- \"$option\" '' \"$word\"))\n"
    "\t\t\t\techo \"$option$path\"\n"
    "\t\t\tend\n"
    "\t\telse\n"
    "\t\t\techo \"$option$line\"\n"
    "\t\tend\n"
    "\tend\n"
    "end\n"
    "complete -c gpu-cli -f -a '(__gpu_cli_complete)'\n";

static int completion_run(const struct arguments *arguments)
{
	static const struct {
		const char *shell, *script;
	} scripts[] = { { "bash", bash_script }, { "zsh", zsh_script }, { "fish", fish_script } };
	const char *shell = arguments->operand_count == 1 ? arguments->operands[0] : "";
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
		if (strcmp(scripts[i].shell, shell) == 0) {
			fputs(scripts[i].script, stdout);
			return CLI_FINE;
		}
	return cli_misused(arguments->command, "for which shell? bash, zsh or fish");
}

const struct cli_command completion_command = {
	.name = "completion",
	.arguments = "bash|zsh|fish",
	.summary = "lets a shell complete commands, options, jobs, nodes, ...",
	.details = "Prints a script for the shell. Names of jobs, nodes, tenants and models are\n"
		   "asked of the service as they are needed.\n"
		   "\n"
		   "  bash  source <(gpu-cli completion bash)      in ~/.bashrc\n"
		   "  zsh   source <(gpu-cli completion zsh)       in ~/.zshrc, after compinit\n"
		   "  fish  gpu-cli completion fish | source       in config.fish\n",
	.operand = COMPLETES_WORDS,
	.words = "bash zsh fish",
	.run = completion_run,
};

/* Everything is an operand: what is typed may begin with a dash. */
static int run_complete(const struct arguments *arguments)
{
	completion_print((int)arguments->operand_count, (char *const *)arguments->operands);
	return CLI_FINE;
}

const struct cli_command complete_command = {
	.name = "__complete",
	.arguments = "[WORD...]",
	.summary = "what can stand where the last word is typed",
	.hidden = true,
	.runs = true,
	.run = run_complete,
};
