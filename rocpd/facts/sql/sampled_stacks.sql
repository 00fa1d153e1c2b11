-- Call stacks of samples of one rank between two times: JSON of each, and the time that its samples stand for [ns]
-- where their sampler records it, else their number.
SELECT call_stack, SUM(length)
FROM (
    SELECT E.call_stack,
           CASE WHEN json_valid(E.extdata)
                THEN COALESCE(json_extract(E.extdata, '$.cpu_ns'), json_extract(E.extdata, '$.wall_ns'), 1) ELSE 1 END
           AS length
    FROM rocpd_sample S
    JOIN rocpd_event E ON E.id = S.event_id
    WHERE S."timestamp" BETWEEN ?1 AND ?2
      AND E.call_stack LIKE '[_%]'
    UNION ALL
    SELECT call_stack, length FROM ({{sampled_frames}}) WHERE at BETWEEN ?1 AND ?2
)
GROUP BY call_stack
