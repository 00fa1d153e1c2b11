-- Kernel dispatches, one row per row of rocpd_kernel_dispatch, with names in place of ids.
CREATE VIEW "kernels" AS
SELECT
    K.id AS "id",                                    -- dispatch row id, unique in its rank
    K.guid AS "guid",                                -- GUID of the rank
    T.tid AS "tid",                                  -- OS thread id
    C.string AS "category",                          -- domain of the event, such as KERNEL_DISPATCH
    R.string AS "region",                            -- text of the enclosing marker
    S.display_name AS "name",                        -- kernel name
    K.nid AS "nid",                                  -- node id
    P.pid AS "pid",                                  -- OS process id
    A.absolute_index AS "agent_abs_index",           -- agent: index of the hardware node
    A.logical_index AS "agent_log_index",            -- agent: index among the visible agents
    A.type_index AS "agent_type_index",              -- agent: index among the visible agents of its type
    A.type AS "agent_type",                          -- agent: CPU, GPU or NIC
    S.code_object_id AS "code_object_id",            -- code object of the kernel
    K.kernel_id AS "kernel_id",                      -- kernel symbol id
    K.dispatch_id AS "dispatch_id",                  -- sequence number of the dispatch
    K.stream_id AS "stream_id",                      -- HIP stream id
    K.queue_id AS "queue_id",                        -- HSA queue id
    Q.name AS "queue",                               -- HSA queue name
    ST.name AS "stream",                             -- HIP stream name
    K.start AS "start",                              -- start [ns]
    K.end AS "end",                                  -- end [ns]
    K.end - K.start AS "duration",                   -- end - start [ns] {integer}
    K.grid_size_x AS "grid_x",                       -- work-items of the grid in x
    K.grid_size_y AS "grid_y",                       -- work-items of the grid in y
    K.grid_size_z AS "grid_z",                       -- work-items of the grid in z
    K.workgroup_size_x AS "workgroup_x",             -- work-items per work-group in x
    K.workgroup_size_y AS "workgroup_y",             -- work-items per work-group in y
    K.workgroup_size_z AS "workgroup_z",             -- work-items per work-group in z
    K.group_segment_size AS "lds_size",              -- LDS per work-group [bytes]
    K.private_segment_size AS "scratch_size",        -- scratch per work-item [bytes]
    S.arch_vgpr_count AS "vgpr_count",               -- vector registers per work-item
    S.accum_vgpr_count AS "accum_vgpr_count",        -- accumulation registers per work-item
    S.sgpr_count AS "sgpr_count",                    -- scalar registers per wave
    S.group_segment_size AS "static_lds_size",       -- static LDS per work-group [bytes]
    S.private_segment_size AS "static_scratch_size", -- static scratch per work-item [bytes]
    E.stack_id AS "stack_id",                        -- internal correlation id, equal for a launch and its operations
    E.parent_stack_id AS "parent_stack_id",          -- stack_id of the enclosing call
    E.correlation_id AS "corr_id"                    -- external correlation id
FROM
    "rocpd_kernel_dispatch{{uuid}}" K
    LEFT JOIN "rocpd_info_agent{{uuid}}" A ON A.id = K.agent_id
    LEFT JOIN "rocpd_event{{uuid}}" E ON E.id = K.event_id
    LEFT JOIN "rocpd_string{{uuid}}" C ON C.id = E.category_id
    LEFT JOIN "rocpd_string{{uuid}}" R ON R.id = K.region_name_id
    LEFT JOIN "rocpd_info_kernel_symbol{{uuid}}" S ON S.id = K.kernel_id
    LEFT JOIN "rocpd_info_stream{{uuid}}" ST ON ST.id = K.stream_id
    LEFT JOIN "rocpd_info_queue{{uuid}}" Q ON Q.id = K.queue_id
    LEFT JOIN "rocpd_info_process{{uuid}}" P ON P.id = K.pid
    LEFT JOIN "rocpd_info_thread{{uuid}}" T ON T.id = K.tid;
