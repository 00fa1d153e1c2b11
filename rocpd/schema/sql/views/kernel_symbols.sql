-- Kernels of the loaded code objects, one row per row of rocpd_info_kernel_symbol.
CREATE VIEW "kernel_symbols" AS
SELECT
    S.id AS "id",                                            -- kernel id, unique in its rank
    S.guid AS "guid",                                        -- GUID of the rank
    S.nid AS "nid",                                          -- node id
    P.pid AS "pid",                                          -- OS process id
    S.code_object_id AS "code_object_id",                    -- code object that holds it
    S.kernel_name AS "kernel_name",                          -- mangled name with .kd
    S.display_name AS "display_name",                        -- readable name
    S.kernel_object AS "kernel_object",                      -- address of the kernel descriptor
    S.kernarg_segment_size AS "kernarg_segment_size",        -- kernel arguments [bytes]
    S.kernarg_segment_alignment AS "kernarg_segment_alignment", -- alignment of the arguments [bytes]
    S.group_segment_size AS "group_segment_size",            -- static LDS per work-group [bytes]
    S.private_segment_size AS "private_segment_size",        -- static scratch per work-item [bytes]
    S.sgpr_count AS "sgpr_count",                            -- scalar registers per wave
    S.arch_vgpr_count AS "arch_vgpr_count",                  -- vector registers per work-item
    S.accum_vgpr_count AS "accum_vgpr_count",                -- accumulation registers per work-item
    CASE WHEN json_valid(S.extdata) THEN json_extract(S.extdata, '$.size') END AS "kernel_symbol_size", -- size of the runtime record [bytes] {integer}
    CASE WHEN json_valid(S.extdata) THEN json_extract(S.extdata, '$.kernel_id') END AS "kernel_id", -- kernel id of the runtime {integer}
    CASE WHEN json_valid(S.extdata) THEN json_extract(S.extdata, '$.kernel_code_entry_byte_offset') END AS "kernel_code_entry_byte_offset", -- offset of the entry point [bytes] {integer}
    CASE WHEN json_valid(S.extdata) THEN json_extract(S.extdata, '$.formatted_kernel_name') END AS "formatted_kernel_name", -- name with template arguments {text}
    CASE WHEN json_valid(S.extdata) THEN json_extract(S.extdata, '$.demangled_kernel_name') END AS "demangled_kernel_name", -- full demangled signature {text}
    CASE WHEN json_valid(S.extdata) THEN json_extract(S.extdata, '$.truncated_kernel_name') END AS "truncated_kernel_name", -- bare function name {text}
    CASE WHEN json_valid(S.extdata) THEN json_extract(S.extdata, '$.kernel_address.handle') END AS "kernel_address" -- address of the kernel {integer}
FROM
    "rocpd_info_kernel_symbol{{uuid}}" S
    LEFT JOIN "rocpd_info_process{{uuid}}" P ON P.id = S.pid;
