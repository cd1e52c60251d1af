/* dcgm_engine.c - what DCGM's host engine tells, by NVIDIA's library */
#include "agent/gpu/dcgm_engine.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"

/* Names, numbers and layouts are those of the library's binary interface. */
enum {
	DCGM_OK = 0,
	FIELD_UUID = 54,
	FIELD_XID = 230,
	FIELD_DOUBLE_BIT = 311,
	FIELD_REMAP_FAILURE = 395,
	FIELD_SM_ACTIVE = 1002,
	FIELD_DRAM_ACTIVE = 1005,
	TEXT_MAX = 256,
	BLOB_MAX = 4096,
	GPUS_MAX = 64,
	CONNECT_MS = 3000,
	KEPT_SAMPLES = 2,
};
#define ALL_GPUS ((uintptr_t)0x7fffffff)
#define BLANK_INTEGER INT64_C(0x7ffffffffffffff0) /* from here on: there is no value */
#define BLANK_DOUBLE 140737488355328.0
#define EVERY_US 5000000LL
#define KEPT_S 60.0
/* A struct says its size and its version. */
#define VERSION_OF(type, version) ((unsigned)sizeof(type) | (unsigned)(version) << 24)

struct connect_parameters {
	unsigned version, persists, timeout_ms, is_unix_socket;
};
struct field_value {
	unsigned version;
	unsigned short field, type;
	int status;
	int64_t time_us;
	union {
		int64_t integer;
		double number;
		char text[TEXT_MAX];
		char blob[BLOB_MAX];
	} value;
};
typedef int (*take_values)(unsigned entity_group, unsigned entity, struct field_value *values,
                           int count, void *context);

struct dcgm_functions {
	int (*init)(void);
	int (*shutdown)(void);
	int (*connect)(const char *, struct connect_parameters *, uintptr_t *);
	int (*disconnect)(uintptr_t);
	int (*fields)(uintptr_t, int, const unsigned short *, const char *, uintptr_t *);
	int (*watch)(uintptr_t, uintptr_t, uintptr_t, long long, double, int);
	int (*latest)(uintptr_t, uintptr_t, uintptr_t, take_values, void *);
};

struct dcgm_engine {
	void *library;
	struct dcgm_functions call;
	char *address;
	bool connected;
	uintptr_t handle, plain, profiling;
	bool profiles; /* the GPUs can be profiled, and nobody else does */
};

/* What is known of a GPU while values come in; negative: nothing. */
struct gpu_values {
	unsigned id;
	char uuid[TEXT_MAX];
	int64_t xid, double_bit, remap_failure;
	double sm_active, dram_active;
};

struct gathering {
	struct gpu_values gpus[GPUS_MAX];
	size_t count;
	bool strange; /* a value of a layout that is not known */
};

static bool find_functions(struct dcgm_engine *engine, struct error *error)
{
	static const struct {
		size_t offset;
		const char *name;
	} names[] = { { offsetof(struct dcgm_functions, init), "dcgmInit" },
		      { offsetof(struct dcgm_functions, shutdown), "dcgmShutdown" },
		      { offsetof(struct dcgm_functions, connect), "dcgmConnect_v2" },
		      { offsetof(struct dcgm_functions, disconnect), "dcgmDisconnect" },
		      { offsetof(struct dcgm_functions, fields), "dcgmFieldGroupCreate" },
		      { offsetof(struct dcgm_functions, watch), "dcgmWatchFields" },
		      { offsetof(struct dcgm_functions, latest), "dcgmGetLatestValues_v2" } };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		void *found = dlsym(engine->library, names[i].name);
		if (!found)
			return error_set(
			    error, ERROR_UNAVAILABLE,
			    "DCGM's library is of a version that is not understood: it "
			    "has no %s",
			    names[i].name);
		/* A function's address as an object's, as dlsym gives it. */
		memcpy((char *)&engine->call + names[i].offset, &found, sizeof(found));
	}
	return true;
}

static void *dcgm_engine_load(const char *path, struct error *error)
{
	static const char *const names[] = { "libdcgm.so.4", "libdcgm.so.3" };
	void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;

	for (size_t i = 0; !path && !library && i < sizeof(names) / sizeof(*names); i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!library)
		error_set(error, ERROR_UNAVAILABLE, "DCGM's library cannot be loaded: %s",
		          dlerror());
	return library;
}

