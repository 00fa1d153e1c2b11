-- Memory allocations and frees.
CREATE TABLE "rocpd_memory_allocate{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,                     -- allocation id
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,                             -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                                              -- node the process ran on
    "pid" INTEGER NOT NULL,                                              -- process, by its id in rocpd_info_process (rocprofv3: the OS pid)
    "tid" INTEGER,                                                       -- thread that asked for it
    "agent_id" INTEGER,                                                  -- agent that owns the memory
    "type" TEXT CHECK ("type" IN ('ALLOC', 'FREE', 'REALLOC', 'RECLAIM')), -- operation
    "level" TEXT CHECK ("level" IN ('REAL', 'VIRTUAL', 'SCRATCH')),      -- kind of memory
    "start" BIGINT NOT NULL,                                             -- start of the call [ns]
    "end" BIGINT NOT NULL,                                               -- end of the call [ns]
    "address" INTEGER,                                                   -- address
    "size" INTEGER NOT NULL,                                             -- allocated, 0 for most frees [bytes]
    "queue_id" INTEGER,                                                  -- HSA queue (scratch)
    "stream_id" INTEGER,                                                 -- HIP stream
    "event_id" INTEGER,                                                  -- event that holds category, stack and correlation ids
    "extdata" JSONB DEFAULT '{}' NOT NULL,                               -- flags
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("tid") REFERENCES "rocpd_info_thread{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("agent_id") REFERENCES "rocpd_info_agent{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("queue_id") REFERENCES "rocpd_info_queue{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("stream_id") REFERENCES "rocpd_info_stream{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("event_id") REFERENCES "rocpd_event{{uuid}}" ("id") ON UPDATE CASCADE
);
