-- Copies by direction.
SELECT 'MEMORY_COPIES' AS category, name AS name, duration AS duration
FROM memory_copies
