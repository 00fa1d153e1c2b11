-- Copies by direction.
SELECT 'MEMORY_COPIES' AS category, name AS name, start, "end"
FROM memory_copies
