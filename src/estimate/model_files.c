/* model_files.c - finds and reads the files of a model */
#include "estimate/model_files.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "estimate/gguf.h"
#include "estimate/safetensors.h"

#define INDEX_NAME "model.safetensors.index.json"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] != '\0' ? slash + 1 : path;
}

/* Puts the name of the file before what is wrong with it. */
static bool name_file(struct error *error, const char *path)
{
	struct error inner = *error;
	return error_set(error, inner.code, "%.80s: %s", base_name(path), inner.text);
}

static bool ends(const char *text, const char *with)
{
	size_t length = strlen(text), end = strlen(with);
	return length >= end && strcmp(text + length - end, with) == 0;
}

static char *model_files_join(const char *directory, const char *name)
{
	size_t size = strlen(directory) + strlen(name) + 2;
	char *path = memory_alloc(size);
	snprintf(path, size, "%s/%s", directory, name);
	return path;
}

static int five_digits(const char *at)
{
	int number = 0;
	for (int i = 0; i < 5; i++) {
		if (at[i] < '0' || at[i] > '9')
			return -1;
		number = number * 10 + (at[i] - '0');
	}
	return number;
}

bool model_files_is_split(const char *path, size_t *stem, int *count)
{
	static const char form[] = "-00001-of-00003.gguf";
	size_t length = strlen(path), tail = strlen(form);
	if (length <= tail || !ends(path, ".gguf"))
		return false;
	const char *at = path + length - tail;
	int number = five_digits(at + 1);
	*count = strncmp(at + 6, "-of-", 4) == 0 ? five_digits(at + 10) : -1;
	*stem = length - tail;
	return at[0] == '-' && number >= 1 && *count >= 1 && number <= *count &&
	       *count <= MODEL_FILES_MAX;
}

static bool read_gguf(struct gguf *gguf, const char *path, struct error *error)
{
	struct reader reader;
	struct reader_file file;
	*gguf = (struct gguf){ 0 };
	if (!reader_open_file(&reader, &file, path, error))
		return name_file(error, path);
	bool read = gguf_read(gguf, &reader, error);
	reader_close_file(&file);
	return read || name_file(error, path);
}

/* The files of a split model must be of one model: each says how many there are. */
static bool check_split(const struct gguf *gguf, int count, const char *path, struct error *error)
{
	const struct gguf_value *said = gguf_find(gguf, "split.count");
	int64_t number = said ? said->number : 1;
	if (number == count || (number == 0 && count == 1))
		return true;
	error_set(error, ERROR_INVALID, "its name says it is one of %d files, its header %lld",
	          count, (long long)number);
	return name_file(error, path);
}

static bool read_gguf_files(struct blueprint *blueprint, const char *path, struct error *error)
{
	size_t stem = 0, size = strlen(path) + 1;
	int count = 1;
	bool split = model_files_is_split(path, &stem, &count);
	bool read = true;
	if (!split)
		count = 1;
	struct gguf *files = memory_zero((size_t)count, sizeof(*files));
	char *name = memory_text(path);
	for (int i = 0; i < count && read; i++) {
		if (split)
			snprintf(name + stem, size - stem, "-%05d-of-%05d.gguf", i + 1, count);
		read =
		    read_gguf(&files[i], name, error) && check_split(&files[i], count, name, error);
	}
	if (read && !gguf_blueprint(blueprint, files, (size_t)count, error))
		read = name_file(error, path);
	for (int i = 0; i < count; i++)
		gguf_free(&files[i]);
	free(files);
	free(name);
	return read;
}

static bool read_config(struct blueprint *blueprint, struct safetensors_config *config,
                        const char *directory, struct error *error)
{
	struct reader reader;
	struct reader_file file;
	char *path = model_files_join(directory, "config.json");
	bool read = reader_open_file(&reader, &file, path, error);
	if (read) {
		read = safetensors_config_read(blueprint, config, &reader, error);
		reader_close_file(&file);
	}
	if (!read)
		name_file(error, path);
	free(path);
	return read;
}

static bool add_file(struct blueprint *blueprint, const struct safetensors_config *config,
                     const char *directory, const char *name, struct text_map *seen,
                     struct error *error)
{
	struct reader reader;
	struct reader_file file;
	char *path = model_files_join(directory, name);
	bool read = reader_open_file(&reader, &file, path, error);
	if (read) {
		read = safetensors_add(blueprint, config, &reader, seen, error);
		reader_close_file(&file);
	}
	if (!read)
		name_file(error, path);
	free(path);
	return read;
}

