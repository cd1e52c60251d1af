/* jct_command.h - gpu-sim jct: how long jobs take under a policy */
#ifndef SIM_TRACE_JCT_COMMAND_H
#define SIM_TRACE_JCT_COMMAND_H

/* Runs the subcommand; the exit status: 0 fine, 1 something failed, 2 it was not
 * asked properly. */
int jct_main(int argc, char **argv);

#endif
