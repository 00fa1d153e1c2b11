-- Allocations and frees of one rank: operation, level, times [ns], agent, stream, size [bytes].
-- Scratch memory has its own summary and is not counted twice.
SELECT id, type AS name, level AS detail, start, "end", agent_id AS agent, stream_id AS stream, size
FROM rocpd_memory_allocate
WHERE {{not_scratch}}
