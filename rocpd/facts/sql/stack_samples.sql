-- Samples of call stacks of one rank: time [ns], thread and event, time that the sample stands for where its sampler
-- records it [ns], JSON of the stack.
SELECT M.id AS id, M."timestamp" AS at, T.tid AS thread, M.event_id AS event,
       CASE WHEN json_valid(E.extdata)
            THEN COALESCE(json_extract(E.extdata, '$.cpu_ns'), json_extract(E.extdata, '$.wall_ns')) END AS length,
       E.call_stack AS call_stack
FROM rocpd_sample M
JOIN rocpd_event E ON E.id = M.event_id
LEFT JOIN rocpd_track T ON T.id = M.track_id
WHERE E.call_stack LIKE '[_%]'
