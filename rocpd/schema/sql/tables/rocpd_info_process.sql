-- The profiled process.
CREATE TABLE "rocpd_info_process{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- process id (rocprofv3: the OS pid)
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,         -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                          -- node the process ran on
    "ppid" INTEGER,                                  -- OS pid of the parent
    "pid" INTEGER NOT NULL,                          -- OS pid
    "init" BIGINT,                                   -- when the profiler was initialised [ns]
    "fini" BIGINT,                                   -- when the profiler was finalised [ns]
    "start" BIGINT,                                  -- when the process started [ns]
    "end" BIGINT,                                    -- when the process ended [ns]
    "command" TEXT,                                  -- command line
    "environment" JSONB DEFAULT '{}' NOT NULL,       -- environment variables as one JSON object; may hold secrets
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- the profiler's configuration; MPI rank and size where the producer knows them
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node{{uuid}}" ("id") ON UPDATE CASCADE
);
