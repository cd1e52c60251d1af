/* signals.h - signals of the process, told in the loop's thread */
#ifndef SERVER_SIGNALS_H
#define SERVER_SIGNALS_H

#include <signal.h>

#include "wire/loop.h"

/* A thread that waits for SIGTERM, SIGINT and SIGHUP. */
struct signals;

/* Before any thread is started: these signals interrupt none of them. SIGPIPE and
 * SIGXFSZ are ignored: a client that went away and a file that may not grow are
 * errors of a write. */
void signals_block(void);
/* `each` is called in the loop's thread for each signal. */
struct signals *signals_start(struct loop *loop, void (*each)(void *context, int number),
                              void *context);
/* Before the loop is freed; NULL is allowed. */
void signals_stop(struct signals *signals);

#endif
