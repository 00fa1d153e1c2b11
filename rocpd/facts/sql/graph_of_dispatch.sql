-- Kernel dispatches of one rank that name the executable graph that they are of.
SELECT id, graph_exec_id AS graph FROM rocpd_kernel_dispatch WHERE graph_exec_id IS NOT NULL
