/* demo.h - a small demonstration of the core */
#ifndef SIM_DEMO_H
#define SIM_DEMO_H

/* gpu-sim demo: five requests for one GPU that has room for four, with real
 * commands. Returns the exit status. */
int demo_main(int argc, char **argv);

#endif
