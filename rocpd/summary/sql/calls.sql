-- Regions of one rank that may launch operations: stack id, times [ns].
SELECT R.id AS id, E.stack_id AS stack, R.start, R."end"
FROM rocpd_region R
JOIN rocpd_event E ON E.id = R.event_id
WHERE E.stack_id > 0 AND {{is_call}}
