-- Facts of operators of one rank: event, name of the fact, its text.
SELECT event_id, name, value FROM rocpd_arg WHERE name IN ('Input Dims', 'Concrete Inputs', 'Sequence number')
