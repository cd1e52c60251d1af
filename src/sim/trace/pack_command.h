/* pack_command.h - gpu-sim pack: what a placement policy makes of a trace */
#ifndef SIM_TRACE_PACK_COMMAND_H
#define SIM_TRACE_PACK_COMMAND_H

/* gpu-sim pack: runs the packing protocol for each policy and seed, and prints a
 * table or JSON, and plots. Returns the exit status: 0 fine, 1 the core refused,
 * 2 it was not asked properly or a file could not be read or written. */
int pack_main(int argc, char **argv);

#endif
