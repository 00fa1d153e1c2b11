-- Threads of the process.
CREATE TABLE "rocpd_info_thread{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- thread id (rocprofv3: the OS tid)
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,         -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                          -- node the process ran on
    "ppid" INTEGER,                                  -- OS pid of the parent process
    "pid" INTEGER NOT NULL,                          -- process, by its id in rocpd_info_process (rocprofv3: the OS pid)
    "tid" INTEGER NOT NULL,                          -- OS thread id
    "name" TEXT,                                     -- thread name
    "start" BIGINT,                                  -- first seen [ns]
    "end" BIGINT,                                    -- last seen [ns]
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- further facts
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process{{uuid}}" ("id") ON UPDATE CASCADE
);