struct dcgm_engine *dcgm_engine_open(const char *address, const char *library, struct error *error)
{
	struct dcgm_engine *engine = NEW(struct dcgm_engine);

	engine->library = dcgm_engine_load(library, error);
	bool good = engine->library && find_functions(engine, error);
	int code = good ? engine->call.init() : DCGM_OK;
	if (good && code != DCGM_OK)
		good =
		    error_set(error, ERROR_UNAVAILABLE, "DCGM's library does not begin: %d", code);
	if (good) {
		engine->address = memory_text(address);
		return engine;
	}
	if (engine->library)
		dlclose(engine->library);
	free(engine);
	return NULL;
}

static void disconnect(struct dcgm_engine *engine)
{
	if (engine->connected)
		engine->call.disconnect(engine->handle);
	engine->connected = false;
}

/* The library is not unloaded: threads of its own may not have ended. */
void dcgm_engine_close(struct dcgm_engine *engine)
{
	disconnect(engine);
	engine->call.shutdown();
	free(engine->address);
	free(engine);
}

static int watch(struct dcgm_engine *engine, const char *what, const unsigned short *fields,
                 int count, uintptr_t *group)
{
	char name[64];
	snprintf(name, sizeof(name), "gpu-agent-%d-%s", (int)getpid(), what);
	int code = engine->call.fields(engine->handle, count, fields, name, group);
	return code != DCGM_OK ? code
	                       : engine->call.watch(engine->handle, ALL_GPUS, *group, EVERY_US,
	                                            KEPT_S, KEPT_SAMPLES);
}

/* GPUs that cannot be profiled, or that somebody else profiles, have the rest to tell. */
static bool dcgm_engine_connect(struct dcgm_engine *engine, struct error *error)
{
	static const unsigned short plain[] = { FIELD_UUID, FIELD_XID, FIELD_DOUBLE_BIT,
		                                FIELD_REMAP_FAILURE };
	static const unsigned short profiling[] = { FIELD_SM_ACTIVE, FIELD_DRAM_ACTIVE };
	struct connect_parameters parameters = {
		.version = VERSION_OF(struct connect_parameters, 2),
		.timeout_ms = CONNECT_MS,
	};

	int code = engine->call.connect(engine->address, &parameters, &engine->handle);
	if (code != DCGM_OK)
		return error_set(error, ERROR_UNAVAILABLE,
		                 "DCGM's host engine at %.100s does not answer: %d",
		                 engine->address, code);
	engine->connected = true;
	code = watch(engine, "plain", plain, 4, &engine->plain);
	if (code != DCGM_OK)
		return error_set(error, ERROR_UNAVAILABLE, "DCGM does not watch health: it says %d",
		                 code);
	code = watch(engine, "profiling", profiling, 2, &engine->profiling);
	engine->profiles = code == DCGM_OK;
	if (!engine->profiles)
		log_at(LOG_WARNING, "DCGM does not profile these GPUs", LOG_NUMBER("code", code));
	return true;
}

static struct gpu_values *values_of(struct gathering *gathering, unsigned id)
{
	for (size_t i = 0; i < gathering->count; i++)
		if (gathering->gpus[i].id == id)
			return &gathering->gpus[i];
	if (gathering->count == GPUS_MAX)
		return NULL;
	struct gpu_values *gpu = &gathering->gpus[gathering->count++];
	*gpu = (struct gpu_values){ .id = id,
		                    .xid = -1,
		                    .double_bit = -1,
		                    .remap_failure = -1,
		                    .sm_active = -1,
		                    .dram_active = -1 };
	return gpu;
}

static void take_integer(int64_t *to, const struct field_value *value)
{
	if (value->type == 'i' && value->value.integer < BLANK_INTEGER)
		*to = value->value.integer;
}

static void dcgm_engine_take_number(double *to, const struct field_value *value)
{
	if (value->type == 'd' && value->value.number < BLANK_DOUBLE)
		*to = value->value.number;
}

