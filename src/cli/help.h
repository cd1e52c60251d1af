/* help.h - what there is to say about commands, from their tables */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdio.h>

#include "cli/cli.h"

/* All commands, a line each; and one in full. Lines have at most 80 columns. */
void help_print_overview(FILE *to);
void help_print_command(const struct cli_command *command);
/* The manual page gpu-cli(1), as troff. */
void help_print_manual(void);
/* One command of it; its options without help are left out, as in the help. */
void help_print_manual_command(const struct cli_command *command);

#endif
