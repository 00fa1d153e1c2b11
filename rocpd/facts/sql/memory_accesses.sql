-- Accesses to memory of one rank, as Omniprobe counted them by source line and dispatch.
SELECT kernel, ordinal, source_file, source_line, source_column, access, isa_instruction AS instruction,
    bank_conflicts IS NULL AS is_cache, executions, ir_bytes, isa_bytes, lines_needed, lines_used, bank_conflicts
FROM memory_accesses
