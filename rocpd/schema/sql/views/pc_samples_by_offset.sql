-- Samples of the program counter, one row per row of rocpd_gpu_pc_sample.
CREATE VIEW "pc_samples_by_offset" AS
SELECT
    P.id AS "id",                                                  -- row id, unique in its rank and table
    P.guid AS "guid",                                              -- GUID of the rank
    CASE WHEN P.wave_issued IS NULL THEN 'host_trap' ELSE 'stochastic' END AS "method", -- host_trap, or stochastic, which says whether and why waves wait {text}
    P.timestamp AS "timestamp",                                    -- time of the sample [ns]
    COALESCE(P.agent_id, K.agent_id) AS "agent_id",                -- agent it was taken on {integer}
    P.dispatch_id AS "dispatch_id",                                -- number of the dispatch
    K.kernel_id AS "kernel_id",                                    -- kernel symbol id
    S.display_name AS "kernel",                                    -- kernel name
    P.code_object_id AS "code_object_id",                          -- code object of the instruction, NULL where only its text is known {integer}
    P.code_object_offset AS "code_object_offset",                  -- where in it the instruction is [bytes] {integer}
    D.instruction AS "instruction",                                -- assembly, NULL where it is not known
    NULLIF(D.comment, '') AS "source",                             -- source line as file:line, NULL without -g {text}
    P.exec_mask AS "exec_mask",                                    -- one bit for each active lane
    P.wave_issued AS "wave_issued",                                -- 1: the wave issued the instruction, 0: it waited
    CASE P.inst_type WHEN 0 THEN 'NONE' WHEN 1 THEN 'VALU' WHEN 2 THEN 'MATRIX' WHEN 3 THEN 'SCALAR' WHEN 4 THEN 'TEX' WHEN 5 THEN 'LDS' WHEN 6 THEN 'LDS_DIRECT' WHEN 7 THEN 'FLAT' WHEN 8 THEN 'EXPORT' WHEN 9 THEN 'MESSAGE' WHEN 10 THEN 'BARRIER' WHEN 11 THEN 'BRANCH_NOT_TAKEN' WHEN 12 THEN 'BRANCH_TAKEN' WHEN 13 THEN 'JUMP' WHEN 14 THEN 'OTHER' WHEN 15 THEN 'NO_INST' WHEN 16 THEN 'DUAL_VALU' ELSE CAST(P.inst_type AS TEXT) END AS "instruction_type", -- kind of instruction {text}
    CASE P.stall_reason WHEN 0 THEN 'NONE' WHEN 1 THEN 'NO_INSTRUCTION_AVAILABLE' WHEN 2 THEN 'ALU_DEPENDENCY' WHEN 3 THEN 'WAITCNT' WHEN 4 THEN 'INTERNAL_INSTRUCTION' WHEN 5 THEN 'BARRIER_WAIT' WHEN 6 THEN 'ARBITER_NOT_WIN' WHEN 7 THEN 'ARBITER_WIN_EX_STALL' WHEN 8 THEN 'OTHER_WAIT' WHEN 9 THEN 'SLEEP_WAIT' ELSE CAST(P.stall_reason AS TEXT) END AS "stall_reason", -- why the wave waited {text}
    P.wave_count AS "wave_count"                                   -- waves on the compute unit at that time
FROM
    "rocpd_gpu_pc_sample{{uuid}}" P
    LEFT JOIN "rocpd_disassembly_data{{uuid}}" D ON D.code_object_id = P.code_object_id AND D.code_object_offset = P.code_object_offset
    LEFT JOIN "rocpd_kernel_dispatch{{uuid}}" K ON K.dispatch_id = P.dispatch_id
    LEFT JOIN "rocpd_info_kernel_symbol{{uuid}}" S ON S.id = K.kernel_id;
