-- Accesses to memory of single waves, one row per row of rocpd_memory_message.
CREATE VIEW "memory_messages" AS
SELECT
    M.id AS "id",                       -- row id, unique in its rank
    M.guid AS "guid",                   -- GUID of the rank
    M.kernel AS "kernel",               -- kernel, without marks of the linker and of the instrumentation
    M.dispatch_id AS "dispatch_id",     -- number of the dispatch, as Omniprobe counts
    M.ordinal AS "ordinal",             -- which dispatch of this kernel it is, from 1
    M.ticks AS "ticks",                 -- clock of the GPU, in ticks
    M.source_line AS "source_line",     -- line
    M.source_column AS "source_column", -- column
    M.block_x AS "block_x",             -- work-group in x, modulo 65536
    M.block_y AS "block_y",             -- in y
    M.block_z AS "block_z",             -- in z
    M.wave AS "wave",                   -- wave in the work-group
    M.xcc AS "xcc",                     -- accelerator complex die
    M.shader_engine AS "shader_engine", -- shader engine
    M.compute_unit AS "compute_unit",   -- compute unit
    M.exec_mask AS "exec_mask",         -- one bit for each lane that is active; the 64th makes it negative
    M.lanes AS "lanes",                 -- lanes that are active
    M.access AS "access",               -- read, write or read/write
    M.addresses AS "addresses"          -- address of each active lane
FROM
    "rocpd_memory_message{{uuid}}" M;
