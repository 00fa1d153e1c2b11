-- RPD's name (graphKernel): kernels of each executable graph, in order: as captured on its stream, with their sizes,
-- where an RPD trace has them; else the kernels of its first launch, with NULL for sizes that the trace lacks.
CREATE VIEW "graphkernel" AS
SELECT
    K.graphExec AS "graphExec",                   -- handle of the executable graph {text}
    ROW_NUMBER() OVER (PARTITION BY V.guid, K.graphExec ORDER BY K.start, K.id) AS "sequence", -- which kernel, from 1 {integer}
    K.kernelName AS "kernelName",                 -- kernel name {text}
    K.gridX AS "gridX",                           -- work-groups in x {integer}
    K.gridY AS "gridY",                           -- work-groups in y {integer}
    K.gridZ AS "gridZ",                           -- work-groups in z {integer}
    K.workgroupX AS "workgroupX",                 -- work-items per work-group in x {integer}
    K.workgroupY AS "workgroupY",                 -- work-items per work-group in y {integer}
    K.workgroupZ AS "workgroupZ",                 -- work-items per work-group in z {integer}
    K.groupSegmentSize AS "groupSegmentSize",     -- LDS per work-group [bytes] {integer}
    K.privateSegmentSize AS "privateSegmentSize", -- scratch per work-item [bytes] {integer}
    V.guid AS "guid"                              -- GUID of the rank
    {{rank_host_of_V}}
FROM
    "rocpd_api" V
    JOIN (
        SELECT *, MIN(source) OVER (PARTITION BY guid, graphExec) AS best
        FROM (
            SELECT
                1 AS source,
                L.guid,
                L.id AS api_id,
                L.id,
                L.start,
                I.graphExec,
                L.kernelName,
                json_extract(L.grid, '$[0]') / CASE WHEN L.is_in_items THEN json_extract(L.items, '$[0]') ELSE 1 END AS gridX,
                json_extract(L.grid, '$[1]') / CASE WHEN L.is_in_items THEN json_extract(L.items, '$[1]') ELSE 1 END AS gridY,
                json_extract(L.grid, '$[2]') / CASE WHEN L.is_in_items THEN json_extract(L.items, '$[2]') ELSE 1 END AS gridZ,
                json_extract(L.items, '$[0]') AS workgroupX,
                json_extract(L.items, '$[1]') AS workgroupY,
                json_extract(L.items, '$[2]') AS workgroupZ,
                CAST(L.groupSegmentSize AS INTEGER) AS groupSegmentSize,
                CAST(L.privateSegmentSize AS INTEGER) AS privateSegmentSize
            FROM (
                SELECT *, MAX(CASE WHEN step < 0 THEN graph END) OVER (PARTITION BY guid, stream, capture) AS captured
                FROM (
                    SELECT
                        *,
                        SUM(step > 0) OVER (PARTITION BY guid, stream ORDER BY start, id ROWS UNBOUNDED PRECEDING) AS capture,
                        SUM(step) OVER (PARTITION BY guid, stream ORDER BY start, id ROWS UNBOUNDED PRECEDING) AS is_captured
                    FROM (
                        SELECT
                            C.guid,
                            C.id,
                            C.start,
                            (C.apiName GLOB '*StreamBeginCapture*') - (C.apiName GLOB '*StreamEndCapture*') AS step,
                            C.apiName GLOB '*Ext*' OR C.apiName GLOB '*Hcc*' AS is_in_items,
                            MAX(A.value) FILTER (WHERE A.name = 'stream') AS stream,
                            MAX(A.value) FILTER (WHERE A.name IN ('graph', 'pGraph')) AS graph,
                            MAX(A.value) FILTER (WHERE A.name = 'kernel') AS kernelName,
                            '[' || MAX(A.value) FILTER (WHERE A.name = 'grid') || ']' AS grid,
                            '[' || MAX(A.value) FILTER (WHERE A.name = 'workgroup') || ']' AS items,
                            MAX(A.value) FILTER (WHERE A.name = 'groupSegmentSize') AS groupSegmentSize,
                            MAX(A.value) FILTER (WHERE A.name = 'privateSegmentSize') AS privateSegmentSize
                        FROM "rocpd_api" C
                        JOIN "rocpd_arg" A ON A.guid = C.guid AND A.event_id = C.event_id
                        WHERE C.apiName GLOB '*Stream*Capture*' OR C.apiName GLOB '*Launch*Kernel*'
                        GROUP BY C.guid, C.id
                    )
                )
            ) L
            JOIN (
                SELECT
                    C.guid,
                    MAX(A.value) FILTER (WHERE A.name IN ('graph', 'hGraph')) AS graph,
                    MAX(A.value) FILTER (WHERE A.name IN ('graphExec', 'pGraphExec')) AS graphExec
                FROM "rocpd_api" C
                JOIN "rocpd_arg" A ON A.guid = C.guid AND A.event_id = C.event_id
                WHERE C.apiName GLOB '*GraphInstantiate*'
                GROUP BY C.guid, C.id
            ) I ON I.guid = L.guid
            AND I.graph = L.captured
            WHERE L.is_captured = 1 AND L.step = 0 AND L.kernelName IS NOT NULL AND json_valid(L.grid) AND json_valid(L.items)
            UNION ALL
            SELECT
                2,
                P.guid,
                O.api_id,
                P.id,
                P.start,
                F.graphExec,
                P.kernelName,
                P.gridX,
                P.gridY,
                P.gridZ,
                NULLIF(P.workgroupX, 0),
                NULLIF(P.workgroupY, 0),
                NULLIF(P.workgroupZ, 0),
                P.groupSegmentSize,
                P.privateSegmentSize
            FROM (SELECT guid, graphExec, MIN(id) AS id FROM "graphlaunch" GROUP BY guid, graphExec) F
            JOIN "rocpd_api_ops" O ON O.guid = F.guid AND O.api_id = F.id
            JOIN "rocpd_kernelop" P ON P.guid = O.guid AND P.id = O.op_id
        )
    ) K ON K.guid = V.guid
    AND K.api_id = V.id
    AND K.source = K.best;
