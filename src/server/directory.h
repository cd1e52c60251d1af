/* directory.h - the directory that the scheduler keeps its files in */
#ifndef SERVER_DIRECTORY_H
#define SERVER_DIRECTORY_H

#include "base/error.h"

/* Makes it, for its owner alone, with those that it is in, unless it is there. */
bool directory_make(const char *path, struct error *error);

#endif
