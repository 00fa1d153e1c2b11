-- Marker ranges and marks by message.
SELECT 'MARKERS' AS category, name AS name, duration AS duration
FROM markers
