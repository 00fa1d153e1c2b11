-- RPD's name (schema 1): kernels as operations, with their launch. Sizes are 0 where a trace does not say them.
CREATE VIEW "rocpd_kernelop" AS
SELECT
    K.id AS "id",                                  -- dispatch row id; of an RPD trace the id of the operation
    COALESCE(CASE WHEN json_valid(Q.extdata) THEN json_extract(Q.extdata, '$.rpd_gpuId') END, A.absolute_index) AS "gpuId", -- index of the hardware node; of an RPD trace its number {integer}
    COALESCE(CASE WHEN json_valid(Q.extdata) THEN json_extract(Q.extdata, '$.rpd_queueId') END, K.queue_id) AS "queueId", -- HSA queue id; of an RPD trace its number {integer}
    COALESCE(CASE WHEN json_valid(E.extdata) THEN json_extract(E.extdata, '$.sequenceId') END, 0) AS "sequenceId", -- as an RPD trace has it, else 0 {integer}
    K.start AS "start",                            -- start [ns]
    K.end AS "end",                                -- end [ns]
    K.end - K.start AS "duration",                 -- end - start [ns] {integer}
    S.display_name AS "kernelName",                -- kernel name
    COALESCE(CASE WHEN json_valid(E.extdata) THEN json_extract(E.extdata, '$.opType') END, 'KernelExecution') AS "opType", -- KernelExecution, or as an RPD trace has it {text}
    printf('0x%x', K.stream_id) AS "stream",       -- HIP stream: its pointer, or its number {text}
    (K.grid_size_x + K.workgroup_size_x - 1) / K.workgroup_size_x AS "gridX", -- work-groups in x {integer}
    (K.grid_size_y + K.workgroup_size_y - 1) / K.workgroup_size_y AS "gridY", -- work-groups in y {integer}
    (K.grid_size_z + K.workgroup_size_z - 1) / K.workgroup_size_z AS "gridZ", -- work-groups in z {integer}
    K.workgroup_size_x AS "workgroupX",            -- work-items per work-group in x
    K.workgroup_size_y AS "workgroupY",            -- work-items per work-group in y
    K.workgroup_size_z AS "workgroupZ",            -- work-items per work-group in z
    K.group_segment_size AS "groupSegmentSize",    -- LDS per work-group [bytes]
    K.private_segment_size AS "privateSegmentSize", -- scratch per work-item [bytes]
    K.graph_exec_id AS "graph_exec_id",            -- executable graph that launched it
    E.stack_id AS "stack_id",                      -- internal correlation id, equal for a call and its operations
    K.guid AS "guid"                               -- GUID of the rank
FROM
    "rocpd_kernel_dispatch{{uuid}}" K
    LEFT JOIN "rocpd_event{{uuid}}" E ON E.id = K.event_id
    LEFT JOIN "rocpd_info_agent{{uuid}}" A ON A.id = K.agent_id
    LEFT JOIN "rocpd_info_queue{{uuid}}" Q ON Q.id = K.queue_id
    LEFT JOIN "rocpd_info_kernel_symbol{{uuid}}" S ON S.id = K.kernel_id;
