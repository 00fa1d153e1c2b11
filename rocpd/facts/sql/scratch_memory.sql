-- Scratch memory of one rank: operation, level, times [ns], agent, stream, size [bytes].
SELECT id, type AS name, level AS detail, start, "end", agent_id AS agent, stream_id AS stream, size
FROM rocpd_memory_allocate
WHERE {{is_scratch}}
