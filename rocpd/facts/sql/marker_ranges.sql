-- Marker ranges of one rank: message, times [ns], thread.
SELECT
    R.id AS id, R.tid AS thread, R.start, R."end",
    COALESCE(CASE WHEN json_valid(E.extdata) THEN json_extract(E.extdata, '$.message') END, S.string) AS name
FROM rocpd_region R
JOIN rocpd_event E ON E.id = R.event_id
LEFT JOIN rocpd_string S ON S.id = R.name_id
WHERE E.category_id IN ({{marker_categories}})
