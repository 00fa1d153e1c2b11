-- Calls of one rank with the call stack of their caller: times [ns], thread, event, JSON of the stack.
SELECT R.id AS id, R.start, R."end", R.tid AS thread, R.event_id AS event, E.call_stack AS call_stack
FROM rocpd_region R
JOIN rocpd_event E ON E.id = R.event_id
WHERE E.call_stack LIKE '[_%]' AND {{is_call}}
