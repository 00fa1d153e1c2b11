-- Samples of one rank: category as id, their time [ns] as start and end. Marks have categories of their own.
SELECT M.id AS id, NULL AS name, E.category_id AS category, M."timestamp" AS start, M."timestamp" AS "end"
FROM rocpd_sample M
LEFT JOIN rocpd_event E ON E.id = M.event_id
