-- Scratch memory by operation.
SELECT 'SCRATCH_MEMORY' AS category, operation AS name, duration AS duration
FROM scratch_memory
