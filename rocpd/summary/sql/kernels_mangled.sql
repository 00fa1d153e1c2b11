-- Kernel dispatches by mangled kernel name.
SELECT 'KERNELS' AS category, COALESCE(S.kernel_name, K.name) AS name, K.start, K."end"
FROM kernels K
LEFT JOIN kernel_symbols S ON S.id = K.kernel_id
