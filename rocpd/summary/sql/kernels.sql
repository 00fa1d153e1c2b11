-- Kernel dispatches of one rank: category and name as ids, times [ns], agent, stream.
SELECT 0, kernel_id, start, "end", agent_id, stream_id
FROM rocpd_kernel_dispatch
