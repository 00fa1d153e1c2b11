-- Operators of PyTorch of one rank: name as id, times [ns], thread, event.
SELECT R.id AS id, R.name_id AS name, R.start, R."end", R.tid AS thread, R.event_id AS event
FROM rocpd_region R
JOIN rocpd_event E ON E.id = R.event_id
WHERE E.category_id IN (SELECT id FROM rocpd_string WHERE string = '{{operator}}')
