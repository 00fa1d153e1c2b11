-- Scratch memory of one rank: operation, level, times [ns], agent, stream, size [bytes].
SELECT type, level, start, "end", agent_id, stream_id, size
FROM rocpd_memory_allocate
WHERE level = 'SCRATCH'
