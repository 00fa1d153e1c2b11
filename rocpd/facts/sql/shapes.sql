-- Kernels of one rank between two times by their launch parameters: number of dispatches, total time [ns], work-items.
SELECT kernel_id, grid_size_x, grid_size_y, grid_size_z, workgroup_size_x, workgroup_size_y, workgroup_size_z,
       COUNT(*), SUM("end" - start), SUM(grid_size_x * grid_size_y * grid_size_z)
FROM rocpd_kernel_dispatch
WHERE start >= ?1 AND start < ?2 AND "end" BETWEEN start AND ?2
GROUP BY 1, 2, 3, 4, 5, 6, 7
