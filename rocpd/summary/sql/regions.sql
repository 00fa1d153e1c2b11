-- Regions of one rank: category and function as ids, times [ns]. Markers are told by their category, and left out.
SELECT E.category_id, R.name_id, R.start, R."end"
FROM rocpd_region R
LEFT JOIN rocpd_event E ON E.id = R.event_id
