-- Calls of one rank that capture a graph or make it executable: row, function, times [ns], thread, arguments by name.
SELECT R.id, S.string, R.start, R."end", R.tid, A.name, A.value
FROM rocpd_region R
JOIN rocpd_event E ON E.id = R.event_id
JOIN rocpd_string S ON S.id = R.name_id
LEFT JOIN rocpd_arg A ON A.event_id = R.event_id
WHERE (S.string LIKE '%StreamBeginCapture%' OR S.string LIKE '%StreamEndCapture%' OR S.string LIKE '%GraphInstantiate%')
    AND {{is_call}}
ORDER BY R.start, R.id
