/* device.c - the stand-in's GPUs and contexts, and how its functions are found by name */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../calls/entries.h"
#include "internal.h"

pthread_mutex_t standin_mutex = PTHREAD_MUTEX_INITIALIZER;
static __thread CUcontext current_stack[16];
static __thread int current_depth;
static struct CUctx_st primary[STANDIN_GPUS_MAX];
static int primary_references[STANDIN_GPUS_MAX];
static int64_t used_bytes[STANDIN_GPUS_MAX];
static int context_count[STANDIN_GPUS_MAX];

static int64_t hidden_bytes[STANDIN_GPUS_MAX];
static struct standin_user *user; /* of this process, once it has taken something */

static void become_child(void)
{
	pthread_mutex_init(&standin_mutex, NULL);
	memset(primary, 0, sizeof primary);
	memset(primary_references, 0, sizeof primary_references);
	memset(used_bytes, 0, sizeof used_bytes);
	memset(hidden_bytes, 0, sizeof hidden_bytes);
	memset(context_count, 0, sizeof context_count);
	current_depth = 0;
	user = NULL;
	standin_forget_pools();
	standin_forget_pieces();
	standin_forget_modules();
	standin_forget_files();
}

__attribute__((constructor)) static void begin(void)
{
	pthread_atfork(NULL, NULL, become_child);
}

static int64_t setting(const char *name, int64_t otherwise)
{
	const char *text = getenv(name);
	return text != NULL ? strtoll(text, NULL, 10) : otherwise;
}

static struct standin_state *shared_state(void)
{
	static struct standin_state *state;
	const char *path = getenv("STANDIN_STATE");
	if (state == NULL && path != NULL) {
		int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (file >= 0 && ftruncate(file, sizeof *state) == 0)
			state =
			    mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		close(file);
	}
	return state;
}

static int64_t memory_bytes(void)
{
	return setting("STANDIN_MEMORY", INT64_C(16) << 30);
}

/* True if a process has ended, whether somebody waited for it or not. */
static bool has_ended(int64_t pid)
{
	char path[40];
	char text[400];
	snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
	FILE *file = fopen(path, "r");
	size_t size = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
	if (file != NULL)
		fclose(file);
	text[size] = '\0';
	const char *state = strrchr(text, ')');
	return state == NULL || state[2] == 'Z' || state[2] == 'X';
}

/* Gives back all that a process has taken which is no more. */
static void clear_user(struct standin_state *state, struct standin_user *other)
{
	for (int gpu = 0; gpu < STANDIN_GPUS_MAX; gpu++)
		atomic_fetch_sub(&state->used_bytes[gpu],
		                 atomic_exchange(&other->used_bytes[gpu], 0));
	atomic_store(&other->pid, 0);
}

/* This process's place in the shared state; NULL: there is none left. What an earlier program of
 * it has taken is gone, as it called exec. */
static struct standin_user *own_user(struct standin_state *state)
{
	for (int i = 0; i < STANDIN_USERS_MAX && user == NULL; i++) {
		if (atomic_load(&state->users[i].pid) == getpid())
			clear_user(state, &state->users[i]);
	}
	for (int i = 0; i < STANDIN_USERS_MAX && user == NULL; i++) {
		int64_t nobody = 0;
		if (atomic_compare_exchange_strong(&state->users[i].pid, &nobody, getpid()))
			user = &state->users[i];
	}
	return user;
}

static void reap_users(struct standin_state *state)
{
	for (int i = 0; i < STANDIN_USERS_MAX; i++) {
		struct standin_user *other = &state->users[i];
		int64_t pid = atomic_load(&other->pid);
		if (pid > 0 && pid != getpid() && has_ended(pid) &&
		    atomic_compare_exchange_strong(&other->pid, &pid, -1))
			clear_user(state, other);
	}
}

bool standin_take(int gpu, int64_t bytes)
{
	if (gpu < 0)
		return true;
	struct standin_state *state = shared_state();
	struct standin_user *own = state != NULL ? own_user(state) : NULL;
	if (state != NULL && bytes > 0)
		reap_users(state);
	int64_t all_bytes = state != NULL ? atomic_load(&state->used_bytes[gpu]) : 0;
	if (bytes > memory_bytes() - (all_bytes > used_bytes[gpu] ? all_bytes : used_bytes[gpu]))
		return false;
	used_bytes[gpu] += bytes;
	if (state != NULL) {
		int64_t used = atomic_fetch_add(&state->used_bytes[gpu], bytes) + bytes;
		if (own != NULL)
			atomic_fetch_add(&own->used_bytes[gpu], bytes);
		int64_t peak = atomic_load(&state->peak_bytes[gpu]);
		while (used > peak &&
		       !atomic_compare_exchange_weak(&state->peak_bytes[gpu], &peak, used))
			;
	}
	return true;
}