/* Reads config.json and the files with these names, all in one directory. */
static bool read_safetensors(struct blueprint *blueprint, const char *directory,
                             const json_t *names, struct error *error)
{
	struct safetensors_config config;
	struct text_map seen = { 0 };
	size_t i;
	const json_t *name;
	bool read = read_config(blueprint, &config, directory, error);
	json_array_foreach(names, i, name)
	{
		if (read)
			read = add_file(blueprint, &config, directory, json_string_value(name),
			                &seen, error);
	}
	text_map_free(&seen);
	if (read && blueprint->weight_bytes == 0)
		return error_set(error, ERROR_INVALID, "the model has no tensors");
	if (read && blueprint->weight_bytes == INT64_MAX)
		return error_set(error, ERROR_INVALID, "the model's tensors are beyond counting");
	return read;
}

/* The files that the index lists; an empty array if there is no index. */
static json_t *read_index(const char *directory, struct error *error)
{
	struct reader reader;
	struct reader_file file;
	struct error reason = { 0 };
	json_t *names = NULL;
	char *path = model_files_join(directory, INDEX_NAME);
	if (reader_open_file(&reader, &file, path, &reason)) {
		names = safetensors_index_read(&reader, error);
		reader_close_file(&file);
		if (!names)
			name_file(error, path);
	} else if (reason.code == ERROR_NOT_FOUND) {
		names = json_array();
	} else {
		*error = reason;
		name_file(error, path);
	}
	free(path);
	return names;
}

/* The names in a directory that end so, in order. */
static json_t *list_names(const char *path, const char *with)
{
	struct dirent **entries = NULL;
	json_t *names = json_array();
	int count = scandir(path, &entries, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		const char *name = entries[i]->d_name;
		if (name[0] != '.' && ends(name, with) && json_array_size(names) < MODEL_FILES_MAX)
			json_array_append_new(names, json_string(name));
		free(entries[i]);
	}
	free(entries);
	return names;
}

/* Of several GGUF files, the first if they are all pieces of one model. */
static bool read_gguf_directory(struct blueprint *blueprint, const char *directory,
                                const json_t *names, struct error *error)
{
	const char *first = json_string_value(json_array_get(names, 0));
	size_t stem = 0;
	int count = 1;
	if (!model_files_is_split(first, &stem, &count))
		count = 1;
	if (json_array_size(names) != (size_t)count)
		return error_set(error, ERROR_INVALID,
		                 "the directory has %zu GGUF files: name the one that is meant, "
		                 "such as %.80s",
		                 json_array_size(names), first);
	char *path = model_files_join(directory, first);
	bool read = read_gguf_files(blueprint, path, error);
	free(path);
	return read;
}

/* Without an index, model.safetensors is the model; otherwise all of them are. */
static json_t *without_index(const char *directory)
{
	json_t *names = list_names(directory, ".safetensors");
	size_t i;
	const json_t *name;
	json_array_foreach(names, i, name)
	{
		if (strcmp(json_string_value(name), "model.safetensors") != 0)
			continue;
		json_decref(names);
		return json_pack("[s]", "model.safetensors");
	}
	return names;
}

static bool read_directory(struct blueprint *blueprint, const char *path, struct error *error)
{
	json_t *names = read_index(path, error);
	if (!names)
		return false;
	if (json_array_size(names) == 0) {
		json_decref(names);
		names = without_index(path);
	}
	json_t *gguf = list_names(path, ".gguf");
	bool read;
	if (json_array_size(names) > 0)
		read = read_safetensors(blueprint, path, names, error);
	else if (json_array_size(gguf) > 0)
		read = read_gguf_directory(blueprint, path, gguf, error);
	else
		read = error_set(error, ERROR_NOT_FOUND,
		                 "%.80s: the directory has neither safetensors nor GGUF files",
		                 base_name(path));
	json_decref(gguf);
	json_decref(names);
	return read;
}

/* One safetensors file is a model if its config.json is beside it. */
static bool read_single(struct blueprint *blueprint, const char *path, struct error *error)
{
	const char *name = base_name(path);
	char *directory = memory_text(path);
	directory[name - path] = '\0';
	if (*directory == '\0') {
		free(directory);
		directory = memory_text(".");
	}
	json_t *names = json_pack("[s]", name);
	bool read = names ? read_safetensors(blueprint, directory, names, error)
	                  : error_set(error, ERROR_INVALID, "its name is not UTF-8");
	json_decref(names);
	free(directory);
	return read;
}

bool model_files_read(struct blueprint *blueprint, const char *path, struct error *error)
{
	struct stat status;
	*blueprint = (struct blueprint){ 0 };
	if (stat(path, &status) != 0)
		return error_set(error, ERROR_NOT_FOUND, "%.120s: %s", path, strerror(errno));
	if (S_ISDIR(status.st_mode))
		return read_directory(blueprint, path, error);
	if (ends(path, ".safetensors"))
		return read_single(blueprint, path, error);
	return read_gguf_files(blueprint, path, error);
}
