-- Samples of the clocks of the GPUs of one rank between two times: how many, and their mean.
SELECT COUNT(V.value), AVG(V.value)
FROM rocpd_sample S
JOIN rocpd_pmc_event V ON V.event_id = S.event_id
JOIN rocpd_info_pmc P ON P.id = V.pmc_id
LEFT JOIN rocpd_track T ON T.id = S.track_id
LEFT JOIN rocpd_string N ON N.id = T.name_id
WHERE S."timestamp" BETWEEN ?1 AND ?2
  AND (N.id IS NULL OR {{own_sample}})
  AND {{no_sentinel}}
  AND (P.name LIKE '%gfx%clock%' OR P.name LIKE '%gfxclk%' OR P.name LIKE '%sclk%')
