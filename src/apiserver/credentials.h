/* credentials.h - who we are to the API server, read again while the program runs */
#ifndef APISERVER_CREDENTIALS_H
#define APISERVER_CREDENTIALS_H

#include "apiserver/client.h"

/* In the loop's thread only. From a kubeconfig, or from the account of the pod that the program
 * runs in. Files of tokens and certificates are read again every minute, and at once when the
 * server refuses a token; an `exec` command is run again before its credential expires. */
struct credentials;

/* `kubeconfig`: a file; "": in the cluster. NULL with a reason. */
struct credentials *credentials_new(uv_loop_t *loop, const char *kubeconfig, const char *context,
                                    struct error *error);
/* An `exec` that runs is killed; handles are closed, and it is freed when the loop has done that.
 */
void credentials_free(struct credentials *credentials);

/* False while an `exec` command has not printed anything yet. */
bool credentials_are_there(const struct credentials *credentials);
/* Fills in server, certificates and authorization; the texts live until the next change. */
void credentials_fill(const struct credentials *credentials, struct client_settings *settings);
/* Reads again what is due. True if certificates are not what they were: see client_renew(). */
bool credentials_time(struct credentials *credentials, int64_t now_ms);
/* The server answered 401. */
void credentials_were_refused(struct credentials *credentials);

#endif
