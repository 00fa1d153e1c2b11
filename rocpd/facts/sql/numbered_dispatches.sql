-- Kernel dispatches of one rank in the order in which they were dispatched, with the names of their kernels; time [ns].
SELECT K.id AS id, S.display_name AS kernel, K.start AS start, K."end" AS "end"
FROM rocpd_kernel_dispatch K
LEFT JOIN rocpd_info_kernel_symbol S ON S.id = K.kernel_id
ORDER BY K.dispatch_id, K.start, K.id
