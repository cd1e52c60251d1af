/* slot_listener.h - where others reach a slot */
#ifndef AGENT_WORKLOAD_SLOT_LISTENER_H
#define AGENT_WORKLOAD_SLOT_LISTENER_H

#include "agent/host/slot_keys.h"
#include "agent/workload/run.h"

/* A socket that listens on a port of the range that nobody can guess, on all addresses, and keys
 * for who comes there. `server_port` is left to the server; 0: it is in another network. -1 with a
 * reason. */
int slot_listener_open(const struct run_settings *settings, int64_t server_port,
                       struct slot_door *door, struct error *error);

#endif
