/* context.h - contexts: what they take, and that allocations end with them */
#ifndef GUARD_CALLS_CONTEXT_H
#define GUARD_CALLS_CONTEXT_H

/* In a forked child, which has none of its parent's contexts. */
void context_reset(void);

#endif
