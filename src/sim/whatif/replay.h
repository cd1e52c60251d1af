/* replay.h - gpu-sim replay: a journal's commands, applied again */
#ifndef SIM_WHATIF_REPLAY_H
#define SIM_WHATIF_REPLAY_H

/* Loads a backup, or begins with nothing, and applies the commands of a journal
 * that came after it; with -v it prints each with what followed. The last line
 * has a digest of all effects: the same commands give the same. Every decision is
 * compared with those of a store, where one is named. Returns 1 if commands are
 * missing from the journal, one is refused that was not then, or a decision is not as
 * it was. */
int replay_main(int argc, char **argv);

#endif
