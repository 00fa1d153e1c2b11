-- Kernels by enclosing marker and name: calls, time, spread.
-- The deviation takes two passes over the rows: a sum of squares would lose its digits. CROSS JOIN keeps the rows
-- in the outer loop: SQLite otherwise indexes them all (5 times slower at four ranks of 100,000 dispatches).
CREATE VIEW "kernel_summary_region" AS
WITH
    g AS (
        SELECT region, name, COUNT(*) AS calls, SUM(duration) AS total_ns, AVG(duration) AS mean_ns, MIN(duration) AS min_ns, MAX(duration) AS max_ns
        FROM "kernels"
        GROUP BY region, name
    ),
    d AS (
        SELECT g.region, g.name, SUM((V.duration - g.mean_ns) * (V.duration - g.mean_ns)) AS squares
        FROM "kernels" V
        CROSS JOIN g ON g.region IS V.region AND g.name IS V.name
        GROUP BY g.region, g.name
    )
SELECT
    g.region AS "region", -- text of the enclosing marker
    g.name AS "name", -- kernel name
    g.calls AS "calls", -- events
    g.total_ns AS "total_ns", -- total time [ns]
    g.mean_ns AS "mean_ns", -- mean time [ns]
    g.min_ns AS "min_ns", -- shortest [ns]
    g.max_ns AS "max_ns", -- longest [ns]
    CASE WHEN g.calls > 1 THEN SQRT(d.squares / (g.calls - 1)) END AS "std_ns", -- sample deviation, NULL for one call [ns]
    g.total_ns * 100.0 / SUM(g.total_ns) OVER () AS "percent" -- share of the total time [%]
FROM
    g
    JOIN d ON d.region IS g.region AND d.name IS g.name
ORDER BY
    g.total_ns DESC,
    g.region, g.name;
