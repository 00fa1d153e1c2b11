-- Calls, time and spread of events by category and name, for one rank.
-- Rows without sound times (start 0 or missing, end before start) count as calls, not as time: timed < calls tells.
-- d = high * 2^20 + low, so that the sum of d*d can be put together exactly from three 64-bit sums:
-- a plain SUM(d * d) of nanoseconds overflows, and a floating one loses digits.
SELECT
    category,                                             -- domain of the events
    name,                                                 -- kernel, direction, function or message
    COUNT(*) AS calls,                                    -- events
    COUNT(d) AS timed,                                    -- events with a duration
    SUM(d) AS total,                                      -- total duration [ns]
    MIN(d) AS shortest,                                   -- shortest [ns]
    MAX(d) AS longest,                                    -- longest [ns]
    SUM((d >> 20) * (d >> 20)) AS high_high,
    SUM((d >> 20) * (d & 1048575)) AS high_low,
    SUM((d & 1048575) * (d & 1048575)) AS low_low
FROM (
    SELECT category, name, CASE WHEN start > 0 AND "end" >= start THEN "end" - start END AS d
    FROM ({{events}})
)
GROUP BY category, name
