/* cdi_files.c - the files of prepared claims */
#include "agent/kubelet/cdi_files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/host/file.h"
#include "agent/kubelet/given.h"
#include "base/log.h"
#include "kubelet/cdi.h"

enum { KEPT_MAX = 1 << 20 };

struct cdi_files {
	char *kept, *cdi, *root;
	struct gpu_source *source;
};

struct cdi_files *cdi_files_new(const struct cdi_files_settings *settings, struct error *error)
{
	struct cdi_files *files = NEW(struct cdi_files);

	files->kept = file_path("%s/claims", settings->state_directory);
	files->cdi = memory_text(settings->cdi_directory);
	files->root = memory_text(settings->root);
	files->source = settings->source;
	if (file_make_directories(files->kept, 0700, error) &&
	    file_make_directories(files->cdi, 0755, error))
		return files;
	cdi_files_free(files);
	return NULL;
}

void cdi_files_free(struct cdi_files *files)
{
	if (!files)
		return;
	free(files->kept);
	free(files->cdi);
	free(files->root);
	free(files);
}

/* The uid in a file name, in `uid`; false: it is no file of ours. */
static bool uid_in(const char *name, const char *before, char uid[64])
{
	static const char after[] = ".json";
	size_t size = strlen(name), first = strlen(before), last = sizeof(after) - 1;

	if (size <= first + last || size - first - last > 63 || strncmp(name, before, first) != 0 ||
	    strcmp(name + size - last, after) != 0)
		return false;
	memcpy(uid, name + first, size - first - last);
	uid[size - first - last] = '\0';
	return claim_uid_is_valid(uid);
}

static char *kept_path(const struct cdi_files *files, const char *uid)
{
	return file_path("%s/%s.json", files->kept, uid);
}

static char *cdi_path(const struct cdi_files *files, const char *uid)
{
	char *name = cdi_file(uid);
	char *path = file_path("%s/%s", files->cdi, name);

	free(name);
	return path;
}

static struct claim *load_one(const struct cdi_files *files, const char *uid)
{
	struct buffer json = { 0 };
	struct error error = { 0 };
	char *path = kept_path(files, uid);
	struct claim *claim = file_read(path, KEPT_MAX, &json)
	                          ? claim_load((struct text){ json.data, json.size }, &error)
	                          : NULL;

	if (claim && strcmp(claim->uid, uid) != 0) {
		claim_free(claim);
		claim = NULL;
	}
	if (!claim)
		log_at(LOG_ERROR, "a prepared claim cannot be read: its memory is not reserved",
		       LOG_TEXT("file", path), LOG_TEXT("reason", error.text));
	free(path);
	buffer_free(&json);
	return claim;
}

/* Files that a crash left half written. */
static void remove_unfinished(const char *path, const char *before)
{
	static const char after[] = ".json.new";
	DIR *directory = opendir(path);

	for (struct dirent *entry; directory && (entry = readdir(directory));) {
		size_t size = strlen(entry->d_name), last = sizeof(after) - 1;
		if (size <= last || strcmp(entry->d_name + size - last, after) != 0 ||
		    strncmp(entry->d_name, before, strlen(before)) != 0)
			continue;
		char *file = file_path("%s/%s", path, entry->d_name);
		unlink(file);
		free(file);
	}
	if (directory)
		closedir(directory);
}

static void sweep(const struct cdi_files *files)
{
	DIR *directory = opendir(files->cdi);
	char uid[64];

	for (struct dirent *entry; directory && (entry = readdir(directory));) {
		if (!uid_in(entry->d_name, "gpu-scheduler.io-gpu_", uid))
			continue;
		char *kept = kept_path(files, uid);
		char *path = cdi_path(files, uid);
		if (access(kept, F_OK) != 0)
			unlink(path);
		free(kept);
		free(path);
	}
	if (directory)
		closedir(directory);
}

void cdi_files_load(struct cdi_files *files, void (*each)(void *context, struct claim *claim),
                    void *context)
{
	DIR *directory = opendir(files->kept);
	char uid[64];

	for (struct dirent *entry; directory && (entry = readdir(directory));) {
		struct claim *claim = uid_in(entry->d_name, "", uid) ? load_one(files, uid) : NULL;
		if (claim)
			each(context, claim);
	}
	if (directory)
		closedir(directory);
	remove_unfinished(files->kept, "");
	remove_unfinished(files->cdi, "gpu-scheduler.io-gpu_");
	sweep(files);
}

static bool write_cdi(const struct cdi_files *files, const struct claim *claim, struct error *error)
{
	struct given given = { 0 };
	struct buffer json = { 0 };
	char *path = cdi_path(files, claim->uid);

	for (int64_t i = 0; i < claim->device_count; i++)
		given_add(&given, files->source, claim->devices[i].uuid);
	given_find(&given, files->root);
	struct cdi_node node = { .devices = given.devices,
		                 .device_count = given.device_count,
		                 .mounts = given.mounts,
		                 .mount_count = given.mount_count };
	cdi_write(claim, &node, &json);
	bool written = file_replace(path, json.data, json.size, 0644, error);
	given_free(&given);
	buffer_free(&json);
	free(path);
	return written;
}

static bool write_kept(const struct cdi_files *files, const struct claim *claim,
                       struct error *error)
{
	struct buffer json = { 0 };
	char *path = kept_path(files, claim->uid);

	claim_write(claim, &json);
	bool written = file_replace(path, json.data, json.size, 0600, error);
	buffer_free(&json);
	free(path);
	return written;
}

bool cdi_files_keep(struct cdi_files *files, const struct claim *claim, struct error *error)
{
	char *path = kept_path(files, claim->uid);
	bool was_kept = access(path, F_OK) == 0;
	bool kept = write_kept(files, claim, error) && write_cdi(files, claim, error);

	if (!kept && !was_kept)
		cdi_files_forget(files, claim->uid);
	free(path);
	return kept;
}

void cdi_files_forget(struct cdi_files *files, const char *uid)
{
	char *kept = kept_path(files, uid);
	char *cdi = cdi_path(files, uid);

	unlink(cdi);
	unlink(kept);
	free(kept);
	free(cdi);
}