static void take_text(char to[TEXT_MAX], const struct field_value *value)
{
	/* Quotes would end a label. */
	bool plain =
	    memchr(value->value.text, '\0', TEXT_MAX) && !strpbrk(value->value.text, "\"\\\n<");

	if (value->type == 's' && plain)
		memcpy(to, value->value.text, TEXT_MAX);
}

static void take_value(struct gpu_values *gpu, const struct field_value *value)
{
	switch (value->field) {
	case FIELD_UUID:
		take_text(gpu->uuid, value);
		break;
	case FIELD_XID:
		take_integer(&gpu->xid, value);
		break;
	case FIELD_DOUBLE_BIT:
		take_integer(&gpu->double_bit, value);
		break;
	case FIELD_REMAP_FAILURE:
		take_integer(&gpu->remap_failure, value);
		break;
	case FIELD_SM_ACTIVE:
		dcgm_engine_take_number(&gpu->sm_active, value);
		break;
	case FIELD_DRAM_ACTIVE:
		dcgm_engine_take_number(&gpu->dram_active, value);
		break;
	default:
		break;
	}
}

/* Where the first value is not of the layout that is known, where the next one is, is not
 * known either. */
static int dcgm_engine_take(unsigned entity_group, unsigned entity, struct field_value *values,
                            int count, void *context)
{
	struct gathering *gathering = context;
	struct gpu_values *gpu = values_of(gathering, entity);

	(void)entity_group;
	for (int i = 0; gpu && i < count; i++) {
		if (values[i].version != VERSION_OF(struct field_value, 1)) {
			gathering->strange = true;
			return -1;
		}
		if (values[i].status == DCGM_OK)
			take_value(gpu, &values[i]);
	}
	return 0;
}

static void print_integer(struct buffer *page, const struct gpu_values *gpu, const char *name,
                          int64_t value)
{
	if (value >= 0)
		buffer_print(page, "%s{UUID=\"%s\"} %" PRId64 "\n", name, gpu->uuid, value);
}

static void print_number(struct buffer *page, const struct gpu_values *gpu, const char *name,
                         double value)
{
	if (value >= 0)
		buffer_print(page, "%s{UUID=\"%s\"} %.6f\n", name, gpu->uuid, value);
}

static void print_page(struct buffer *page, const struct gathering *gathering)
{
	buffer_clear(page);
	buffer_text(page, "");
	for (size_t i = 0; i < gathering->count; i++) {
		const struct gpu_values *gpu = &gathering->gpus[i];
		if (!gpu->uuid[0])
			continue;
		print_integer(page, gpu, "DCGM_FI_DEV_XID_ERRORS", gpu->xid);
		print_integer(page, gpu, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", gpu->double_bit);
		print_integer(page, gpu, "DCGM_FI_DEV_ROW_REMAP_FAILURE", gpu->remap_failure);
		print_number(page, gpu, "DCGM_FI_PROF_SM_ACTIVE", gpu->sm_active);
		print_number(page, gpu, "DCGM_FI_PROF_DRAM_ACTIVE", gpu->dram_active);
	}
}

static bool dcgm_engine_gather(struct dcgm_engine *engine, struct gathering *gathering,
                               struct error *error)
{
	int code = engine->call.latest(engine->handle, ALL_GPUS, engine->plain, dcgm_engine_take,
	                               gathering);

	if (code == DCGM_OK && engine->profiles)
		code = engine->call.latest(engine->handle, ALL_GPUS, engine->profiling,
		                           dcgm_engine_take, gathering);
	if (gathering->strange)
		return error_set(
		    error, ERROR_UNAVAILABLE,
		    "DCGM's library is of a version that is not understood: its values "
		    "have another layout");
	if (code != DCGM_OK)
		return error_set(error, ERROR_UNAVAILABLE, "DCGM tells no values: it says %d",
		                 code);
	return true;
}

bool dcgm_engine_page(struct dcgm_engine *engine, struct buffer *page, struct error *error)
{
	struct gathering *gathering = NEW(struct gathering);
	bool good = (engine->connected || dcgm_engine_connect(engine, error)) &&
	            dcgm_engine_gather(engine, gathering, error);

	if (good)
		print_page(page, gathering);
	else
		disconnect(engine);
	free(gathering);
	return good;
}
