-- HSA queues of the process.
CREATE TABLE "rocpd_info_queue{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- queue id: the handle of the runtime, 0 is the default queue
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,         -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                          -- node the process ran on
    "pid" INTEGER NOT NULL,                          -- process, by its id in rocpd_info_process (rocprofv3: the OS pid)
    "name" TEXT,                                     -- queue name
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- further facts
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process{{uuid}}" ("id") ON UPDATE CASCADE
);
