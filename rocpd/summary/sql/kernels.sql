-- Kernel dispatches of one rank: name as id, times [ns], agent, stream, event.
SELECT id, kernel_id AS name, start, "end", agent_id AS agent, stream_id AS stream, event_id
FROM rocpd_kernel_dispatch
