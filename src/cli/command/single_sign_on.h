/* single_sign_on.h - signing in by a provider, for gpu-cli login */
#ifndef CLI_COMMAND_SINGLE_SIGN_ON_H
#define CLI_COMMAND_SINGLE_SIGN_ON_H

#include "cli/client/client.h"

/* Has the user sign in at the provider with a device code, which stderr shows, and waits until that
 * is done. The session's token (to be wiped and freed), or NULL with a reason. */
char *single_sign_on(struct client *client, struct error *error);
/* Ends the session of the client's token. Where the user can sign out of the provider too is
 * printed. */
bool single_sign_off(struct client *client, struct error *error);

#endif
