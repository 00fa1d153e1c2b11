-- Allocations and frees by operation. Scratch memory has its own summary and is not counted twice.
SELECT 'MEMORY_ALLOCATIONS' AS category, type AS name, duration AS duration
FROM memory_allocations
WHERE level IS NOT 'SCRATCH'
