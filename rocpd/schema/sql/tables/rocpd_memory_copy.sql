-- Memory copies between agents.
CREATE TABLE "rocpd_memory_copy{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- copy id
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,         -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                          -- node the process ran on
    "pid" INTEGER NOT NULL,                          -- process, by its id in rocpd_info_process (rocprofv3: the OS pid)
    "tid" INTEGER,                                   -- thread that asked for it
    "start" BIGINT NOT NULL,                         -- start [ns]
    "end" BIGINT NOT NULL,                           -- end [ns]
    "name_id" INTEGER NOT NULL,                      -- direction, such as MEMORY_COPY_HOST_TO_DEVICE
    "dst_agent_id" INTEGER,                          -- agent written to
    "dst_address" INTEGER,                           -- address written to
    "src_agent_id" INTEGER,                          -- agent read from
    "src_address" INTEGER,                           -- address read from
    "size" INTEGER NOT NULL,                         -- copied [bytes]
    "queue_id" INTEGER,                              -- HSA queue
    "stream_id" INTEGER,                             -- HIP stream
    "region_name_id" INTEGER,                        -- text of the enclosing marker, or the empty string
    "event_id" INTEGER,                              -- event that holds category, stack and correlation ids
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- further facts
    "graph_exec_id" INTEGER,                         -- since 3.0.2: executable graph that launched it
    "graph_node_id" INTEGER,                         -- since 3.0.2: node of that graph
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("tid") REFERENCES "rocpd_info_thread{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("name_id") REFERENCES "rocpd_string{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("dst_agent_id") REFERENCES "rocpd_info_agent{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("src_agent_id") REFERENCES "rocpd_info_agent{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("queue_id") REFERENCES "rocpd_info_queue{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("stream_id") REFERENCES "rocpd_info_stream{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("region_name_id") REFERENCES "rocpd_string{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("event_id") REFERENCES "rocpd_event{{uuid}}" ("id") ON UPDATE CASCADE
);
