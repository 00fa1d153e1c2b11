-- Counter values per dispatch, summed over the instances of a counter; streamed (SPM) values are left out.
-- One row per dispatch and counter name.
CREATE VIEW "counters_collection" AS
SELECT
    MIN(V.id) AS "id",                                       -- first value id, unique in its rank {integer}
    V.guid AS "guid",                                        -- GUID of the rank
    K.dispatch_id AS "dispatch_id",                          -- sequence number of the dispatch
    K.kernel_id AS "kernel_id",                              -- kernel symbol id
    V.event_id AS "event_id",                                -- event row id
    E.correlation_id AS "correlation_id",                    -- external correlation id
    E.stack_id AS "stack_id",                                -- internal correlation id
    E.parent_stack_id AS "parent_stack_id",                  -- stack_id of the enclosing call
    P.pid AS "pid",                                          -- OS process id
    T.tid AS "tid",                                          -- OS thread id
    K.agent_id AS "agent_id",                                -- agent id
    A.absolute_index AS "agent_abs_index",                   -- agent: index of the hardware node
    A.logical_index AS "agent_log_index",                    -- agent: index among the visible agents
    A.type_index AS "agent_type_index",                      -- agent: index among the visible agents of its type
    A.type AS "agent_type",                                  -- agent: CPU, GPU or NIC
    K.queue_id AS "queue_id",                                -- HSA queue id
    K.grid_size_x AS "grid_size_x",                          -- work-items of the grid in x
    K.grid_size_y AS "grid_size_y",                          -- work-items of the grid in y
    K.grid_size_z AS "grid_size_z",                          -- work-items of the grid in z
    K.grid_size_x * K.grid_size_y * K.grid_size_z AS "grid_size", -- work-items of the grid {integer}
    S.display_name AS "kernel_name",                         -- kernel name
    R.string AS "kernel_region",                             -- text of the enclosing marker
    K.workgroup_size_x AS "workgroup_size_x",                -- work-items per work-group in x
    K.workgroup_size_y AS "workgroup_size_y",                -- work-items per work-group in y
    K.workgroup_size_z AS "workgroup_size_z",                -- work-items per work-group in z
    K.workgroup_size_x * K.workgroup_size_y * K.workgroup_size_z AS "workgroup_size", -- work-items per work-group {integer}
    K.group_segment_size AS "lds_block_size",                -- LDS per work-group [bytes]
    K.private_segment_size AS "scratch_size",                -- scratch per work-item [bytes]
    S.arch_vgpr_count AS "vgpr_count",                       -- vector registers per work-item
    S.accum_vgpr_count AS "accum_vgpr_count",                -- accumulation registers per work-item
    S.sgpr_count AS "sgpr_count",                            -- scalar registers per wave
    I.name AS "counter_name",                                -- counter name
    I.symbol AS "counter_symbol",                            -- short counter name
    I.component AS "component",                              -- software component that reads it
    I.description AS "description",                          -- the counted events
    I.block AS "block",                                      -- hardware block
    I.expression AS "expression",                            -- formula of a derived counter
    I.value_type AS "value_type",                            -- ABS, ACCUM or RELATIVE
    I.id AS "counter_id",                                    -- counter id
    SUM(V.value) AS "value",                                 -- sum over instances, in the unit of the counter {real}
    K.start AS "start",                                      -- start [ns]
    K.end AS "end",                                          -- end [ns]
    I.is_constant AS "is_constant",                          -- 1: a constant of the device
    I.is_derived AS "is_derived",                            -- 1: computed from other counters
    K.end - K.start AS "duration",                           -- end - start [ns] {integer}
    C.string AS "category",                                  -- domain of the event, such as KERNEL_DISPATCH
    K.nid AS "nid",                                          -- node id
    E.extdata AS "extdata",                                  -- JSON of the event
    S.code_object_id AS "code_object_id"                     -- code object of the kernel
FROM
    "rocpd_pmc_event{{uuid}}" V
    JOIN "rocpd_kernel_dispatch{{uuid}}" K ON K.event_id = V.event_id
    LEFT JOIN "rocpd_info_pmc{{uuid}}" I ON I.id = V.pmc_id
    LEFT JOIN "rocpd_event{{uuid}}" E ON E.id = V.event_id
    LEFT JOIN "rocpd_string{{uuid}}" C ON C.id = E.category_id
    LEFT JOIN "rocpd_info_agent{{uuid}}" A ON A.id = K.agent_id
    LEFT JOIN "rocpd_string{{uuid}}" R ON R.id = K.region_name_id
    LEFT JOIN "rocpd_info_kernel_symbol{{uuid}}" S ON S.id = K.kernel_id
    LEFT JOIN "rocpd_info_process{{uuid}}" P ON P.id = K.pid
    LEFT JOIN "rocpd_info_thread{{uuid}}" T ON T.id = K.tid
WHERE
    V.sample_id IS NULL
GROUP BY
    K.dispatch_id,
    I.name,
    K.agent_id;
