-- Copies of one rank with the stack id of the call that launched each: direction as id, times [ns], size [bytes].
SELECT M.id AS id, M.name_id AS name, M.start, M."end", M.size, E.stack_id AS stack
FROM rocpd_memory_copy M
LEFT JOIN rocpd_event E ON E.id = M.event_id
