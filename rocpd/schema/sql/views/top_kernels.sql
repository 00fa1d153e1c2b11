-- Kernels by total time. The average keeps its fraction; AMD's own view cuts it to whole nanoseconds first.
-- Events with invalid timestamps (start 0, or end before start) count as calls, not as time.
CREATE VIEW "top_kernels" AS
SELECT
    name AS "name",                                             -- kernel name {text}
    COUNT(*) AS "total_calls",                                  -- dispatches {integer}
    SUM(duration) FILTER (WHERE {{valid_times}}) / 1000.0 AS "total_duration",                 -- total time [us] {real}
    SUM(duration) FILTER (WHERE {{valid_times}}) / (1000.0 * COUNT(*) FILTER (WHERE {{valid_times}})) AS "average",           -- mean time [us] {real}
    SUM(duration) FILTER (WHERE {{valid_times}}) * 100.0 / SUM(SUM(duration) FILTER (WHERE {{valid_times}})) OVER () AS "percentage" -- share of all kernel time [%] {real}
FROM
    "kernels"
GROUP BY
    name
ORDER BY
    +SUM(duration) FILTER (WHERE {{valid_times}}) DESC, -- without + SQLite 3.53 takes this for the order of a statement over the view
    name;
