-- Kernels, copies and regions by total time. CPU and GPU time are counted side by side, as in AMD's view.
-- Events with invalid timestamps (start 0, or end before start) count as calls, not as time.
CREATE VIEW "top" AS
SELECT
    name AS "name",                                             -- kernel, copy direction or function {text}
    COUNT(*) AS "total_calls",                                  -- events {integer}
    SUM(duration) / 1000.0 AS "total_duration",                 -- total time [us] {real}
    SUM(duration) / (1000.0 * COUNT(duration)) AS "average",           -- mean time [us] {real}
    SUM(duration) * 100.0 / SUM(SUM(duration)) OVER () AS "percentage" -- share of the time of all events [%] {real}
FROM
    (
        SELECT name, CASE WHEN {{valid_times}} THEN duration END AS duration
        FROM "kernels"
        UNION ALL
        SELECT name, CASE WHEN {{valid_times}} THEN duration END AS duration
        FROM "memory_copies"
        UNION ALL
        SELECT name, CASE WHEN {{valid_times}} THEN duration END AS duration
        FROM "regions"
    )
GROUP BY
    name
ORDER BY
    +SUM(duration) DESC, -- without + SQLite 3.53 takes this for the order of a statement over the view
    name;
