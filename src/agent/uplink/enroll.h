/* enroll.h - gpu-agent enroll: gets a token for this node from the scheduler */
#ifndef AGENT_UPLINK_ENROLL_H
#define AGENT_UPLINK_ENROLL_H

/* What `gpu-agent enroll` does; argv[0] is "enroll". The exit status. */
int enroll_main(int argc, char **argv);

#endif
