-- Kernel dispatches by kernel name.
SELECT 'KERNELS' AS category, name AS name, duration AS duration
FROM kernels
