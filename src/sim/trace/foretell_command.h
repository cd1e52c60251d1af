/* foretell_command.h - gpu-sim predict: how well run times are predicted */
#ifndef SIM_TRACE_FORETELL_COMMAND_H
#define SIM_TRACE_FORETELL_COMMAND_H

/* Runs the subcommand; the exit status: 0 fine, 2 it was not asked properly. */
int foretell_main(int argc, char **argv);

#endif
