-- Allocations and frees by operation. Scratch memory has its own summary and is not counted twice.
SELECT 'MEMORY_ALLOCATIONS' AS category, type AS name, start, "end"
FROM memory_allocations
WHERE level IS NOT 'SCRATCH'
