-- Copies by direction: calls, bytes, time, spread, bandwidth.
-- The deviation takes two passes over the rows: squares of durations would not fit. It adds up whole numbers, so that
-- the order of the rows changes no digit: squares of d, how far a duration is from the mean, with d = 65536 h + l.
-- CROSS JOIN keeps the rows in the outer loop: SQLite otherwise indexes them all (5 times slower at four ranks of
-- 100,000 dispatches).
-- No WITH clause: SQLite 3.54 counts the tables that it sees under one and stops at 1000, which is 50 ranks.
-- Events with invalid timestamps (start 0, or end before start) count as calls, not as time.
CREATE VIEW "memory_copy_summary" AS
SELECT
    V.name AS "name", -- direction {text}
    COUNT(*) AS "calls", -- events {integer}
    SUM(V.size) AS "bytes", -- total size [bytes] {integer}
    SUM(V.duration) AS "total_ns", -- total time [ns] {integer}
    AVG(V.duration) AS "mean_ns", -- mean time [ns] {real}
    MIN(V.duration) AS "min_ns", -- shortest [ns] {integer}
    MAX(V.duration) AS "max_ns", -- longest [ns] {integer}
    CASE WHEN COUNT(V.duration) > 1 THEN SQRT((TOTAL(((V.duration - g.mean) / 65536) * ((V.duration - g.mean) / 65536)) * 4294967296 + TOTAL(((V.duration - g.mean) / 65536) * ((V.duration - g.mean) % 65536)) * 131072 + TOTAL(((V.duration - g.mean) % 65536) * ((V.duration - g.mean) % 65536)) - TOTAL(V.duration - g.mean) * TOTAL(V.duration - g.mean) / COUNT(V.duration)) / (COUNT(V.duration) - 1)) END AS "std_ns", -- sample deviation, NULL for one call [ns] {real}
    SUM(V.duration) * 100.0 / SUM(SUM(V.duration)) OVER () AS "percent", -- share of the total time [%] {real}
    CASE WHEN SUM(V.duration) > 0 THEN SUM(V.size) / 1.073741824 / SUM(V.duration) END AS "gib_per_s" -- bandwidth while copying [GiB/s] {real}
FROM
    (
        SELECT name, CASE WHEN {{valid_times}} THEN duration END AS duration, CASE WHEN {{valid_times}} THEN size END AS size
        FROM "memory_copies"
    ) V
    CROSS JOIN (
        SELECT name, CAST(AVG(CASE WHEN {{valid_times}} THEN duration END) AS INTEGER) AS mean
        FROM "memory_copies"
        GROUP BY name
    ) g ON g.name IS V.name
GROUP BY
    V.name
ORDER BY
    +SUM(V.duration) DESC, -- without + SQLite 3.53 takes this for the order of a statement over the view
    V.name;
