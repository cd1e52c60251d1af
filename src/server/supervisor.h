/* supervisor.h - what systemd is told, where it asked to be */
#ifndef SERVER_SUPERVISOR_H
#define SERVER_SUPERVISOR_H

#include <stdint.h>

/* Sends lines such as "READY=1\nSTATUS=serving" to NOTIFY_SOCKET, if there is one. What
 * cannot be sent is lost. */
void supervisor_tell(const char *lines);
/* The interval of its watchdog ("WATCHDOG=1") in milliseconds; 0: it has none. */
int64_t supervisor_watchdog_ms(void);

#endif
