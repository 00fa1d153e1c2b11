-- Start and end of the kernels of one rank that ran between two times [ns].
SELECT start, "end"
FROM rocpd_kernel_dispatch
WHERE start >= ?1 AND start < ?2 AND "end" BETWEEN start AND ?2
