-- Samples of the program counter of waves: where kernels spend their time, instruction by instruction. From all
-- tables of samples.
CREATE VIEW "pc_samples" AS
SELECT
    V."id" AS "id",                                 -- row id, unique in its rank and table
    V."guid" AS "guid",                             -- GUID of the rank
    V."method" AS "method",                         -- host_trap, or stochastic, which says whether and why waves wait
    V."timestamp" AS "timestamp",                   -- time of the sample [ns]
    V."agent_id" AS "agent_id",                     -- agent it was taken on
    V."dispatch_id" AS "dispatch_id",               -- number of the dispatch
    V."kernel_id" AS "kernel_id",                   -- kernel symbol id
    V."kernel" AS "kernel",                         -- kernel name
    V."code_object_id" AS "code_object_id",         -- code object of the instruction, NULL where only its text is known
    V."code_object_offset" AS "code_object_offset", -- where in it the instruction is [bytes]
    V."instruction" AS "instruction",               -- assembly, NULL where it is not known
    V."source" AS "source",                         -- source line as file:line, NULL without -g
    V."exec_mask" AS "exec_mask",                   -- one bit for each active lane
    V."wave_issued" AS "wave_issued",               -- 1: the wave issued the instruction, 0: it waited
    V."instruction_type" AS "instruction_type",     -- kind of instruction
    V."stall_reason" AS "stall_reason",             -- why the wave waited
    V."wave_count" AS "wave_count"                  -- waves on the compute unit at that time
    {{rank_host_of_V}}
FROM
    "pc_samples_by_offset" V
UNION ALL
SELECT
    V."id",
    V."guid",
    V."method",
    V."timestamp",
    V."agent_id",
    V."dispatch_id",
    V."kernel_id",
    V."kernel",
    V."code_object_id",
    V."code_object_offset",
    V."instruction",
    V."source",
    V."exec_mask",
    V."wave_issued",
    V."instruction_type",
    V."stall_reason",
    V."wave_count"
    {{rank_host_of_V}}
FROM
    "pc_samples_by_text" V;
