-- Samples of the program counter of waves, as branches of ROCm after schema 3.0.3 have them; only where some were
-- recorded.
CREATE TABLE "rocpd_gpu_pc_sample{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- row id
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,         -- GUID of the process that wrote the row
    "timestamp" BIGINT,                              -- when [ns]
    "nid" INTEGER,                                   -- node the process ran on
    "pid" INTEGER,                                   -- process
    "tid" INTEGER,                                   -- thread that launched the kernel
    "agent_id" INTEGER,                              -- agent it was taken on
    "event_id" INTEGER,                              -- event
    "dispatch_id" INTEGER,                           -- dispatch that the wave belongs to, as in rocpd_kernel_dispatch
    "correlation_id" INTEGER,                        -- stack_id of the call that launched the kernel
    "exec_mask" INTEGER,                             -- one bit for each lane that is active; the 64th makes it negative
    "code_object_id" INTEGER,                        -- code object of the instruction
    "code_object_offset" INTEGER,                    -- where in it the instruction is [bytes]
    "wave_issued" INTEGER,                           -- 1: the wave issued the instruction, 0: it waited; NULL for host trap sampling
    "inst_type" INTEGER,                             -- kind of instruction, as rocprofiler-sdk numbers them; NULL for host trap sampling
    "stall_reason" INTEGER,                          -- why the wave waited, as rocprofiler-sdk numbers them; NULL for host trap sampling
    "wave_count" INTEGER                             -- waves on the compute unit then; NULL for host trap sampling
);
