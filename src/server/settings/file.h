/* file.h - a whole file, read at once */
#ifndef SERVER_FILE_H
#define SERVER_FILE_H

#include "base/buffer.h"
#include "base/error.h"

/* Appends the content of the file. False with a reason that names it, also where
 * it has more than `bytes_max`. */
bool file_read(const char *path, size_t bytes_max, struct buffer *content, struct error *error);

#endif
