/* listener_state.h - listeners, for the loop that they belong to */
#ifndef WIRE_LISTENER_STATE_H
#define WIRE_LISTENER_STATE_H

#include "wire/loop_state.h"

/* Closes and frees all listeners of the loop. */
void listeners_close(struct loop *loop);

#endif
