-- RPD's name: calls that launched one kernel, with its sizes. Launches that a graph recorded are in graphkernel.
CREATE VIEW "rocpd_kernelapi" AS
SELECT
    O.api_id AS "api_ptr_id",              -- the call, in rocpd_api
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
    V.id AS "op_id",                       -- the operation, in rocpd_op
    A.tid AS "tid",                        -- OS thread id of the call
    A.start AS "start",                    -- start of the call [ns]
    V.duration AS "gpu_time",              -- time of the kernel [ns]
    A."end" - A.start AS "cpu_time",       -- time of the call [ns] {integer}
    V.guid AS "guid"                       -- GUID of the rank
    {{rank_host_of_V}}
FROM
    "kernel" V
    JOIN "rocpd_api_ops" O ON O.guid = V.guid
    AND O.op_id = V.id
    JOIN "rocpd_api" A ON A.guid = O.guid
    AND A.id = O.api_id
WHERE
    A.apiName NOT GLOB '*GraphLaunch*';
