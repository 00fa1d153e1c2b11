-- Samples of program counters of one rank, equal ones in one row: `dispatch` is NULL unless ?1 is 1.
SELECT kernel_id AS kernel, agent_id AS agent, CASE WHEN ?1 THEN dispatch_id END AS dispatch, source, instruction,
    code_object_offset AS place, wave_issued AS issued, instruction_type AS type, stall_reason AS reason,
    exec_mask AS mask, COUNT(*) AS samples
FROM pc_samples
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
