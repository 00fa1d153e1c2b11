-- RPD's name (autogradKernel): kernels by the operator of PyTorch that launched them and the sizes of its inputs. The
-- operator is the innermost one that is open on the thread where the launch starts; launches of graphs do not count.
CREATE VIEW "autogradkernel" AS
SELECT
    name AS "autogradName",                       -- operator {text}
    kernelName AS "kernelName",                   -- kernel name {text}
    sizes AS "sizes",                             -- of its inputs, empty where not recorded {text}
    COUNT(*) AS "calls",                          -- launches {integer}
    AVG(gpu) AS "avg_gpu",                        -- mean time of the kernel [ns] {real}
    SUM(gpu) AS "total_gpu"                       -- time of the kernels [ns] {integer}
FROM
    (
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
                        NULL AS kernelName,
                        NULL AS gpu
                    FROM "rocpd_api" C
                    LEFT JOIN (SELECT guid, event_id, value FROM "rocpd_arg" WHERE name = 'Input Dims') A ON A.guid = C.guid
                    AND A.event_id = C.event_id
                    WHERE C.category = 'TORCH_OPERATOR' AND C.start > 0 AND C."end" > C.start
                    UNION ALL
                    SELECT guid, tid, "end", -1, -start, -id, NULL, NULL, NULL, NULL
                    FROM "rocpd_api"
                    WHERE category = 'TORCH_OPERATOR' AND start > 0 AND "end" > start
                    UNION ALL
                    SELECT C.guid, C.tid, C.start, 0, 1, C.id, NULL, NULL, K.kernelName, P."end" - P.start
                    FROM "rocpd_kernelapi" K
                    JOIN "rocpd_api" C ON C.guid = K.guid AND C.id = K.api_ptr_id
                    JOIN "rocpd_op" P ON P.guid = K.guid AND P.id = K.op_id
                )
                WINDOW time AS (PARTITION BY guid, tid ORDER BY at, step >= 0, first, then_by ROWS UNBOUNDED PRECEDING)
            )
        )
        WINDOW of_operator AS (PARTITION BY guid, tid, level, number ORDER BY place ROWS UNBOUNDED PRECEDING)
    )
WHERE
    kernelName IS NOT NULL
    AND level > 0
GROUP BY
    name,
    kernelName,
    sizes
ORDER BY
    name,
    kernelName,
    sizes;
