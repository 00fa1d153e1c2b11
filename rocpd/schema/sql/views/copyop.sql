-- RPD's name: copies that GPUs made, with the times of the copies, and the arguments of their calls. Copies of graphs
-- and fills of memory are in rocpd_copyop.
CREATE VIEW "copyop" AS
SELECT
    V.id AS "id",                          -- operation, unique in its rank
    V.gpuId AS "gpuId",                    -- GPU: index of the hardware node; of an RPD trace its number
    V.queueId AS "queueId",                -- HSA queue id; of an RPD trace its number
    V.sequenceId AS "sequenceId",          -- as an RPD trace has it, else 0
    V.start AS "start",                    -- start [ns]
    V."end" AS "end",                      -- end [ns]
    V.duration AS "duration",              -- end - start [ns]
    COALESCE(C.stream, V.stream) AS "stream", -- HIP stream {text}
    COALESCE(C.size, V.size) AS "size", -- copied [bytes] {integer}
    C.width AS "width", -- width of a copy in two dimensions [bytes]
    C.height AS "height", -- rows of a copy in two dimensions
    C.kind AS "kind", -- hipMemcpyKind: 0 host to host, 1 host to device, 2 device to host, 3 device to device, 4 default
    C.dst AS "dst", -- address written to
    C.src AS "src", -- address read from
    C.dstDevice AS "dstDevice", -- device written to
    C.srcDevice AS "srcDevice", -- device read from
    C.sync AS "sync", -- whether the call waits
    C.pinned AS "pinned", -- whether memory of the host is pinned
    A.apiName AS "apiName",                -- function
    V.guid AS "guid"                       -- GUID of the rank
    {{rank_host_of_V}}
FROM
    "rocpd_copyop" V
    LEFT JOIN "rocpd_api_ops" O ON O.guid = V.guid
    AND O.op_id = V.id
    LEFT JOIN "rocpd_copyapi" C ON C.guid = O.guid
    AND C.api_ptr_id = O.api_id
    LEFT JOIN "rocpd_api" A ON A.guid = O.guid
    AND A.id = O.api_id
WHERE
    O.api_id IS NULL
    OR C.api_ptr_id IS NOT NULL;
