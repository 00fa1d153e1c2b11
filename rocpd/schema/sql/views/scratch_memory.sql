-- Scratch memory operations: the rows of rocpd_memory_allocate with level SCRATCH.
CREATE VIEW "scratch_memory" AS
SELECT
    M.id AS "id",                                            -- allocation id, unique in its rank
    M.guid AS "guid",                                        -- GUID of the rank
    M.nid AS "nid",                                          -- node id
    P.pid AS "pid",                                          -- OS process id
    M.type AS "operation",                                   -- ALLOC, FREE or RECLAIM
    A.name AS "agent_name",                                  -- agent: name
    A.absolute_index AS "agent_abs_index",                   -- agent: index of the hardware node
    A.logical_index AS "agent_log_index",                    -- agent: index among the visible agents
    A.type_index AS "agent_type_index",                      -- agent: index among the visible agents of its type
    A.type AS "agent_type",                                  -- agent: CPU, GPU or NIC
    M.queue_id AS "queue_id",                                -- HSA queue id
    T.tid AS "tid",                                          -- OS thread id
    CASE WHEN json_valid(M.extdata) THEN json_extract(M.extdata, '$.flags') END AS "alloc_flags", -- flags of the allocation {integer}
    M.start AS "start",                                      -- start [ns]
    M.end AS "end",                                          -- end [ns]
    M.end - M.start AS "duration",                           -- end - start [ns] {integer}
    M.size AS "size",                                        -- allocated [bytes]
    M.address AS "address",                                  -- address
    E.correlation_id AS "correlation_id",                    -- external correlation id
    E.stack_id AS "stack_id",                                -- internal correlation id, equal for a launch and its operations
    E.parent_stack_id AS "parent_stack_id",                  -- stack_id of the enclosing call
    E.correlation_id AS "corr_id",                           -- external correlation id
    C.string AS "category",                                  -- domain of the event, such as KERNEL_DISPATCH
    E.extdata AS "event_extdata"                             -- JSON of the event
FROM
    "rocpd_memory_allocate{{uuid}}" M
    LEFT JOIN "rocpd_info_agent{{uuid}}" A ON A.id = M.agent_id
    LEFT JOIN "rocpd_event{{uuid}}" E ON E.id = M.event_id
    LEFT JOIN "rocpd_string{{uuid}}" C ON C.id = E.category_id
    LEFT JOIN "rocpd_info_process{{uuid}}" P ON P.id = M.pid
    LEFT JOIN "rocpd_info_thread{{uuid}}" T ON T.id = M.tid
WHERE
    M.level = 'SCRATCH';
