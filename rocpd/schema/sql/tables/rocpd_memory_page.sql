-- Accesses to pages of memory per dispatch, as Omniprobe's Heatmap counted them; only where it was imported.
CREATE TABLE "rocpd_memory_page{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- row id
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,         -- GUID of the process that wrote the row
    "kernel" TEXT,                                   -- kernel, without marks of the linker and of the instrumentation
    "dispatch_id" INTEGER,                           -- number of the dispatch, as Omniprobe counts
    "ordinal" INTEGER,                               -- which dispatch of this kernel it is, from 1
    "start_address" INTEGER,                         -- first address
    "end_address" INTEGER,                           -- last address
    "accesses" INTEGER                               -- accesses
);
