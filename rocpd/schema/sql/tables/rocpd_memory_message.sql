-- Accesses to memory one by one, of one wave each, as Omniprobe's AddressLogger wrote them; only where it was imported.
CREATE TABLE "rocpd_memory_message{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- row id
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,         -- GUID of the process that wrote the row
    "kernel" TEXT,                                   -- kernel, without marks of the linker and of the instrumentation
    "dispatch_id" INTEGER,                           -- number of the dispatch, as Omniprobe counts
    "ordinal" INTEGER,                               -- which dispatch of this kernel it is, from 1
    "ticks" INTEGER,                                 -- clock of the GPU, in ticks
    "source_line" INTEGER,                           -- line
    "source_column" INTEGER,                         -- column
    "block_x" INTEGER,                               -- work-group in x, modulo 65536
    "block_y" INTEGER,                               -- in y
    "block_z" INTEGER,                               -- in z
    "wave" INTEGER,                                  -- wave in the work-group
    "xcc" INTEGER,                                   -- accelerator complex die
    "shader_engine" INTEGER,                         -- shader engine
    "compute_unit" INTEGER,                          -- compute unit
    "exec_mask" INTEGER,                             -- one bit for each lane that is active; the 64th makes it negative
    "lanes" INTEGER,                                 -- lanes that are active
    "access" TEXT,                                   -- read, write or read/write
    "addresses" JSONB                                -- address of each active lane
);
