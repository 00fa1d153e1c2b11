-- Memory copies, one row per row of rocpd_memory_copy.
CREATE VIEW "memory_copies" AS
SELECT
    M.id AS "id",                                 -- copy id, unique in its rank
    M.guid AS "guid",                             -- GUID of the rank
    C.string AS "category",                       -- domain of the event, such as KERNEL_DISPATCH
    M.nid AS "nid",                               -- node id
    P.pid AS "pid",                               -- OS process id
    T.tid AS "tid",                               -- OS thread id
    M.start AS "start",                           -- start [ns]
    M.end AS "end",                               -- end [ns]
    M.end - M.start AS "duration",                -- end - start [ns] {integer}
    S.string AS "name",                           -- direction, such as MEMORY_COPY_HOST_TO_DEVICE
    R.string AS "region_name",                    -- text of the enclosing marker
    M.stream_id AS "stream_id",                   -- HIP stream id
    M.queue_id AS "queue_id",                     -- HSA queue id
    ST.name AS "stream_name",                     -- HIP stream name
    Q.name AS "queue_name",                       -- HSA queue name
    M.size AS "size",                             -- copied [bytes]
    dstA.name AS "dst_device",                    -- destination agent: name
    dstA.absolute_index AS "dst_agent_abs_index", -- destination agent: index of the hardware node
    dstA.logical_index AS "dst_agent_log_index",  -- destination agent: index among the visible agents
    dstA.type_index AS "dst_agent_type_index",    -- destination agent: index among the visible agents of its type
    dstA.type AS "dst_agent_type",                -- destination agent: CPU, GPU or NIC
    M.dst_address AS "dst_address",               -- destination agent: address
    srcA.name AS "src_device",                    -- source agent: name
    srcA.absolute_index AS "src_agent_abs_index", -- source agent: index of the hardware node
    srcA.logical_index AS "src_agent_log_index",  -- source agent: index among the visible agents
    srcA.type_index AS "src_agent_type_index",    -- source agent: index among the visible agents of its type
    srcA.type AS "src_agent_type",                -- source agent: CPU, GPU or NIC
    M.src_address AS "src_address",               -- source agent: address
    E.stack_id AS "stack_id",                     -- internal correlation id, equal for a launch and its operations
    E.parent_stack_id AS "parent_stack_id",       -- stack_id of the enclosing call
    E.correlation_id AS "corr_id"                 -- external correlation id
FROM
    "rocpd_memory_copy{{uuid}}" M
    LEFT JOIN "rocpd_string{{uuid}}" S ON S.id = M.name_id
    LEFT JOIN "rocpd_string{{uuid}}" R ON R.id = M.region_name_id
    LEFT JOIN "rocpd_info_agent{{uuid}}" dstA ON dstA.id = M.dst_agent_id
    LEFT JOIN "rocpd_info_agent{{uuid}}" srcA ON srcA.id = M.src_agent_id
    LEFT JOIN "rocpd_info_queue{{uuid}}" Q ON Q.id = M.queue_id
    LEFT JOIN "rocpd_info_stream{{uuid}}" ST ON ST.id = M.stream_id
    LEFT JOIN "rocpd_event{{uuid}}" E ON E.id = M.event_id
    LEFT JOIN "rocpd_string{{uuid}}" C ON C.id = E.category_id
    LEFT JOIN "rocpd_info_process{{uuid}}" P ON P.id = M.pid
    LEFT JOIN "rocpd_info_thread{{uuid}}" T ON T.id = M.tid;
