-- RPD's name (schema 1): copies and fills of memory as operations.
CREATE VIEW "rocpd_copyop" AS
SELECT
    CAST(CASE WHEN K.id IS NULL THEN M.id ELSE -M.id END AS INTEGER) AS "id", -- copy id, below 0 where a kernel has it; of an RPD trace the id of the operation {integer}
    COALESCE(CASE WHEN json_valid(Q.extdata) THEN json_extract(Q.extdata, '$.rpd_gpuId') END, CASE D.type WHEN 'GPU' THEN D.absolute_index ELSE A.absolute_index END) AS "gpuId", -- GPU that it reaches or leaves: index of the hardware node; of an RPD trace its number {integer}
    COALESCE(CASE WHEN json_valid(Q.extdata) THEN json_extract(Q.extdata, '$.rpd_queueId') END, M.queue_id) AS "queueId", -- HSA queue id; of an RPD trace its number {integer}
    COALESCE(CASE WHEN json_valid(E.extdata) THEN json_extract(E.extdata, '$.sequenceId') END, 0) AS "sequenceId", -- as an RPD trace has it, else 0 {integer}
    M.start AS "start",                            -- start [ns]
    M.end AS "end",                                -- end [ns]
    M.end - M.start AS "duration",                 -- end - start [ns] {integer}
    COALESCE(CASE WHEN json_valid(E.extdata) THEN json_extract(E.extdata, '$.opType') END, N.string) AS "opType", -- direction, such as CopyHostToDevice in an RPD trace {text}
    printf('0x%x', M.stream_id) AS "stream",       -- HIP stream: its pointer, or its number {text}
    M.size AS "size",                              -- copied [bytes]
    M.graph_exec_id AS "graph_exec_id",            -- executable graph that launched it
    E.stack_id AS "stack_id",                      -- internal correlation id, equal for a call and its operations
    M.guid AS "guid"                               -- GUID of the rank
FROM
    "rocpd_memory_copy{{uuid}}" M
    LEFT JOIN "rocpd_event{{uuid}}" E ON E.id = M.event_id
    LEFT JOIN "rocpd_string{{uuid}}" N ON N.id = M.name_id
    LEFT JOIN "rocpd_info_agent{{uuid}}" D ON D.id = M.dst_agent_id
    LEFT JOIN "rocpd_info_agent{{uuid}}" A ON A.id = M.src_agent_id
    LEFT JOIN "rocpd_info_queue{{uuid}}" Q ON Q.id = M.queue_id
    LEFT JOIN "rocpd_kernel_dispatch{{uuid}}" K ON K.id = M.id;
