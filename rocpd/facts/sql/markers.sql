-- Marker ranges and marks of one rank, as the view `markers`, which looks up more: message, times [ns].
SELECT
    COALESCE(CASE WHEN json_valid(E.extdata) THEN json_extract(E.extdata, '$.message') END, S.string) AS name,
    R.start, R."end"
FROM rocpd_region R
JOIN rocpd_event E ON E.id = R.event_id
LEFT JOIN rocpd_string S ON S.id = R.name_id
WHERE E.category_id IN ({{marker_categories}})
UNION ALL
SELECT
    COALESCE(CASE WHEN json_valid(E.extdata) THEN json_extract(E.extdata, '$.message') END, S.string),
    M."timestamp", M."timestamp"
FROM rocpd_sample M
JOIN rocpd_event E ON E.id = M.event_id
LEFT JOIN rocpd_track T ON T.id = M.track_id
LEFT JOIN rocpd_string S ON S.id = T.name_id
WHERE E.category_id IN ({{marker_categories}})
