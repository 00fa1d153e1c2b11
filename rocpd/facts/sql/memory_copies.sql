-- Copies of one rank: direction as id, times [ns], the agent that it belongs to, both ends, stream, size [bytes];
-- stack id of the launching call.
SELECT C.id AS id, C.name_id AS name, C.start, C."end", {{copy_agent}} AS agent, C.src_agent_id AS source,
    C.dst_agent_id AS destination, C.stream_id AS stream, C.size, E.stack_id AS stack
FROM rocpd_memory_copy C
LEFT JOIN rocpd_event E ON E.id = C.event_id
