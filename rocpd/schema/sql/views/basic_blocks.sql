-- Time of basic blocks per dispatch, one row per row of rocpd_basic_block.
CREATE VIEW "basic_blocks" AS
SELECT
    B.id AS "id",                                 -- row id, unique in its rank
    B.guid AS "guid",                             -- GUID of the rank
    B.kernel AS "kernel",                         -- kernel, without marks of the linker and of the instrumentation
    B.dispatch_id AS "dispatch_id",               -- number of the dispatch, as Omniprobe counts
    B.ordinal AS "ordinal",                       -- which dispatch of this kernel it is, from 1
    B.source_file AS "source_file",               -- file
    B.start_line AS "start_line",                 -- first line
    B.end_line AS "end_line",                     -- last line
    B.ticks AS "ticks",                           -- ticks of the GPU clock in it
    B.executions AS "executions",                 -- how often it ran
    B.branchiness AS "branchiness",               -- share of lanes that were not active, from 0 to 1
    B.overhead AS "overhead",                     -- share of the kernel's ticks, from 0 to 1
    B.kernel_branchiness AS "kernel_branchiness", -- branchiness of the kernel
    B.instructions AS "instructions"              -- instructions: mnemonic -> count
FROM
    "rocpd_basic_block{{uuid}}" B;