int64_t standin_used(int gpu)
{
	pthread_mutex_lock(&standin_mutex);
	standin_sweep_files();
	int64_t bytes = used_bytes[gpu];
	if (context_count[gpu] > 0)
		bytes += setting("STANDIN_CONTEXT", 0);
	pthread_mutex_unlock(&standin_mutex);
	return bytes;
}

void standin_hide(struct piece *piece, bool hidden)
{
	if (piece->gpu >= 0 && piece->hidden != hidden)
		hidden_bytes[piece->gpu] += hidden ? piece->bytes : -piece->bytes;
	piece->hidden = hidden;
}

int64_t standin_shown(int gpu)
{
	int64_t bytes = standin_used(gpu);
	pthread_mutex_lock(&standin_mutex);
	bytes -= hidden_bytes[gpu];
	pthread_mutex_unlock(&standin_mutex);
	return bytes;
}

void standin_uuid(int gpu, uint8_t uuid[16])
{
	memset(uuid, 0, 16);
	uuid[0] = 0x57;
	uuid[15] = (uint8_t)gpu;
}

int standin_gpu(CUdevice device)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	int64_t count = setting("STANDIN_GPUS", 2);
	if (visible == NULL)
		return device >= 0 && device < count ? device : -1;
	for (CUdevice at = 0; *visible != '\0'; at++) {
		char *end;
		long gpu = strtol(visible, &end, 10);
		if (end == visible || gpu < 0 || gpu >= count)
			return -1;
		if (at == device)
			return (int)gpu;
		visible = *end == ',' ? end + 1 : end;
	}
	return -1;
}

CUcontext standin_current(void)
{
	return current_depth > 0 ? current_stack[current_depth - 1] : NULL;
}

int standin_current_gpu(void)
{
	CUcontext context = standin_current();
	return context != NULL ? standin_gpu(context->device) : -1;
}

