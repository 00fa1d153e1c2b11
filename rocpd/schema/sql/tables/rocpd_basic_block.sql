-- Time of basic blocks per dispatch, as Omniprobe's BasicBlockAnalysis measured it; only where it was imported.
CREATE TABLE "rocpd_basic_block{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- row id
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,         -- GUID of the process that wrote the row
    "kernel" TEXT,                                   -- kernel, without marks of the linker and of the instrumentation
    "dispatch_id" INTEGER,                           -- number of the dispatch, as Omniprobe counts
    "ordinal" INTEGER,                               -- which dispatch of this kernel it is, from 1
    "source_file" TEXT,                              -- file
    "start_line" INTEGER,                            -- first line
    "end_line" INTEGER,                              -- last line
    "ticks" REAL,                                    -- ticks of the GPU clock in it
    "executions" INTEGER,                            -- how often it ran
    "branchiness" REAL,                              -- share of lanes that were not active, from 0 to 1
    "overhead" REAL,                                 -- share of the kernel's ticks, from 0 to 1
    "kernel_branchiness" REAL,                       -- branchiness of the kernel
    "instructions" JSONB                             -- instructions: mnemonic -> count
);
