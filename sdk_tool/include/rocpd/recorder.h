/* The recorder: what a program or a tool calls to have events written to a rocpd database of its process.
 *
 * There is one recorder per process. It writes nothing until the first event, then one file in the folder
 * ROCPD_OUTPUT_PATH. After fork() the child records into a file of its own.
 *
 * Times are nanoseconds of CLOCK_BOOTTIME (rocpd_now). Texts are UTF-8 and need no terminating zero. Functions that
 * return int give 0 when the event was taken and -1 when it was not: recording is off, the recorder has been closed,
 * or the event was lost to a full buffer (then it is counted in the file).
 */
#ifndef ROCPD_RECORDER_H
#define ROCPD_RECORDER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ROCPD_API __attribute__((visibility("default")))

/* A text that was handed in once and is then named by number; 0 is no text. */
typedef uint32_t rocpd_text_t;

/* ---- switching ---- */

ROCPD_API int rocpd_start(void);     /* record from now on; starting twice changes nothing */
ROCPD_API int rocpd_stop(void);      /* pause; open ranges end when they end. Stopping too often changes nothing */
ROCPD_API int rocpd_listen(void);    /* let `rocpd control` reach the process before its first event */
ROCPD_API int rocpd_flush(void);     /* return when everything taken so far is in the file */
ROCPD_API void rocpd_finalize(void); /* close the file; later events are not taken. Safe to call again, from any thread */

typedef struct {
    int recording;     /* 1: events are taken */
    int failed;        /* 1: the file could not be written; the reason was told on stderr */
    int closed;        /* 1: finalized */
    uint64_t written;  /* events in the file */
    uint64_t lost;     /* events that found no room */
    char file[1024];   /* path, empty before the first flush */
} rocpd_status_t;

ROCPD_API void rocpd_status(rocpd_status_t* status);

ROCPD_API uint64_t rocpd_now(void); /* [ns] */

/* ---- ranges and marks of the calling thread ---- */

ROCPD_API int rocpd_range_push(const char* text, size_t size);
ROCPD_API int rocpd_range_pop(void);
ROCPD_API uint64_t rocpd_range_begin(const char* text, size_t size); /* may end in another thread */
ROCPD_API int rocpd_range_end(uint64_t id);
ROCPD_API int rocpd_mark(const char* text, size_t size);

/* ---- what events refer to; call before the first event that does ---- */

ROCPD_API rocpd_text_t rocpd_text(const char* text, size_t size);

ROCPD_API void rocpd_name_thread(const char* name, size_t size); /* the calling thread */

typedef struct {
    int64_t id;             /* as events name it */
    const char* type;       /* "CPU", "GPU" */
    int64_t absolute_index; /* index of the hardware node */
    int64_t logical_index;
    int64_t type_index;
    uint64_t uuid;
    const char* name;
    const char* model_name;
    const char* vendor_name;
    const char* product_name;
    const char* user_name;
    const char* extdata; /* JSON object or NULL */
} rocpd_agent_t;

typedef struct {
    int64_t id;
    int64_t agent_id;
    const char* uri;
    uint64_t load_base;
    uint64_t load_size;
    uint64_t load_delta;
    const char* storage_type; /* "FILE", "MEMORY" or NULL */
    const char* extdata;
} rocpd_code_object_t;

typedef struct {
    int64_t id;
    int64_t code_object_id;
    const char* kernel_name;
    const char* display_name;
    uint64_t kernel_object;
    uint32_t kernarg_segment_size;
    uint32_t kernarg_segment_alignment;
    uint32_t group_segment_size;
    uint32_t private_segment_size;
    uint32_t sgpr_count;
    uint32_t arch_vgpr_count;
    uint32_t accum_vgpr_count;
    const char* extdata;
} rocpd_kernel_symbol_t;

typedef struct {
    int64_t id;
    int64_t agent_id; /* -1: none */
    const char* target_arch;
    const char* name;
    const char* description;
    const char* component;
    const char* units;
    const char* value_type; /* "ABS", "ACCUM", "RELATIVE" or NULL */
    const char* block;
    const char* expression;
    int is_constant;
    int is_derived;
} rocpd_counter_t;

