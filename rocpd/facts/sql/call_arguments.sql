-- Arguments of the calls of one rank: region, function, name, value.
SELECT R.id AS region, S.string AS function, A.name AS name, A.value AS value
FROM rocpd_region R
JOIN rocpd_string S ON S.id = R.name_id
JOIN rocpd_arg A ON A.event_id = R.event_id
