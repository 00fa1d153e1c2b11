-- Kernel dispatches: kernels that ran on an agent.
CREATE TABLE "rocpd_kernel_dispatch{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- dispatch row id
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,         -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                          -- node the process ran on
    "pid" INTEGER NOT NULL,                          -- process, by its id in rocpd_info_process (rocprofv3: the OS pid)
    "tid" INTEGER,                                   -- thread that launched it
    "agent_id" INTEGER NOT NULL,                     -- agent it ran on
    "kernel_id" INTEGER NOT NULL,                    -- kernel
    "dispatch_id" INTEGER NOT NULL,                  -- sequence number of the dispatch in its process
    "queue_id" INTEGER NOT NULL,                     -- HSA queue
    "stream_id" INTEGER NOT NULL,                    -- HIP stream
    "start" BIGINT NOT NULL,                         -- start on the agent [ns]
    "end" BIGINT NOT NULL,                           -- end on the agent [ns]
    "private_segment_size" INTEGER,                  -- scratch per work-item [bytes]
    "group_segment_size" INTEGER,                    -- LDS per work-group [bytes]
    "workgroup_size_x" INTEGER NOT NULL,             -- work-items per work-group in x
    "workgroup_size_y" INTEGER NOT NULL,             -- work-items per work-group in y
    "workgroup_size_z" INTEGER NOT NULL,             -- work-items per work-group in z
    "grid_size_x" INTEGER NOT NULL,                  -- work-items of the grid in x
    "grid_size_y" INTEGER NOT NULL,                  -- work-items of the grid in y
    "grid_size_z" INTEGER NOT NULL,                  -- work-items of the grid in z
    "region_name_id" INTEGER,                        -- text of the enclosing marker, or the empty string
    "event_id" INTEGER,                              -- event that holds category, stack and correlation ids
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- further facts
    "graph_exec_id" INTEGER,                         -- since 3.0.2: executable graph that launched it
    "graph_node_id" INTEGER,                         -- since 3.0.2: node of that graph
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("tid") REFERENCES "rocpd_info_thread{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("agent_id") REFERENCES "rocpd_info_agent{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("kernel_id") REFERENCES "rocpd_info_kernel_symbol{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("queue_id") REFERENCES "rocpd_info_queue{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("stream_id") REFERENCES "rocpd_info_stream{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("region_name_id") REFERENCES "rocpd_string{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("event_id") REFERENCES "rocpd_event{{uuid}}" ("id") ON UPDATE CASCADE
);
