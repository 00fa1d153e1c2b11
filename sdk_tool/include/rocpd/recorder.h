/* The recorder: what a program or a tool calls to record events into a rocpd database of its process.
 *
 * There is one recorder per process. It writes nothing until the first event, then one file in the folder
 * ROCPD_OUTPUT_PATH. After fork() the child records into a file of its own.
 *
 * Times are nanoseconds of CLOCK_BOOTTIME (rocpd_now), sizes are bytes. Texts with a size are UTF-8 and need no
 * terminating zero; other texts are zero-terminated, and NULL stands for no text. Bytes that are not UTF-8 are stored
 * as
 * \xff. Texts over 32 KiB are cut, and the cut is counted in the file. All arguments are copied before a function
 * returns.
 *
 * Functions that return int return 0 when the event was taken and -1 when it was not: recording is off, the recorder
 * has been closed, or the event was lost to a full buffer (then it is counted in the file). All may be called from any
 * thread. Recording an event takes no lock and allocates nothing but the thread's buffer at its first event.
 */
#ifndef ROCPD_RECORDER_H
#define ROCPD_RECORDER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ROCPD_API __attribute__((visibility("default")))

/* The number of a text that was passed in once; 0 stands for no text. */
typedef uint32_t rocpd_text_t;

/* ---- switching ---- */

/* Starts recording. Idempotent. */
ROCPD_API int rocpd_start(void);

/* Pauses. Ranges that are open keep their true end; those that start while recording is off are not recorded.
 * Idempotent. */
ROCPD_API int rocpd_stop(void);

/* Lets `rocpd control` reach the process before its first event. */
ROCPD_API int rocpd_listen(void);

/* Does what ROCPD_START says: rocpd_start, or with ROCPD_START=0 only rocpd_listen. For libraries that are loaded to
 * record a program. */
ROCPD_API int rocpd_start_as_configured(void);

/* Returns when everything taken so far is in the file: 0, or -1 when the file cannot be written. */
ROCPD_API int rocpd_flush(void);

/* Closes the file; later events are not taken. Idempotent; safe in several threads at once and in exit handlers. */
ROCPD_API void rocpd_finalize(void);

typedef struct {
    int recording;    /* 1: events are taken */
    int failed;       /* 1: the file could not be written; the reason is on stderr */
    int closed;       /* 1: finalized */
    uint64_t written; /* events in the file */
    uint64_t lost;    /* events that found no room */
    char file[1024];  /* path, empty before the first flush */
} rocpd_status_t;

/* Sets the status of this process's recorder, as of its last commit. */
ROCPD_API void rocpd_status(rocpd_status_t* status);

/* The recorder's clock [ns]. */
ROCPD_API uint64_t rocpd_now(void);

/* ---- ranges and marks of the calling thread ---- */

/* Starts a range inside the thread's innermost open one. Every push needs its pop, whether it was taken or not. */
ROCPD_API int rocpd_range_push(const char* text, size_t size);

/* Ends the thread's innermost range. */
ROCPD_API int rocpd_range_pop(void);

/* Starts a range that any thread may end. Returns its number for rocpd_range_end, 0 when it was not taken. */
ROCPD_API uint64_t rocpd_range_begin(const char* text, size_t size);

/* A range as a tool knows it. Zeros leave the choice to the recorder. */
typedef struct {
    const char* text;
    size_t text_size;         /* [bytes] */
    rocpd_text_t function;    /* name of the region, such as roctxThreadRangeA */
    uint64_t stack_id;        /* 0: the recorder assigns one, with the enclosing range as parent */
    uint64_t parent_stack_id; /* of the enclosing range or call */
    uint64_t correlation_id;  /* external; that of rocpd_correlate when the recorder assigns the stack id */
    int of_thread;            /* 1: belongs to the calling thread and ends with it at the latest */
} rocpd_range_t;

