-- Messages of the marker ranges of one rank, those that have one: region, message.
SELECT R.id, json_extract(E.extdata, '$.message')
FROM rocpd_region R
JOIN rocpd_event E ON E.id = R.event_id
WHERE E.category_id IN ({{marker_categories}})
    AND json_valid(E.extdata) AND json_extract(E.extdata, '$.message') IS NOT NULL
