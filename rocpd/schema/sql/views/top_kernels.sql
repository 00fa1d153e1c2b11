-- Kernels by total time. The average keeps its fraction; AMD's own view cuts it to whole nanoseconds first.
CREATE VIEW "top_kernels" AS
SELECT
    name AS "name",                                             -- kernel name {text}
    COUNT(*) AS "total_calls",                                  -- dispatches {integer}
    SUM(duration) / 1000.0 AS "total_duration",                 -- total time [us] {real}
    SUM(duration) / (1000.0 * COUNT(*)) AS "average",           -- mean time [us] {real}
    SUM(duration) * 100.0 / SUM(SUM(duration)) OVER () AS "percentage" -- share of all kernel time [%] {real}
FROM
    "kernels"
GROUP BY
    name
ORDER BY
    +SUM(duration) DESC, -- without + SQLite 3.53 takes this for the order of a statement over the view
    name;