/* As rocpd_range_begin. */
ROCPD_API uint64_t rocpd_range_open(const rocpd_range_t* range);

/* As rocpd_mark, of a mark as a tool knows it. */
ROCPD_API int rocpd_mark_as(const rocpd_range_t* mark);

/* Ends a range by its number. */
ROCPD_API int rocpd_range_end(uint64_t id);

/* Records a point in time. */
ROCPD_API int rocpd_mark(const char* text, size_t size);

/* Puts an external correlation id, such as the number of a request or a training step, on the ranges and marks that the
 * calling thread records from now on and on the GPU work that it launches; 0 is none. */
ROCPD_API int rocpd_correlate(uint64_t id);

/* Names the calling thread; taken while recording is off too. */
ROCPD_API void rocpd_name_thread(const char* name, size_t size);

/* ---- what has begun and not ended: in a small file beside the database, which survives SIGKILL ---- */

/* Names a communicator, or one direction between two of its members, by a number that is the same in all members.
 * `size` is ROCPD_SIZE_UNKNOWN where it is not known, `member` which one this process is, -1 where it is not known.
 * Returns its number for the functions below, the same when it is named again; -1: no room, or recording is off. */
#define ROCPD_SIZE_UNKNOWN UINT32_MAX
ROCPD_API int rocpd_group(uint64_t id, uint32_t size, int member, const char* name);

/* The process calls the next operation of a group, whose number in it is returned, from 1; all up to that one are over.
 */
ROCPD_API uint64_t rocpd_group_enter(int group, const char* operation, uint64_t bytes);
ROCPD_API void rocpd_group_leave(int group, uint64_t number, const char* operation);

/* The process has left the group: nothing of it is to come. `aborted`: it did not wait for what had begun. */
ROCPD_API void rocpd_group_close(int group, int aborted);

/* The calling thread is in a call until its end; about a group by its id, 0: about none. Of nested calls the outermost
 * counts: a call inside of another one is left out. */
ROCPD_API void rocpd_call_begin(const char* call, uint64_t group_id);
ROCPD_API void rocpd_call_end(void);

/* ---- what events refer to; call before the first event that does ---- */

/* Returns the number of a text. Takes a lock: ask once, before the events. */
ROCPD_API rocpd_text_t rocpd_text(const char* text, size_t size);

typedef struct {
    int64_t id;               /* as events name it */
    const char* type;         /* "CPU", "GPU" or NULL */
    int64_t absolute_index;   /* of the hardware node */
    int64_t logical_index;    /* among the agents that the process sees */
    int64_t type_index;       /* among those of its type */
    uint64_t uuid;            /* hardware id */
    const char* name;         /* architecture, such as gfx942 */
    const char* model_name;   /* as the driver names it */
    const char* vendor_name;
    const char* product_name; /* such as AMD Instinct MI300X */
    const char* user_name;    /* readable name */
    const char* extdata;      /* JSON object or NULL */
} rocpd_agent_t;

typedef struct {
    int64_t id;
    int64_t agent_id;         /* it was loaded for; -1: unknown */
    const char* uri;          /* where it came from */
    uint64_t load_base;       /* address */
    uint64_t load_size;       /* [bytes] */
    uint64_t load_delta;      /* loaded minus linked address [bytes] */
    const char* storage_type; /* "FILE", "MEMORY" or NULL */
    const char* extdata;      /* JSON object or NULL */
} rocpd_code_object_t;

typedef struct {
    int64_t id;
    int64_t code_object_id;
    const char* kernel_name;            /* mangled */
    const char* display_name;           /* readable name */
    uint64_t kernel_object;             /* address of the kernel descriptor */
    uint32_t kernarg_segment_size;      /* [bytes] */
    uint32_t kernarg_segment_alignment; /* [bytes] */
    uint32_t group_segment_size;        /* static LDS per work-group [bytes] */
    uint32_t private_segment_size;      /* static scratch per work-item [bytes] */
    uint32_t sgpr_count;                /* per wave */
    uint32_t arch_vgpr_count;           /* per work-item */
    uint32_t accum_vgpr_count;          /* per work-item */
    const char* extdata;                /* JSON object or NULL */
} rocpd_kernel_symbol_t;

