-- Regions of one rank: function and category as ids, times [ns]. Markers are told by their category.
SELECT R.id AS id, R.name_id AS name, E.category_id AS category, R.start, R."end"
FROM rocpd_region R
LEFT JOIN rocpd_event E ON E.id = R.event_id
