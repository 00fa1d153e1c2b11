-- Allocations and frees of one rank with the stack id of their call: operation, level, times [ns], size [bytes] …
SELECT
    M.id AS id, M.type AS type, M.level AS level, M.start, M."end", M.agent_id AS agent, M.stream_id AS stream,
    M.queue_id AS queue, M.address, M.size, E.stack_id AS stack
FROM rocpd_memory_allocate M
LEFT JOIN rocpd_event E ON E.id = M.event_id