typedef struct {
    int64_t id;
    int64_t agent_id;        /* -1: none */
    const char* target_arch; /* "CPU", "GPU" or NULL */
    const char* name;
    const char* description;
    const char* component;  /* software that reads it */
    const char* units;      /* of its values, such as bytes */
    const char* value_type; /* "ABS", "ACCUM", "RELATIVE" or NULL */
    const char* block;      /* of the hardware */
    const char* expression; /* of a derived counter */
    int is_constant;
    int is_derived;
    const char* extdata; /* JSON object or NULL */
} rocpd_counter_t;

/* A later registration of an id replaces the earlier one. Events that name an unregistered id are kept, and the id gets
 * a plain name. */
ROCPD_API void rocpd_register_agent(const rocpd_agent_t* agent);
ROCPD_API void rocpd_register_queue(int64_t id, const char* name);
ROCPD_API void rocpd_register_stream(int64_t id, const char* name);
ROCPD_API void rocpd_register_code_object(const rocpd_code_object_t* object);
ROCPD_API void rocpd_register_kernel_symbol(const rocpd_kernel_symbol_t* symbol);
ROCPD_API void rocpd_register_counter(const rocpd_counter_t* counter);

/* Makes a track of samples and returns its id. */
ROCPD_API int64_t rocpd_register_track(const char* name);

/* Sets a tag of rocpd_metadata. The file's own tags (guid, uuid, schema_version…, recorder…) stay as they are. */
ROCPD_API void rocpd_note(const char* tag, const char* value);

/* ---- events ---- */

typedef struct {
    rocpd_text_t category;     /* such as HIP_RUNTIME_API */
    uint32_t tid;              /* OS thread, 0: the calling one */
    uint64_t stack_id;         /* internal correlation id: equal for a call and the GPU work it launched. 0: none */
    uint64_t parent_stack_id;  /* that of the enclosing call, 0: none; of GPU work its own stack_id */
    uint64_t correlation_id;   /* external, set by the user */
    const char* message;       /* stored as {"message": …}, or NULL */
    size_t message_size;       /* [bytes] */
    rocpd_text_t message_text; /* number of a message, instead of `message` */
} rocpd_event_t;

typedef struct {
    rocpd_text_t type;
    rocpd_text_t name;
    const char* value;
    size_t value_size; /* [bytes] */
} rocpd_argument_t;

/* A call. */
typedef struct {
    rocpd_event_t event;
    rocpd_text_t name; /* function */
    uint64_t start;    /* [ns] */
    uint64_t end;      /* [ns] */
    const rocpd_argument_t* arguments;
    size_t argument_count;
} rocpd_region_t;

/* A kernel's run. */
typedef struct {
    rocpd_event_t event;
    int64_t agent_id;
    int64_t kernel_id;
    int64_t dispatch_id;
    int64_t queue_id;
    int64_t stream_id;
    uint64_t start;                /* [ns] */
    uint64_t end;                  /* [ns] */
    uint32_t private_segment_size; /* [bytes] */
    uint32_t group_segment_size;   /* [bytes] */
    uint32_t workgroup_size[3];    /* work-items */
    uint32_t grid_size[3];         /* work-items */
    rocpd_text_t region_name;      /* text of the enclosing marker */
    uint64_t graph_exec_id;        /* of the graph that it is a node of, 0: none */
    uint64_t graph_node_id;        /* place in the graph, in the order of launch */
} rocpd_dispatch_t;

