-- Marker ranges and marks of one rank: message, times [ns].
SELECT name, NULL, start, "end", NULL, NULL, 0
FROM markers
