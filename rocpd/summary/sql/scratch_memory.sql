-- Scratch memory by operation.
SELECT 'SCRATCH_MEMORY' AS category, operation AS name, start, "end"
FROM scratch_memory
