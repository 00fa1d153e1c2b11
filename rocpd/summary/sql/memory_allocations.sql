-- Allocations and frees of one rank: operation, level, times [ns], agent, stream, size [bytes].
-- Scratch memory has its own summary and is not counted twice.
SELECT type, level, start, "end", agent_id, stream_id, size
FROM rocpd_memory_allocate
WHERE level IS NOT 'SCRATCH'
