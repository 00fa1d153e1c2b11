-- Calls of one rank that may launch graphs: row, function, times [ns], stack id, executable graph as text.
SELECT R.id, S.string, R.start, R."end", E.stack_id, A.value
FROM rocpd_region R
JOIN rocpd_event E ON E.id = R.event_id
JOIN rocpd_string S ON S.id = R.name_id
LEFT JOIN (SELECT event_id, value FROM rocpd_arg WHERE name IN ('graphExec', 'graphexec', 'hGraphExec')) A
    ON A.event_id = R.event_id
WHERE S.string LIKE '%GraphLaunch%' AND {{is_call}}
ORDER BY R.start, R.id
