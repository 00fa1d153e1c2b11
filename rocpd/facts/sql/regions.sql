-- Regions of one rank: function and category as ids, times [ns], thread, stack id, event. Markers have categories of
-- their own.
SELECT
    R.id AS id, R.name_id AS name, E.category_id AS category, R.start, R."end", R.tid AS thread, E.stack_id AS stack,
    R.event_id AS event
FROM rocpd_region R
LEFT JOIN rocpd_event E ON E.id = R.event_id
WHERE {{is_call}}
