-- Samples of the clocks of the GPUs of one rank between two times: how many, and their mean.
SELECT COUNT(E.value), AVG(E.value)
FROM rocpd_sample S
JOIN rocpd_pmc_event E ON E.event_id = S.event_id
JOIN rocpd_info_pmc P ON P.id = E.pmc_id
WHERE S."timestamp" BETWEEN ?1 AND ?2
  AND (P.name LIKE '%gfx%clock%' OR P.name LIKE '%gfxclk%' OR P.name LIKE '%sclk%')
