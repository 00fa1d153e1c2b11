-- Code objects that were loaded.
CREATE TABLE "rocpd_info_code_object{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,                  -- code object id
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,                          -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                                           -- node the process ran on
    "pid" INTEGER NOT NULL,                                           -- process, by its id in rocpd_info_process (rocprofv3: the OS pid)
    "agent_id" INTEGER,                                               -- agent it was loaded for
    "uri" TEXT,                                                       -- where it came from
    "load_base" BIGINT,                                               -- address it was loaded at
    "load_size" BIGINT,                                               -- size in memory [bytes]
    "load_delta" BIGINT,                                              -- difference between loaded and linked addresses [bytes]
    "storage_type" TEXT CHECK ("storage_type" IN ('FILE', 'MEMORY')), -- loaded from a file or from memory
    "extdata" JSONB DEFAULT '{}' NOT NULL,                            -- size, memory_base, memory_size, storage_type of the runtime
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("agent_id") REFERENCES "rocpd_info_agent{{uuid}}" ("id") ON UPDATE CASCADE
);
