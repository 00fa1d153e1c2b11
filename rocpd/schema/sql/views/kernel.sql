-- RPD's name: kernels with their launch, where the trace has it; RPD lacks it for kernels that a graph launched.
CREATE VIEW "kernel" AS
SELECT
    V.id AS "id",                          -- operation, unique in its rank
    V.gpuId AS "gpuId",                    -- GPU: index of the hardware node; of an RPD trace its number
    V.queueId AS "queueId",                -- HSA queue id; of an RPD trace its number
    V.sequenceId AS "sequenceId",          -- as an RPD trace has it, else 0
    V.start AS "start",                    -- start [ns]
    V."end" AS "end",                      -- end [ns]
    V.duration AS "duration",              -- end - start [ns]
    V.stream AS "stream",                  -- HIP stream: its pointer, or its number
    V.gridX AS "gridX", -- work-groups in x
    V.gridY AS "gridY", -- work-groups in y
    V.gridZ AS "gridZ", -- work-groups in z
    V.workgroupX AS "workgroupX", -- work-items per work-group in x
    V.workgroupY AS "workgroupY", -- work-items per work-group in y
    V.workgroupZ AS "workgroupZ", -- work-items per work-group in z
    V.groupSegmentSize AS "groupSegmentSize", -- LDS per work-group [bytes]
    V.privateSegmentSize AS "privateSegmentSize", -- scratch per work-item [bytes]
    V.kernelName AS "kernelName",          -- kernel name
    V.guid AS "guid"                       -- GUID of the rank
    {{rank_host_of_V}}
FROM
    "rocpd_kernelop" V
WHERE
    V.workgroupX > 0;
