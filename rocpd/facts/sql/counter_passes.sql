-- Counter values of one rank where a program ran in several passes: number of the pass, times of the dispatch [ns].
SELECT event_id AS event, pmc_id AS pmc, value, json_extract(extdata, '$.pass') AS pass,
       json_extract(extdata, '$.start') AS start, json_extract(extdata, '$.end') AS "end"
FROM rocpd_pmc_event WHERE sample_id IS NULL AND json_valid(extdata)
