-- Memory allocations and frees (scratch too), one row per row of rocpd_memory_allocate.
CREATE VIEW "memory_allocations" AS
SELECT
    M.id AS "id",                           -- allocation id, unique in its rank
    M.guid AS "guid",                       -- GUID of the rank
    C.string AS "category",                 -- domain of the event, such as KERNEL_DISPATCH
    M.nid AS "nid",                         -- node id
    P.pid AS "pid",                         -- OS process id
    T.tid AS "tid",                         -- OS thread id
    M.start AS "start",                     -- start [ns]
    M.end AS "end",                         -- end [ns]
    M.end - M.start AS "duration",          -- end - start [ns] {integer}
    M.type AS "type",                       -- ALLOC, FREE, REALLOC or RECLAIM
    M.level AS "level",                     -- REAL, VIRTUAL or SCRATCH
    A.name AS "agent_name",                 -- agent: name
    A.absolute_index AS "agent_abs_index",  -- agent: index of the hardware node
    A.logical_index AS "agent_log_index",   -- agent: index among the visible agents
    A.type_index AS "agent_type_index",     -- agent: index among the visible agents of its type
    A.type AS "agent_type",                 -- agent: CPU, GPU or NIC
    M.address AS "address",                 -- address
    M.size AS "size",                       -- allocated, 0 for most frees [bytes]
    M.queue_id AS "queue_id",               -- HSA queue id
    Q.name AS "queue_name",                 -- HSA queue name
    M.stream_id AS "stream_id",             -- HIP stream id
    ST.name AS "stream_name",               -- HIP stream name
    E.stack_id AS "stack_id",               -- internal correlation id, equal for a launch and its operations
    E.parent_stack_id AS "parent_stack_id", -- stack_id of the enclosing call
    E.correlation_id AS "corr_id"           -- external correlation id
FROM
    "rocpd_memory_allocate{{uuid}}" M
    LEFT JOIN "rocpd_info_agent{{uuid}}" A ON A.id = M.agent_id
    LEFT JOIN "rocpd_info_queue{{uuid}}" Q ON Q.id = M.queue_id
    LEFT JOIN "rocpd_info_stream{{uuid}}" ST ON ST.id = M.stream_id
    LEFT JOIN "rocpd_event{{uuid}}" E ON E.id = M.event_id
    LEFT JOIN "rocpd_string{{uuid}}" C ON C.id = E.category_id
    LEFT JOIN "rocpd_info_process{{uuid}}" P ON P.id = M.pid
    LEFT JOIN "rocpd_info_thread{{uuid}}" T ON T.id = M.tid;
