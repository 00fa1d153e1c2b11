-- Kernel dispatches by bare function name, without signature and template arguments.
SELECT 'KERNELS' AS category, COALESCE(replace(S.truncated_kernel_name, '.kd', ''), K.name) AS name, K.start, K."end"
FROM kernels K
LEFT JOIN kernel_symbols S ON S.id = K.kernel_id
