-- Kernel dispatches of one rank with what they were launched with: grid and work-group in work-items, LDS and scratch.
SELECT id, kernel_id AS kernel, agent_id AS agent, grid_size_x, grid_size_y, grid_size_z,
       workgroup_size_x, workgroup_size_y, workgroup_size_z, group_segment_size AS lds, private_segment_size AS scratch,
       start, "end"
FROM rocpd_kernel_dispatch
