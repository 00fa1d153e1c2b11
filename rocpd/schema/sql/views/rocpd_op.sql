-- RPD's name: kernels and copies as operations of GPUs. Texts stand here in place of RPD's ids of texts.
CREATE VIEW "rocpd_op" AS
SELECT
    V.id AS "id",                          -- operation, unique in its rank
    V.gpuId AS "gpuId",                    -- GPU: index of the hardware node; of an RPD trace its number
    V.queueId AS "queueId",                -- HSA queue id; of an RPD trace its number
    V.sequenceId AS "sequenceId",          -- as an RPD trace has it, else 0
    V.start AS "start",                    -- start [ns]
    V."end" AS "end",                      -- end [ns]
    V.kernelName AS "description",         -- kernel name, empty for copies
    V.opType AS "opType",                  -- KernelExecution, CopyHostToDevice …
    V.graph_exec_id AS "graph_exec_id",    -- executable graph that launched it
    V.stack_id AS "stack_id",              -- internal correlation id, equal for a call and its operations
    V.guid AS "guid"                       -- GUID of the rank
    {{rank_host_of_V}}
FROM
    "rocpd_kernelop" V
UNION ALL
SELECT
    V.id,
    V.gpuId,
    V.queueId,
    V.sequenceId,
    V.start,
    V."end",
    '',
    V.opType,
    V.graph_exec_id,
    V.stack_id,
    V.guid
    {{rank_host_of_V}}
FROM
    "rocpd_copyop" V;