typedef struct {
    rocpd_event_t event;
    rocpd_text_t name;        /* direction, such as MEMORY_COPY_HOST_TO_DEVICE */
    rocpd_text_t region_name; /* text of the enclosing marker */
    uint64_t start;           /* [ns] */
    uint64_t end;             /* [ns] */
    int64_t dst_agent_id;     /* -1: unknown */
    int64_t src_agent_id;     /* -1: unknown */
    uint64_t dst_address;
    uint64_t src_address;
    uint64_t size;     /* [bytes] */
    int64_t queue_id;  /* -1: none */
    int64_t stream_id; /* -1: none */
    uint64_t graph_exec_id;
    uint64_t graph_node_id;
} rocpd_copy_t;

/* A launch of a graph. */
typedef struct {
    rocpd_event_t event;
    int64_t agent_id; /* -1: unknown */
    int64_t queue_id; /* -1: none */
    uint64_t start;   /* [ns] */
    uint64_t end;     /* [ns] */
    uint64_t graph_exec_id;
    uint64_t kernel_dispatch_count;
} rocpd_graph_launch_t;

typedef enum { ROCPD_ALLOC, ROCPD_FREE, ROCPD_REALLOC, ROCPD_RECLAIM } rocpd_allocation_type_t;
typedef enum { ROCPD_REAL, ROCPD_VIRTUAL, ROCPD_SCRATCH } rocpd_allocation_level_t;

typedef struct {
    rocpd_event_t event; /* its message is stored as the text of {"flags": …} */
    rocpd_allocation_type_t type;
    rocpd_allocation_level_t level;
    uint64_t start;   /* [ns] */
    uint64_t end;     /* [ns] */
    int64_t agent_id; /* -1: unknown */
    uint64_t address;
    uint64_t size;     /* [bytes] */
    int64_t queue_id;  /* -1: none */
    int64_t stream_id; /* -1: none */
} rocpd_allocation_t;

ROCPD_API int rocpd_region(const rocpd_region_t* region);
ROCPD_API int rocpd_dispatch(const rocpd_dispatch_t* dispatch);
ROCPD_API int rocpd_copy(const rocpd_copy_t* copy);
ROCPD_API int rocpd_allocation(const rocpd_allocation_t* allocation);

/* Has files hold graphs: then they are of version 3.0.2 of the schema, else of 3.0.0, which leaves graphs out. To be
 * called before the first event. */
ROCPD_API void rocpd_use_graphs(void);
ROCPD_API int rocpd_graph_launch(const rocpd_graph_launch_t* launch);

/* A point on a track at `time` [ns], in the counter's unit; counter -1 has no value. */
ROCPD_API int rocpd_sample(int64_t track, uint64_t time, int64_t counter, double value);

/* The value of a counter during a dispatch, which may come before or after the dispatch itself. */
ROCPD_API int rocpd_counter_value(int64_t dispatch_id, int64_t counter, double value);

/* ---- for tools that hold events back ---- */

/* `flush_pending` is called before a flush, a start, a stop and the end, by the thread that asks for it, which may be
 * in a signal handler: it must return soon, whatever was interrupted. */
ROCPD_API void rocpd_before_flush(void (*flush_pending)(void));

/* Events of the program will come later, from a thread of the tool: the signals that end the process are to find the
 * recorder ready. To be called in a thread of the program, before its first event. Returns 0, or -1 when no thread can
 * be started. */
ROCPD_API int rocpd_expect_events(void);

/* The most that a killed process may lose [ms], as ROCPD_FLUSH_MS says. */
ROCPD_API uint32_t rocpd_flush_ms(void);

/* The number that the calling thread set last by rocpd_correlate, 0 without one. */
ROCPD_API uint64_t rocpd_correlation(void);

/* Whether samples of call stacks interrupt threads, so that each one needs a stack for signals. */
ROCPD_API int rocpd_needs_signal_stacks(void);

/* The recorder's own stack ids start here; a tool that brings its own ids keeps below. */
ROCPD_API void rocpd_own_stack_ids_from(uint64_t first);

#ifdef __cplusplus
}
#endif

#endif
