-- since 3.0.2: Launches of executable HIP graphs.
CREATE TABLE "rocpd_graph_launch{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- launch id
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,         -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                          -- node the process ran on
    "pid" INTEGER NOT NULL,                          -- process, by its id in rocpd_info_process (rocprofv3: the OS pid)
    "tid" INTEGER,                                   -- thread that launched it
    "agent_id" INTEGER,                              -- agent it ran on
    "queue_id" INTEGER,                              -- HSA queue
    "start" BIGINT NOT NULL,                         -- start [ns]
    "end" BIGINT NOT NULL,                           -- end [ns]
    "graph_exec_id" INTEGER,                         -- executable graph
    "kernel_dispatch_count" INTEGER,                 -- kernels in the graph
    "event_id" INTEGER,                              -- event that holds category, stack and correlation ids
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- further facts
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("tid") REFERENCES "rocpd_info_thread{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("agent_id") REFERENCES "rocpd_info_agent{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("queue_id") REFERENCES "rocpd_info_queue{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("event_id") REFERENCES "rocpd_event{{uuid}}" ("id") ON UPDATE CASCADE
);