ROCPD_API void rocpd_register_agent(const rocpd_agent_t* agent);
ROCPD_API void rocpd_register_queue(int64_t id, const char* name);
ROCPD_API void rocpd_register_stream(int64_t id, const char* name);
ROCPD_API void rocpd_register_code_object(const rocpd_code_object_t* object);
ROCPD_API void rocpd_register_kernel_symbol(const rocpd_kernel_symbol_t* symbol);
ROCPD_API void rocpd_register_counter(const rocpd_counter_t* counter);
ROCPD_API int64_t rocpd_register_track(const char* name);  /* a time line of samples; gives its id */
ROCPD_API void rocpd_note(const char* tag, const char* value); /* a row of rocpd_metadata */

/* ---- events ---- */

typedef struct {
    rocpd_text_t category;    /* such as HIP_RUNTIME_API */
    uint32_t tid;             /* OS thread, 0: the calling one */
    uint64_t stack_id;        /* internal correlation id: equal for a call and the GPU work it launched. 0: none */
    uint64_t parent_stack_id; /* that of the enclosing call, 0: none */
    uint64_t correlation_id;  /* external, set by the user */
    const char* message;      /* stored as {"message": …}, or NULL */
    size_t message_size;
    rocpd_text_t message_text; /* a message that was handed in before, instead of `message` */
} rocpd_event_t;

typedef struct {
    rocpd_text_t type;
    rocpd_text_t name;
    const char* value;
    size_t value_size;
} rocpd_argument_t;

typedef struct {
    rocpd_event_t event;
    rocpd_text_t name; /* function */
    uint64_t start;    /* [ns] */
    uint64_t end;      /* [ns] */
    const rocpd_argument_t* arguments;
    size_t argument_count;
} rocpd_region_t;

typedef struct {
    rocpd_event_t event;
    int64_t agent_id;
    int64_t kernel_id;
    int64_t dispatch_id;
    int64_t queue_id;
    int64_t stream_id;
    uint64_t start;
    uint64_t end;
    uint32_t private_segment_size; /* [bytes] */
    uint32_t group_segment_size;   /* [bytes] */
    uint32_t workgroup_size[3];    /* work-items */
    uint32_t grid_size[3];         /* work-items */
    rocpd_text_t region_name;      /* text of the enclosing marker */
} rocpd_dispatch_t;

typedef struct {
    rocpd_event_t event;
    rocpd_text_t name; /* direction, such as MEMORY_COPY_HOST_TO_DEVICE */
    rocpd_text_t region_name;
    uint64_t start;
    uint64_t end;
    int64_t dst_agent_id; /* -1: unknown */
    int64_t src_agent_id; /* -1: unknown */
    uint64_t dst_address;
    uint64_t src_address;
    uint64_t size;    /* [bytes] */
    int64_t queue_id; /* -1: none */
    int64_t stream_id;
} rocpd_copy_t;

typedef enum { ROCPD_ALLOC, ROCPD_FREE, ROCPD_REALLOC, ROCPD_RECLAIM } rocpd_allocation_type_t;
typedef enum { ROCPD_REAL, ROCPD_VIRTUAL, ROCPD_SCRATCH } rocpd_allocation_level_t;

typedef struct {
    rocpd_event_t event; /* its message is stored as the text of {"flags": …} */
    rocpd_allocation_type_t type;
    rocpd_allocation_level_t level;
    uint64_t start;
    uint64_t end;
    int64_t agent_id; /* -1: unknown */
    uint64_t address;
    uint64_t size;    /* [bytes] */
    int64_t queue_id; /* -1: none */
    int64_t stream_id;
} rocpd_allocation_t;

ROCPD_API int rocpd_region(const rocpd_region_t* region);
ROCPD_API int rocpd_dispatch(const rocpd_dispatch_t* dispatch);
ROCPD_API int rocpd_copy(const rocpd_copy_t* copy);
ROCPD_API int rocpd_allocation(const rocpd_allocation_t* allocation);
/* A point on a track; counter -1 has no value. */
ROCPD_API int rocpd_sample(int64_t track, uint64_t time, int64_t counter, double value);
/* The value of a counter during a dispatch, which may come before or after the dispatch itself. */
ROCPD_API int rocpd_counter_value(int64_t dispatch_id, int64_t counter, double value);

/* Called, from the thread that flushes or finalizes, before that is done: a tool hands over what it still holds. Not
 * called when a signal ends the process. */
ROCPD_API void rocpd_before_flush(void (*hand_over)(void));

/* Stack ids that push, begin and mark give themselves start here; a tool that brings its own keeps below. */
ROCPD_API void rocpd_own_stack_ids_from(uint64_t first);

#ifdef __cplusplus
}
#endif

#endif
