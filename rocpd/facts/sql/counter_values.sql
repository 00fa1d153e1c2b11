-- Counter values of one rank, one row per instance; samples of a stream of values (SPM) belong to no dispatch.
SELECT id, event_id AS event, pmc_id AS pmc, value FROM rocpd_pmc_event WHERE sample_id IS NULL
