-- Accesses to memory per source line and dispatch, one row per row of rocpd_memory_access.
CREATE VIEW "memory_accesses" AS
SELECT
    A.id AS "id",                           -- row id, unique in its rank
    A.guid AS "guid",                       -- GUID of the rank
    A.kernel AS "kernel",                   -- kernel, without marks of the linker and of the instrumentation
    A.dispatch_id AS "dispatch_id",         -- number of the dispatch, as Omniprobe counts
    A.ordinal AS "ordinal",                 -- which dispatch of this kernel it is, from 1
    A.source_file AS "source_file",         -- file
    A.source_line AS "source_line",         -- line
    A.source_column AS "source_column",     -- column
    A.code AS "code",                       -- text of the line
    A.access AS "access",                   -- read, write or read/write
    A.executions AS "executions",           -- how often waves executed it
    A.ir_bytes AS "ir_bytes",               -- width in the intermediate representation [bytes]
    A.isa_bytes AS "isa_bytes",             -- width of the instruction [bytes]; NULL for banks
    A.isa_instruction AS "isa_instruction", -- instruction; NULL for banks
    A.lines_needed AS "lines_needed",       -- cache lines that would do for the bytes of all active lanes; NULL for banks
    A.lines_used AS "lines_used",           -- cache lines that were touched; NULL for banks
    A.line_size AS "line_size",             -- size of a cache line [bytes]
    A.bank_conflicts AS "bank_conflicts",   -- further accesses that banks needed; NULL for caches
    A.architecture AS "architecture"        -- GPU, NULL where unknown
FROM
    "rocpd_memory_access{{uuid}}" A;
