-- Values that were sampled while one rank ran, each with what it is and whose: time [ns].
SELECT P.name AS name, P.units AS units, P.agent_id AS agent, S."timestamp" AS at, E.value AS value
FROM rocpd_sample S
JOIN rocpd_pmc_event E ON E.event_id = S.event_id
JOIN rocpd_info_pmc P ON P.id = E.pmc_id
ORDER BY S."timestamp"
