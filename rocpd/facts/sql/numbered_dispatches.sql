-- Kernel dispatches of one rank in the order of dispatch, with the names of their kernels; times [ns].
SELECT K.id AS id, S.display_name AS kernel, K.start AS start, K."end" AS "end"
FROM rocpd_kernel_dispatch K
LEFT JOIN rocpd_info_kernel_symbol S ON S.id = K.kernel_id
ORDER BY K.dispatch_id, K.start, K.id
