-- Kernel dispatches of one rank that name their executable graph.
SELECT id, graph_exec_id AS graph FROM rocpd_kernel_dispatch WHERE graph_exec_id IS NOT NULL
