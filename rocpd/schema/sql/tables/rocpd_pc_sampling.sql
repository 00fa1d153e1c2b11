-- Samples of the program counter of waves with their instruction as a text: of a fork of rocprofv3, and of rocprofv3's CSV
-- files; only where some were recorded.
CREATE TABLE "rocpd_pc_sampling{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- row id
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,         -- GUID of the process that wrote the row
    "method" TEXT,                                   -- host_trap or stochastic
    "timestamp" BIGINT,                              -- when [ns]
    "exec_mask" INTEGER,                             -- one bit for each lane that is active; the 64th makes it negative
    "dispatch_id" INTEGER,                           -- dispatch that the wave belongs to, as in rocpd_kernel_dispatch
    "instruction" TEXT,                              -- assembly
    "instruction_comment" TEXT,                      -- source line as file:line, where the kernel was compiled with -g
    "correlation_id" INTEGER,                        -- stack_id of the call that launched the kernel
    "wave_issued_instruction" INTEGER,               -- 1: the wave issued the instruction, 0: it waited; NULL for host trap sampling
    "instruction_type" TEXT,                         -- kind of instruction; NULL for host trap sampling
    "stall_reason" TEXT,                             -- why the wave waited; NULL for host trap sampling
    "wave_count" INTEGER                             -- waves on the compute unit then; NULL for host trap sampling
);
