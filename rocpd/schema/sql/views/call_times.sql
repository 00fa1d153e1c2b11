-- Calls and markers with their time and the time of the operations that they launched, with and without inner calls on
-- their thread. A range is inside the range that is open when it starts; of two that cross, each keeps its own CPU time.
-- Calls with invalid timestamps (start 0, or end before start) are left out.
CREATE VIEW "call_times" AS
SELECT
    V.id AS "id",                          -- call, in rocpd_api
    T.cpu AS "cpu_time",                   -- end - start [ns] {integer}
    T.cpu - T.cpu_inside AS "cpu_self",    -- the part outside of calls inside it [ns] {integer}
    T.gpu_inside AS "gpu_time",            -- operations launched while it was open on its thread, by it or inside it [ns] {integer}
    T.gpu AS "gpu_self",                   -- operations that it launched itself [ns] {integer}
    T.depth AS "depth",                    -- ranges around it {integer}
    V.guid AS "guid"                       -- GUID of the rank
    {{rank_host_of_V}}
FROM
    "rocpd_api" V
    JOIN (
        -- A range and those directly inside it have the same level and number: each range is there twice.
        -- CAST lets SQLite join by an index.
        SELECT
            guid,
            CAST(MAX(CASE WHEN is_inside = 0 THEN id END) AS INTEGER) AS id,
            MAX(CASE WHEN is_inside = 0 THEN depth END) AS depth,
            MAX(CASE WHEN is_inside = 0 THEN "end" - start END) AS cpu,
            MAX(CASE WHEN is_inside = 0 THEN gpu END) AS gpu,
            MAX(CASE WHEN is_inside = 0 THEN gpu_inside END) AS gpu_inside,
            SUM(CASE WHEN is_inside AND "end" <= until THEN "end" - start ELSE 0 END) AS cpu_inside
        FROM (
            SELECT
                *,
                MAX(CASE WHEN is_inside = 0 THEN "end" END) OVER (PARTITION BY guid, tid, level, number) AS until
            FROM (
                SELECT
                    *,
                    depth - is_inside AS level,
                    SUM(1 - is_inside) OVER (PARTITION BY guid, tid, depth - is_inside ORDER BY place ROWS UNBOUNDED PRECEDING) AS number
                FROM (
                    SELECT
                        guid,
                        tid,
                        id,
                        start,
                        "end",
                        MAX(gpu) AS gpu,
                        MAX(launched) - MIN(launched) + MAX(gpu) AS gpu_inside,
                        MIN(place) AS place,
                        MAX(depth) + ("end" = start) - 1 AS depth
                    FROM (
                        SELECT
                            *,
                            ROW_NUMBER() OVER time AS place,
                            SUM(gpu) OVER time AS launched,
                            SUM(step) OVER time AS depth
                        FROM (
                            SELECT C.guid, C.tid, C.id, C.start, C."end", C.start AS at, C."end" > C.start AS step, -C."end" AS first, C.id AS then_by, COALESCE(G.gpu, 0) AS gpu
                            FROM "rocpd_api" C
                            LEFT JOIN (
                                SELECT O.guid, O.api_id, SUM(P."end" - P.start) AS gpu
                                FROM "rocpd_api_ops" O
                                JOIN "rocpd_op" P ON P.guid = O.guid AND P.id = O.op_id
                                WHERE P.start > 0 AND P."end" >= P.start
                                GROUP BY O.guid, O.api_id
                            ) G ON G.guid = C.guid AND G.api_id = C.id
                            WHERE C.start > 0 AND C."end" >= C.start
                            UNION ALL
                            SELECT guid, tid, id, start, "end", "end", -1, -start, -id, 0
                            FROM "rocpd_api"
                            WHERE start > 0 AND "end" > start
                        )
                        WINDOW time AS (PARTITION BY guid, tid ORDER BY at, step >= 0, first, then_by ROWS UNBOUNDED PRECEDING)
                    )
                    GROUP BY guid, id
                )
                CROSS JOIN (SELECT 0 AS is_inside UNION ALL SELECT 1)
            )
        )
        GROUP BY guid, tid, level, number
    ) T ON T.guid = V.guid
    AND T.id = V.id;
