-- Values that were sampled while one rank ran, each with its counter: time, and end of its validity where it was
-- recorded [ns].
SELECT P.id AS pmc, S."timestamp" AS at, V.value AS value,
    CASE WHEN json_valid(E.extdata) THEN json_extract(E.extdata, '$.end') END AS until
FROM rocpd_sample S
JOIN rocpd_pmc_event V ON V.event_id = S.event_id
JOIN rocpd_info_pmc P ON P.id = V.pmc_id
LEFT JOIN rocpd_event E ON E.id = S.event_id
LEFT JOIN rocpd_track T ON T.id = S.track_id
LEFT JOIN rocpd_string N ON N.id = T.name_id
WHERE N.id IS NULL OR {{own_sample}}
ORDER BY S."timestamp"
