-- Samples of the program counter, one row per row of rocpd_pc_sampling.
CREATE VIEW "pc_samples_by_text" AS
SELECT
    P.id AS "id",                                                  -- row id, unique in its rank and table
    P.guid AS "guid",                                              -- GUID of the rank
    P.method AS "method",                                          -- host_trap, or stochastic, which says whether and why waves wait {text}
    P.timestamp AS "timestamp",                                    -- time of the sample [ns]
    K.agent_id AS "agent_id",                                      -- agent it was taken on {integer}
    P.dispatch_id AS "dispatch_id",                                -- number of the dispatch
    K.kernel_id AS "kernel_id",                                    -- kernel symbol id
    S.display_name AS "kernel",                                    -- kernel name
    NULL AS "code_object_id",                                      -- code object of the instruction, NULL where only its text is known {integer}
    NULL AS "code_object_offset",                                  -- where in it the instruction is [bytes] {integer}
    P.instruction AS "instruction",                                -- assembly, NULL where it is not known
    NULLIF(P.instruction_comment, '') AS "source",                 -- source line as file:line, NULL without -g {text}
    P.exec_mask AS "exec_mask",                                    -- one bit for each active lane
    P.wave_issued_instruction AS "wave_issued",                    -- 1: the wave issued the instruction, 0: it waited
    REPLACE(P.instruction_type, 'ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_', '') AS "instruction_type", -- kind of instruction {text}
    REPLACE(P.stall_reason, 'ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_', '') AS "stall_reason", -- why the wave waited {text}
    P.wave_count AS "wave_count"                                   -- waves on the compute unit at that time
FROM
    "rocpd_pc_sampling{{uuid}}" P
    LEFT JOIN "rocpd_kernel_dispatch{{uuid}}" K ON K.dispatch_id = P.dispatch_id
    LEFT JOIN "rocpd_info_kernel_symbol{{uuid}}" S ON S.id = K.kernel_id;