CUresult cuInit(unsigned int flags)
{
	return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDriverGetVersion(int *version)
{
	*version = 13000;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	for (*count = 0; standin_gpu(*count) >= 0; ++*count)
		;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	*device = ordinal;
	return standin_gpu(ordinal) >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	if (standin_gpu(device) < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	standin_uuid(standin_gpu(device), uuid->bytes);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
	return cuDeviceGetUuid_v2(uuid, device);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	if (standin_gpu(device) < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	*bytes = (size_t)memory_bytes();
	return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device)
{
	*bytes = (unsigned int)memory_bytes();
	return standin_gpu(device) >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
	if (standin_current() == NULL)
		return CUDA_ERROR_INVALID_CONTEXT;
	*total = (size_t)memory_bytes();
	*free = *total - (size_t)standin_used(standin_current_gpu());
	return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(unsigned int *free, unsigned int *total)
{
	if (standin_current() == NULL)
		return CUDA_ERROR_INVALID_CONTEXT;
	*total = UINT32_MAX;
	*free = UINT32_MAX;
	return CUDA_SUCCESS;
}

static CUresult push(CUcontext context)
{
	if (context == NULL || !context->alive || current_depth == 16)
		return CUDA_ERROR_INVALID_CONTEXT;
	current_stack[current_depth++] = context;
	return CUDA_SUCCESS;
}

static CUresult make(CUcontext *context, CUdevice device)
{
	if (standin_gpu(device) < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	CUcontext made = calloc(1, sizeof *made);
	made->device = device;
	made->alive = true;
	pthread_mutex_lock(&standin_mutex);
	context_count[standin_gpu(device)]++;
	pthread_mutex_unlock(&standin_mutex);
	*context = made;
	return push(made);
}

CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
	(void)flags;
	return make(context, device);
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
	(void)flags;
	return make(context, device);
}

CUresult cuCtxCreate_v3(CUcontext *context, void *affinities, int count, unsigned int flags,
                        CUdevice device)
{
	(void)affinities, (void)count, (void)flags;
	return make(context, device);
}

CUresult cuCtxCreate_v4(CUcontext *context, void *parameters, unsigned int flags, CUdevice device)
{
	(void)parameters, (void)flags;
	return make(context, device);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
	if (context == NULL || !context->alive)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&standin_mutex);
	standin_end_context(context);
	context_count[standin_gpu(context->device)]--;
	context->alive = false;
	pthread_mutex_unlock(&standin_mutex);
	while (current_depth > 0 && !current_stack[current_depth - 1]->alive)
		current_depth--;
	free(context);
	return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext context)
{
	return cuCtxDestroy_v2(context);
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	if (standin_current() == NULL)
		return CUDA_ERROR_INVALID_CONTEXT;
	*device = standin_current()->device;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
	*context = standin_current();
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	current_depth = 0;
	return context != NULL ? push(context) : CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
	return push(context);
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
	if (current_depth == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	*context = current_stack[--current_depth];
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	int gpu = standin_gpu(device);
	if (gpu < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&standin_mutex);
	if (primary_references[gpu]++ == 0) {
		primary[gpu].device = device;
		primary[gpu].alive = true;
		context_count[gpu]++;
	}
	pthread_mutex_unlock(&standin_mutex);
	*context = &primary[gpu];
	return CUDA_SUCCESS;
}

static void end_primary(int gpu)
{
	standin_end_context(&primary[gpu]);
	context_count[gpu]--;
	if (context_count[gpu] == 0)
		standin_end_graphs(gpu);
	primary[gpu].alive = false;
	primary_references[gpu] = 0;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	int gpu = standin_gpu(device);
	if (gpu < 0 || primary_references[gpu] == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&standin_mutex);
	if (--primary_references[gpu] == 0)
		end_primary(gpu);
	pthread_mutex_unlock(&standin_mutex);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	return cuDevicePrimaryCtxRelease_v2(device);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	int gpu = standin_gpu(device);
	if (gpu < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&standin_mutex);
	if (primary[gpu].alive)
		end_primary(gpu);
	pthread_mutex_unlock(&standin_mutex);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
	return cuDevicePrimaryCtxReset_v2(device);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
	*flags = 0;
	*active = standin_gpu(device) >= 0 && primary[standin_gpu(device)].alive;
	return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
	*name = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "another error";
	return CUDA_SUCCESS;
}

/* The functions that programs of that version get for a name, latest first, with the
 * suffix of their symbols. */
static const struct {
	const char *name;
	int version;
	const char *suffix;
} versions[] = {
	{ "cuGetProcAddress", 12000, "_v2" },
	{ "cuMemAlloc", 3020, "_v2" },
	{ "cuMemAllocPitch", 3020, "_v2" },
	{ "cuMemFree", 3020, "_v2" },
	{ "cuMemGetInfo", 3020, "_v2" },
	{ "cuDeviceTotalMem", 3020, "_v2" },
	{ "cuArrayCreate", 3020, "_v2" },
	{ "cuArray3DCreate", 3020, "_v2" },
	{ "cuIpcOpenMemHandle", 11000, "_v2" },
	{ "cuCtxSynchronize", 13000, "_v2" },
	{ "cuCtxCreate", 12050, "_v4" },
	{ "cuCtxCreate", 11040, "_v3" },
	{ "cuCtxCreate", 3020, "_v2" },
	{ "cuCtxDestroy", 4000, "_v2" },
	{ "cuDevicePrimaryCtxRelease", 11000, "_v2" },
	{ "cuDevicePrimaryCtxReset", 11000, "_v2" },
	{ "cuGraphAddNode", 12030, "_v2" },
};

/* A function that does what an exported one does, at another address. */
static CUresult private_alloc(CUdeviceptr *pointer, size_t bytes)
{
	return cuMemAlloc_v2(pointer, bytes);
}

#define WRAPPED(symbol, ...) { #symbol, (void *)(symbol) },
static const struct {
	const char *symbol;
	void *address;
} functions[] = { ENTRIES_CUDA(WRAPPED) ENTRIES_CUDA_ASKED(WRAPPED) WRAPPED(cuInit)
	              WRAPPED(cuDeviceGetCount) WRAPPED(cuLaunchKernel) };

static void *find_function(const char *symbol)
{
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		if (strcmp(functions[i].symbol, symbol) == 0)
			return functions[i].address;
	}
	return NULL;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **address, int version, uint64_t flags,
                             int *status)
{
	char full[96];
	const char *suffix = "";
	for (size_t i = 0; i < sizeof versions / sizeof *versions && suffix[0] == '\0'; i++) {
		if (strcmp(versions[i].name, symbol) == 0 && version >= versions[i].version)
			suffix = versions[i].suffix;
	}
	bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
	snprintf(full, sizeof full, "%s%s%s", symbol, suffix, per_thread ? "_ptsz" : "");
	*address = find_function(full);
	if (*address == NULL && per_thread) {
		snprintf(full, sizeof full, "%s%s", symbol, suffix);
		*address = find_function(full);
	}
	if (*address != NULL && strcmp(full, "cuMemAlloc_v2") == 0 &&
	    getenv("STANDIN_PRIVATE") != NULL)
		*address = (void *)private_alloc;
	if (status != NULL)
		*status = *address == NULL;
	return *address != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **address, int version, uint64_t flags)
{
	return cuGetProcAddress_v2(symbol, address, version, flags, NULL);
}
