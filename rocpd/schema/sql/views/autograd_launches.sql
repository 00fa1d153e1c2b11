-- Kernels with the operator of PyTorch that launched them: the innermost one that is open on the thread when the launch
-- starts. Launches of graphs, and launches outside of operators, are left out.
CREATE VIEW "autograd_launches" AS
SELECT
    V.op_id AS "op_id",                           -- the kernel, in rocpd_op
    V.api_ptr_id AS "api_ptr_id",                 -- the call, in rocpd_api
    T.name AS "autogradName",                     -- operator {text}
    V.kernelName AS "kernelName",                 -- kernel name
    T.sizes AS "sizes",                           -- sizes of the operator's inputs, empty where not recorded {text}
    V.gpu_time AS "gpu_time",                     -- time of the kernel [ns]
    V.guid AS "guid"                              -- GUID of the rank
    {{rank_host_of_V}}
FROM
    "rocpd_kernelapi" V
    JOIN (
        -- An operator and what starts directly inside it have the same level and number.
        SELECT
            *,
            FIRST_VALUE(operator) OVER of_operator AS name,
            FIRST_VALUE(dims) OVER of_operator AS sizes
        FROM (
            SELECT
                *,
                COUNT(operator) OVER (PARTITION BY guid, tid, level ORDER BY place ROWS UNBOUNDED PRECEDING) AS number
            FROM (
                SELECT
                    *,
                    ROW_NUMBER() OVER time AS place,
                    SUM(step) OVER time AS level
                FROM (
                    SELECT
                        C.guid,
                        C.tid,
                        C.start AS at,
                        1 AS step,
                        -C."end" AS first,
                        C.id AS then_by,
                        C.text AS operator,
                        COALESCE(A.value, '') AS dims,
                        CAST(NULL AS INTEGER) AS op_id
                    FROM "rocpd_api" C
                    LEFT JOIN (SELECT guid, event_id, value FROM "rocpd_arg" WHERE name = 'Input Dims') A ON A.guid = C.guid
                    AND A.event_id = C.event_id
                    WHERE C.category = 'TORCH_OPERATOR' AND C.start > 0 AND C."end" > C.start
                    UNION ALL
                    SELECT guid, tid, "end", -1, -start, -id, NULL, NULL, NULL
                    FROM "rocpd_api"
                    WHERE category = 'TORCH_OPERATOR' AND start > 0 AND "end" > start
                    UNION ALL
                    SELECT guid, tid, start, 0, 1, api_ptr_id, NULL, NULL, op_id
                    FROM "rocpd_kernelapi"
                )
                WINDOW time AS (PARTITION BY guid, tid ORDER BY at, step >= 0, first, then_by ROWS UNBOUNDED PRECEDING)
            )
        )
        WINDOW of_operator AS (PARTITION BY guid, tid, level, number ORDER BY place ROWS UNBOUNDED PRECEDING)
    ) T ON T.guid = V.guid
    AND T.op_id = V.op_id
    AND T.level > 0;
