-- Calls of Python functions of one rank: times [ns], thread, id of the name, which is the frame.
SELECT R.id AS id, R.start, R."end", R.tid AS thread, R.name_id AS name
FROM rocpd_region R
JOIN rocpd_event E ON E.id = R.event_id
WHERE E.category_id IN (SELECT id FROM rocpd_string WHERE string = '{{python_function}}')
