/* states.h - a handler that answers when and how a fuzzer says, and checks what it is told */
#ifndef WIRE_TEST_STATES_H
#define WIRE_TEST_STATES_H

#include "pair.h"

/* Exchanges wait in slots until states_act ends them. By the first letter of the path: /r is
 * refused in `head`, /s streams its body, /b begins its answer in `head`, others wait for
 * their request. What contradicts wire's promises breaks an invariant: a head that is followed
 * by neither `request` nor `gone`, by both, or by either after the end. */
extern const struct handler states_handler;

/* Does something to one of the exchanges; both are chosen by the number. */
void states_act(unsigned number);
/* Ends all that are left. Call it when the client has gone; then nothing may be left. */
void states_end(void);

#endif
