-- The tables of schema 3.0.2, generated from rocpd/schema/sql/tables.
CREATE TABLE "rocpd_metadata_UUID" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- row id
    "tag" TEXT NOT NULL,                             -- name of the fact: schema_version, schema_version_major, uuid, guid …
    "value" TEXT NOT NULL                            -- its value as text
);
CREATE TABLE "rocpd_string_UUID" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- string id, local to the GUID
    "guid" TEXT DEFAULT 'GUID' NOT NULL,         -- GUID of the process that wrote the row
    "string" TEXT NOT NULL UNIQUE ON CONFLICT ABORT  -- the text
);
CREATE TABLE "rocpd_info_node_UUID" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- node id (rocprofv3: a hash)
    "guid" TEXT DEFAULT 'GUID' NOT NULL,         -- GUID of the process that wrote the row
    "hash" BIGINT NOT NULL UNIQUE,                   -- hash of machine_id
    "machine_id" TEXT NOT NULL UNIQUE,               -- /etc/machine-id: equal for all containers of one machine
    "system_name" TEXT,                              -- uname: operating system
    "hostname" TEXT,                                 -- uname: host name, often a container id
    "release" TEXT,                                  -- uname: kernel release
    "version" TEXT,                                  -- uname: kernel version
    "hardware_name" TEXT,                            -- uname: machine hardware
    "domain_name" TEXT                               -- uname: NIS domain
);
CREATE TABLE "rocpd_info_process_UUID" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- process id (rocprofv3: the OS pid)
    "guid" TEXT DEFAULT 'GUID' NOT NULL,         -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                          -- node the process ran on
    "ppid" INTEGER,                                  -- OS pid of the parent
    "pid" INTEGER NOT NULL,                          -- OS pid
    "init" BIGINT,                                   -- when the profiler was initialised [ns]
    "fini" BIGINT,                                   -- when the profiler was finalised [ns]
    "start" BIGINT,                                  -- when the process started [ns]
    "end" BIGINT,                                    -- when the process ended [ns]
    "command" TEXT,                                  -- command line
    "environment" JSONB DEFAULT '{}' NOT NULL,       -- environment variables as one JSON object; may hold secrets
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- the profiler's configuration; MPI rank and size where the producer knows them
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node_UUID" ("id") ON UPDATE CASCADE
);
CREATE TABLE "rocpd_info_thread_UUID" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- thread id (rocprofv3: the OS tid)
    "guid" TEXT DEFAULT 'GUID' NOT NULL,         -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                          -- node the process ran on
    "ppid" INTEGER,                                  -- OS pid of the parent process
    "pid" INTEGER NOT NULL,                          -- process, by its id in rocpd_info_process (rocprofv3: the OS pid)
    "tid" INTEGER NOT NULL,                          -- OS thread id
    "name" TEXT,                                     -- thread name
    "start" BIGINT,                                  -- first seen [ns]
    "end" BIGINT,                                    -- last seen [ns]
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- further facts
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process_UUID" ("id") ON UPDATE CASCADE
);
CREATE TABLE "rocpd_info_agent_UUID" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,     -- agent id (rocprofv3: absolute_index)
    "guid" TEXT DEFAULT 'GUID' NOT NULL,             -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                              -- node the process ran on
    "pid" INTEGER NOT NULL,                              -- process, by its id in rocpd_info_process (rocprofv3: the OS pid)
    "type" TEXT CHECK ("type" IN ('CPU', 'GPU', 'NIC')), -- kind of agent; NIC since 3.0.1
    "absolute_index" INTEGER,                            -- index of the hardware node
    "logical_index" INTEGER,                             -- index among the agents visible to the process
    "type_index" INTEGER,                                -- index among the visible agents of its type
    "uuid" INTEGER,                                      -- hardware id
    "name" TEXT,                                         -- architecture, such as gfx942
    "model_name" TEXT,                                   -- model as the driver names it
    "vendor_name" TEXT,                                  -- vendor
    "product_name" TEXT,                                 -- marketing name, such as AMD Instinct MI300X
    "user_name" TEXT,                                    -- readable name
    "extdata" JSONB DEFAULT '{}' NOT NULL,               -- full hardware description: cu_count, wave_front_size, num_xcc, mem_banks …
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process_UUID" ("id") ON UPDATE CASCADE
);
CREATE TABLE "rocpd_info_queue_UUID" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- queue id: the handle of the runtime, 0 is the default queue
    "guid" TEXT DEFAULT 'GUID' NOT NULL,         -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                          -- node the process ran on
    "pid" INTEGER NOT NULL,                          -- process, by its id in rocpd_info_process (rocprofv3: the OS pid)
    "name" TEXT,                                     -- queue name
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- further facts
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process_UUID" ("id") ON UPDATE CASCADE
);
CREATE TABLE "rocpd_info_stream_UUID" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- stream id: the handle of the runtime, 0 is the default stream
    "guid" TEXT DEFAULT 'GUID' NOT NULL,         -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                          -- node the process ran on
    "pid" INTEGER NOT NULL,                          -- process, by its id in rocpd_info_process (rocprofv3: the OS pid)
    "name" TEXT,                                     -- stream name
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- further facts
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process_UUID" ("id") ON UPDATE CASCADE
);
CREATE TABLE "rocpd_info_pmc_UUID" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,                     -- counter id
    "guid" TEXT DEFAULT 'GUID' NOT NULL,                             -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                                              -- node the process ran on
    "pid" INTEGER NOT NULL,                                              -- process, by its id in rocpd_info_process (rocprofv3: the OS pid)
    "agent_id" INTEGER,                                                  -- agent that counts
    "target_arch" TEXT CHECK ("target_arch" IN ('CPU', 'GPU', 'NIC')),   -- kind of agent; NIC since 3.0.1
    "event_code" INT,                                                    -- hardware event number
    "instance_id" INTEGER,                                               -- instance of the hardware block
    "name" TEXT NOT NULL,                                                -- counter name
    "symbol" TEXT NOT NULL,                                              -- short name
    "description" TEXT,                                                  -- the counted events
    "long_description" TEXT DEFAULT '',                                  -- the counted events, at length
    "component" TEXT,                                                    -- software component that reads it
    "units" TEXT DEFAULT '',                                             -- unit of the value
    "value_type" TEXT CHECK ("value_type" IN ('ABS', 'ACCUM', 'RELATIVE')), -- absolute, accumulated or relative value
    "block" TEXT,                                                        -- hardware block
    "expression" TEXT,                                                   -- formula of a derived counter
    "is_constant" INTEGER,                                               -- 1: a constant of the device
    "is_derived" INTEGER,                                                -- 1: computed from other counters
    "extdata" JSONB DEFAULT '{}' NOT NULL,                               -- further facts
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("agent_id") REFERENCES "rocpd_info_agent_UUID" ("id") ON UPDATE CASCADE
);
CREATE TABLE "rocpd_info_code_object_UUID" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,                  -- code object id
    "guid" TEXT DEFAULT 'GUID' NOT NULL,                          -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                                           -- node the process ran on
    "pid" INTEGER NOT NULL,                                           -- process, by its id in rocpd_info_process (rocprofv3: the OS pid)
    "agent_id" INTEGER,                                               -- agent it was loaded for
    "uri" TEXT,                                                       -- where it came from
    "load_base" BIGINT,                                               -- address it was loaded at
    "load_size" BIGINT,                                               -- size in memory [bytes]
    "load_delta" BIGINT,                                              -- difference between loaded and linked addresses [bytes]
    "storage_type" TEXT CHECK ("storage_type" IN ('FILE', 'MEMORY')), -- loaded from a file or from memory
    "extdata" JSONB DEFAULT '{}' NOT NULL,                            -- size, memory_base, memory_size, storage_type of the runtime
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("agent_id") REFERENCES "rocpd_info_agent_UUID" ("id") ON UPDATE CASCADE
);
CREATE TABLE "rocpd_info_kernel_symbol_UUID" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- kernel id
    "guid" TEXT DEFAULT 'GUID' NOT NULL,         -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                          -- node the process ran on
    "pid" INTEGER NOT NULL,                          -- process, by its id in rocpd_info_process (rocprofv3: the OS pid)
    "code_object_id" INTEGER NOT NULL,               -- code object that holds it
    "kernel_name" TEXT,                              -- mangled name with .kd
    "display_name" TEXT,                             -- readable name
    "kernel_object" INTEGER,                         -- address of the kernel descriptor
    "kernarg_segment_size" INTEGER,                  -- kernel arguments [bytes]
    "kernarg_segment_alignment" INTEGER,             -- alignment of the arguments [bytes]
    "group_segment_size" INTEGER,                    -- static LDS per work-group [bytes]
    "private_segment_size" INTEGER,                  -- static scratch per work-item [bytes]
    "sgpr_count" INTEGER,                            -- scalar registers per wave
    "arch_vgpr_count" INTEGER,                       -- vector registers per work-item
    "accum_vgpr_count" INTEGER,                      -- accumulation registers per work-item
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- formatted_kernel_name, demangled_kernel_name, truncated_kernel_name, kernel_address
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("code_object_id") REFERENCES "rocpd_info_code_object_UUID" ("id") ON UPDATE CASCADE
);
CREATE TABLE "rocpd_track_UUID" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- track id
    "guid" TEXT DEFAULT 'GUID' NOT NULL,         -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                          -- node the process ran on
    "pid" INTEGER,                                   -- process, if the track belongs to one
    "tid" INTEGER,                                   -- thread, if the track belongs to one
    "name_id" INTEGER,                               -- name of the track
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- further facts
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("tid") REFERENCES "rocpd_info_thread_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("name_id") REFERENCES "rocpd_string_UUID" ("id") ON UPDATE CASCADE
);
CREATE TABLE "rocpd_event_UUID" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- event id
    "guid" TEXT DEFAULT 'GUID' NOT NULL,         -- GUID of the process that wrote the row
    "category_id" INTEGER,                           -- domain: KERNEL_DISPATCH, HIP_RUNTIME_API, MARKER_CORE_API …
    "stack_id" INTEGER,                              -- internal correlation id; equal for an API call and the GPU work it launched
    "parent_stack_id" INTEGER,                       -- stack_id of the enclosing call
    "correlation_id" INTEGER,                        -- external correlation id, set by the user
    "call_stack" JSONB DEFAULT '{}' NOT NULL,        -- call stack
    "line_info" JSONB DEFAULT '{}' NOT NULL,         -- source line
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- message of a marker, further facts
    FOREIGN KEY ("category_id") REFERENCES "rocpd_string_UUID" ("id") ON UPDATE CASCADE
);
CREATE TABLE "rocpd_arg_UUID" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- argument id
    "guid" TEXT DEFAULT 'GUID' NOT NULL,         -- GUID of the process that wrote the row
    "event_id" INTEGER NOT NULL,                     -- event it belongs to
    "position" INTEGER NOT NULL,                     -- position in the argument list, from 0
    "type" TEXT NOT NULL,                            -- declared type
    "name" TEXT NOT NULL,                            -- parameter name
    "value" TEXT,                                    -- value as text
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- further facts
    FOREIGN KEY ("event_id") REFERENCES "rocpd_event_UUID" ("id") ON UPDATE CASCADE
);
CREATE TABLE "rocpd_pmc_event_UUID" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- value id
    "guid" TEXT DEFAULT 'GUID' NOT NULL,         -- GUID of the process that wrote the row
    "event_id" INTEGER,                              -- event it was measured for
    "pmc_id" INTEGER NOT NULL,                       -- counter
    "value" REAL DEFAULT 0.0,                        -- value, in the unit of the counter
    "extdata" JSONB DEFAULT '{}',                    -- further facts
    FOREIGN KEY ("event_id") REFERENCES "rocpd_event_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pmc_id") REFERENCES "rocpd_info_pmc_UUID" ("id") ON UPDATE CASCADE
);
CREATE TABLE "rocpd_region_UUID" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- region id (rocprofv3: the internal correlation id)
    "guid" TEXT DEFAULT 'GUID' NOT NULL,         -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                          -- node the process ran on
    "pid" INTEGER NOT NULL,                          -- process, by its id in rocpd_info_process (rocprofv3: the OS pid)
    "tid" INTEGER NOT NULL,                          -- thread it ran on
    "start" BIGINT NOT NULL,                         -- start [ns]
    "end" BIGINT NOT NULL,                           -- end [ns]
    "name_id" INTEGER NOT NULL,                      -- function name
    "event_id" INTEGER,                              -- event that holds category, stack and correlation ids
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- further facts
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("tid") REFERENCES "rocpd_info_thread_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("name_id") REFERENCES "rocpd_string_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("event_id") REFERENCES "rocpd_event_UUID" ("id") ON UPDATE CASCADE
);
CREATE TABLE "rocpd_sample_UUID" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- sample id
    "guid" TEXT DEFAULT 'GUID' NOT NULL,         -- GUID of the process that wrote the row
    "track_id" INTEGER NOT NULL,                     -- track it lies on
    "timestamp" BIGINT NOT NULL,                     -- when [ns]
    "event_id" INTEGER,                              -- event that holds category, stack and correlation ids
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- further facts
    FOREIGN KEY ("track_id") REFERENCES "rocpd_track_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("event_id") REFERENCES "rocpd_event_UUID" ("id") ON UPDATE CASCADE
);
CREATE TABLE "rocpd_kernel_dispatch_UUID" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- dispatch row id
    "guid" TEXT DEFAULT 'GUID' NOT NULL,         -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                          -- node the process ran on
    "pid" INTEGER NOT NULL,                          -- process, by its id in rocpd_info_process (rocprofv3: the OS pid)
    "tid" INTEGER,                                   -- thread that launched it
    "agent_id" INTEGER NOT NULL,                     -- agent it ran on
    "kernel_id" INTEGER NOT NULL,                    -- kernel
    "dispatch_id" INTEGER NOT NULL,                  -- sequence number of the dispatch in its process
    "queue_id" INTEGER NOT NULL,                     -- HSA queue
    "stream_id" INTEGER NOT NULL,                    -- HIP stream
    "start" BIGINT NOT NULL,                         -- start on the agent [ns]
    "end" BIGINT NOT NULL,                           -- end on the agent [ns]
    "private_segment_size" INTEGER,                  -- scratch per work-item [bytes]
    "group_segment_size" INTEGER,                    -- LDS per work-group [bytes]
    "workgroup_size_x" INTEGER NOT NULL,             -- work-items per work-group in x
    "workgroup_size_y" INTEGER NOT NULL,             -- work-items per work-group in y
    "workgroup_size_z" INTEGER NOT NULL,             -- work-items per work-group in z
    "grid_size_x" INTEGER NOT NULL,                  -- work-items of the grid in x
    "grid_size_y" INTEGER NOT NULL,                  -- work-items of the grid in y
    "grid_size_z" INTEGER NOT NULL,                  -- work-items of the grid in z
    "region_name_id" INTEGER,                        -- text of the enclosing marker, or the empty string
    "event_id" INTEGER,                              -- event that holds category, stack and correlation ids
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- further facts
    "graph_exec_id" INTEGER,                         -- since 3.0.2: executable graph that launched it
    "graph_node_id" INTEGER,                         -- since 3.0.2: node of that graph
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("tid") REFERENCES "rocpd_info_thread_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("agent_id") REFERENCES "rocpd_info_agent_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("kernel_id") REFERENCES "rocpd_info_kernel_symbol_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("queue_id") REFERENCES "rocpd_info_queue_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("stream_id") REFERENCES "rocpd_info_stream_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("region_name_id") REFERENCES "rocpd_string_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("event_id") REFERENCES "rocpd_event_UUID" ("id") ON UPDATE CASCADE
);
CREATE TABLE "rocpd_memory_copy_UUID" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- copy id
    "guid" TEXT DEFAULT 'GUID' NOT NULL,         -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                          -- node the process ran on
    "pid" INTEGER NOT NULL,                          -- process, by its id in rocpd_info_process (rocprofv3: the OS pid)
    "tid" INTEGER,                                   -- thread that asked for it
    "start" BIGINT NOT NULL,                         -- start [ns]
    "end" BIGINT NOT NULL,                           -- end [ns]
    "name_id" INTEGER NOT NULL,                      -- direction, such as MEMORY_COPY_HOST_TO_DEVICE
    "dst_agent_id" INTEGER,                          -- agent written to
    "dst_address" INTEGER,                           -- address written to
    "src_agent_id" INTEGER,                          -- agent read from
    "src_address" INTEGER,                           -- address read from
    "size" INTEGER NOT NULL,                         -- copied [bytes]
    "queue_id" INTEGER,                              -- HSA queue
    "stream_id" INTEGER,                             -- HIP stream
    "region_name_id" INTEGER,                        -- text of the enclosing marker, or the empty string
    "event_id" INTEGER,                              -- event that holds category, stack and correlation ids
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- further facts
    "graph_exec_id" INTEGER,                         -- since 3.0.2: executable graph that launched it
    "graph_node_id" INTEGER,                         -- since 3.0.2: node of that graph
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("tid") REFERENCES "rocpd_info_thread_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("name_id") REFERENCES "rocpd_string_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("dst_agent_id") REFERENCES "rocpd_info_agent_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("src_agent_id") REFERENCES "rocpd_info_agent_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("queue_id") REFERENCES "rocpd_info_queue_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("stream_id") REFERENCES "rocpd_info_stream_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("region_name_id") REFERENCES "rocpd_string_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("event_id") REFERENCES "rocpd_event_UUID" ("id") ON UPDATE CASCADE
);
CREATE TABLE "rocpd_memory_allocate_UUID" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,                     -- allocation id
    "guid" TEXT DEFAULT 'GUID' NOT NULL,                             -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                                              -- node the process ran on
    "pid" INTEGER NOT NULL,                                              -- process, by its id in rocpd_info_process (rocprofv3: the OS pid)
    "tid" INTEGER,                                                       -- thread that asked for it
    "agent_id" INTEGER,                                                  -- agent that owns the memory
    "type" TEXT CHECK ("type" IN ('ALLOC', 'FREE', 'REALLOC', 'RECLAIM')), -- operation
    "level" TEXT CHECK ("level" IN ('REAL', 'VIRTUAL', 'SCRATCH')),      -- kind of memory
    "start" BIGINT NOT NULL,                                             -- start of the call [ns]
    "end" BIGINT NOT NULL,                                               -- end of the call [ns]
    "address" INTEGER,                                                   -- address
    "size" INTEGER NOT NULL,                                             -- allocated, 0 for most frees [bytes]
    "queue_id" INTEGER,                                                  -- HSA queue (scratch)
    "stream_id" INTEGER,                                                 -- HIP stream
    "event_id" INTEGER,                                                  -- event that holds category, stack and correlation ids
    "extdata" JSONB DEFAULT '{}' NOT NULL,                               -- flags
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("tid") REFERENCES "rocpd_info_thread_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("agent_id") REFERENCES "rocpd_info_agent_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("queue_id") REFERENCES "rocpd_info_queue_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("stream_id") REFERENCES "rocpd_info_stream_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("event_id") REFERENCES "rocpd_event_UUID" ("id") ON UPDATE CASCADE
);
CREATE TABLE "rocpd_graph_launch_UUID" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- launch id
    "guid" TEXT DEFAULT 'GUID' NOT NULL,         -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                          -- node the process ran on
    "pid" INTEGER NOT NULL,                          -- process, by its id in rocpd_info_process (rocprofv3: the OS pid)
    "tid" INTEGER,                                   -- thread that launched it
    "agent_id" INTEGER,                              -- agent it ran on
    "queue_id" INTEGER,                              -- HSA queue
    "start" BIGINT NOT NULL,                         -- start [ns]
    "end" BIGINT NOT NULL,                           -- end [ns]
    "graph_exec_id" INTEGER,                         -- executable graph
    "kernel_dispatch_count" INTEGER,                 -- kernels in the graph
    "event_id" INTEGER,                              -- event that holds category, stack and correlation ids
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- further facts
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("tid") REFERENCES "rocpd_info_thread_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("agent_id") REFERENCES "rocpd_info_agent_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("queue_id") REFERENCES "rocpd_info_queue_UUID" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("event_id") REFERENCES "rocpd_event_UUID" ("id") ON UPDATE CASCADE
);
