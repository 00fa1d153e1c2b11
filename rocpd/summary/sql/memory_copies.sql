-- Copies of one rank: direction as id, times [ns], the agent that each belongs to, stream, size [bytes], event.
SELECT id, name_id AS name, start, "end", {{copy_agent}} AS agent, stream_id AS stream, size, event_id
FROM rocpd_memory_copy
