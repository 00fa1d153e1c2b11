-- Allocations by operation, level and agent: calls, bytes, time.
-- Events with invalid timestamps (start 0, or end before start) count as calls, not as time.
CREATE VIEW "memory_allocation_summary" AS
SELECT
    type AS "type",                                             -- ALLOC, FREE, REALLOC or RECLAIM {text}
    level AS "level",                                           -- REAL, VIRTUAL or SCRATCH {text}
    agent_name AS "agent_name",                                 -- agent: name {text}
    COUNT(*) AS "calls",                                        -- events {integer}
    SUM(size) AS "bytes",                                       -- total size [bytes] {integer}
    SUM(duration) AS "total_ns",                                -- total time [ns] {integer}
    AVG(duration) AS "mean_ns",                                 -- mean time [ns] {real}
    MIN(duration) AS "min_ns",                                  -- shortest [ns] {integer}
    MAX(duration) AS "max_ns"                                   -- longest [ns] {integer}
FROM
    (
        SELECT type, level, agent_name, CASE WHEN {{valid_times}} THEN duration END AS duration, CASE WHEN {{valid_times}} THEN size END AS size
        FROM "memory_allocations"
    )
GROUP BY
    type,
    level,
    agent_name
ORDER BY
    +SUM(duration) DESC, -- without + SQLite 3.53 takes this for the order of a statement over the view
    type,
    level,
    agent_name;
