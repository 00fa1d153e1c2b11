-- Kernel dispatches of one rank: kernel, agent, dispatch number, times [ns].
SELECT id, kernel_id AS kernel, agent_id AS agent, dispatch_id AS dispatch, start, "end"
FROM rocpd_kernel_dispatch
