-- Kernel dispatches by kernel name.
SELECT 'KERNELS' AS category, name AS name, start, "end"
FROM kernels
