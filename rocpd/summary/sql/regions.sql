-- API calls by category and function. Markers are counted by message, in markers.sql.
SELECT category AS category, name AS name, start, "end"
FROM regions
WHERE category IS NULL OR (category NOT GLOB 'MARKER_*' AND category NOT GLOB 'rocm_marker*')
