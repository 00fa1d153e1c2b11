-- Counter values of one rank, one row per dispatch and counter: instances (dimensions) are added up.
-- A sample of a stream of values (SPM) belongs to no dispatch as a whole and is left out.
SELECT K.kernel_id, I.name, I.units, K.agent_id, K.stream_id, SUM(V.value)
FROM rocpd_pmc_event V
JOIN rocpd_kernel_dispatch K ON K.event_id = V.event_id
LEFT JOIN rocpd_info_pmc I ON I.id = V.pmc_id
WHERE V.sample_id IS NULL
GROUP BY K.id, I.name
