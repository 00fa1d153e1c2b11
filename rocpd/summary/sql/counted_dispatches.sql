-- Dispatches of one rank with their event, and what they were launched with: work-items, LDS and scratch in bytes.
SELECT id, event_id AS event, dispatch_id AS number, kernel_id AS kernel, agent_id AS agent,
       grid_size_x * grid_size_y * grid_size_z AS grid_size,
       workgroup_size_x * workgroup_size_y * workgroup_size_z AS workgroup_size,
       group_segment_size AS lds_bytes, private_segment_size AS scratch_bytes, start, "end"
FROM rocpd_kernel_dispatch
