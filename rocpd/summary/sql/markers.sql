-- Marker ranges and marks by message.
SELECT 'MARKERS' AS category, name AS name, start, "end"
FROM markers
