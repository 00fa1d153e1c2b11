-- Accesses to memory per source line and dispatch, as Omniprobe's MemoryAnalysis counted them; only where it was imported.
-- One row per line and kind of access, of caches or of banks of the LDS.
CREATE TABLE "rocpd_memory_access{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- row id
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,         -- GUID of the process that wrote the row
    "kernel" TEXT,                                   -- kernel, without marks of the linker and of the instrumentation
    "dispatch_id" INTEGER,                           -- number of the dispatch, as Omniprobe counts
    "ordinal" INTEGER,                               -- which dispatch of this kernel it is, from 1
    "source_file" TEXT,                              -- file
    "source_line" INTEGER,                           -- line
    "source_column" INTEGER,                         -- column
    "code" TEXT,                                     -- text of the line
    "access" TEXT,                                   -- read, write or read/write
    "executions" INTEGER,                            -- how often waves executed it
    "ir_bytes" INTEGER,                              -- width in the intermediate representation [bytes]
    "isa_bytes" INTEGER,                             -- width of the instruction [bytes]; NULL for banks
    "isa_instruction" TEXT,                          -- instruction; NULL for banks
    "lines_needed" INTEGER,                          -- cache lines that would do for the bytes of all active lanes; NULL for banks
    "lines_used" INTEGER,                            -- cache lines that were touched; NULL for banks
    "line_size" INTEGER,                             -- size of a cache line [bytes]
    "bank_conflicts" INTEGER,                        -- further accesses that banks needed; NULL for caches
    "architecture" TEXT                              -- GPU, NULL where unknown
);
