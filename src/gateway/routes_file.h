/* routes_file.h - routes from a file, where there is no scheduler */
#ifndef GATEWAY_ROUTES_FILE_H
#define GATEWAY_ROUTES_FILE_H

#include "gateway/state/gateway.h"

/* {"models":[{"name":"m","runtime":"vllm","aliases":[],"slots":["http://127.0.0.1:9001"],
 * "concurrency":256}]}. Everyone on this machine may ask. False with a reason. */
bool routes_file_read(struct gateway *gateway, const char *path, int64_t now_ms,
                      struct error *error);

#endif
