-- RPD's name (graphLaunch): launches of graphs that have operations. Times are cut to microseconds after adding up.
CREATE VIEW "graphlaunch" AS
SELECT
    V.pid AS "pid",                                     -- OS process id
    V.tid AS "tid",                                     -- OS thread id
    V.apiName AS "apiName",                             -- function
    COALESCE(A.graphExec, printf('0x%x', P.graph_exec_id)) AS "graphExec", -- handle of the executable graph {text}
    A.stream AS "stream",                               -- HIP stream {text}
    P.gpuId AS "gpuId",                                 -- GPU: index of the hardware node; of an RPD trace its number {integer}
    P.queueId AS "queueId",                             -- HSA queue id; of an RPD trace its number {integer}
    (V."end" - V.start) / 1000 AS "apiDuration",        -- time of the call [us] {integer}
    P.span / 1000 AS "opDuration",                      -- from its first operation to the end of its last [us] {integer}
    P.gpu / 1000 AS "gpuTime",                          -- time of its operations [us] {integer}
    V.id AS "id",                                       -- the call, in rocpd_api
    V.guid AS "guid"                                    -- GUID of the rank
    {{rank_host_of_V}}
FROM
    "rocpd_api" V
    JOIN (
        SELECT
            L.guid,
            L.api_id,
            MIN(O.gpuId) AS gpuId,
            MIN(O.queueId) AS queueId,
            MIN(O.graph_exec_id) AS graph_exec_id,
            MAX(O."end") - MIN(O.start) AS span,
            SUM(O."end" - O.start) AS gpu
        FROM "rocpd_api_ops" L
        JOIN "rocpd_op" O ON O.guid = L.guid AND O.id = L.op_id
        GROUP BY L.guid, L.api_id
    ) P ON P.guid = V.guid
    AND P.api_id = V.id
    LEFT JOIN (
        SELECT
            guid,
            event_id,
            MAX(value) FILTER (WHERE name <> 'stream') AS graphExec,
            MAX(value) FILTER (WHERE name = 'stream') AS stream
        FROM "rocpd_arg"
        WHERE name IN ('graphExec', 'hGraphExec', 'stream')
        GROUP BY guid, event_id
    ) A ON A.guid = V.guid
    AND A.event_id = V.event_id
WHERE
    V.apiName GLOB '*GraphLaunch*';
