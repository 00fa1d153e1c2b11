-- Agents: the CPUs, GPUs and NICs of the node.
CREATE TABLE "rocpd_info_agent{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,     -- agent id (rocprofv3: absolute_index)
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,             -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                              -- node the process ran on
    "pid" INTEGER NOT NULL,                              -- process, by its id in rocpd_info_process (rocprofv3: the OS pid)
    "type" TEXT CHECK ("type" IN ('CPU', 'GPU', 'NIC')), -- kind of agent; NIC since 3.0.1
    "absolute_index" INTEGER,                            -- index of the hardware node
    "logical_index" INTEGER,                             -- index among the agents visible to the process
    "type_index" INTEGER,                                -- index among the visible agents of its type
    "uuid" INTEGER,                                      -- hardware id
    "name" TEXT,                                         -- architecture, such as gfx942
    "model_name" TEXT,                                   -- model as the driver names it
    "vendor_name" TEXT,                                  -- vendor
    "product_name" TEXT,                                 -- marketing name, such as AMD Instinct MI300X
    "user_name" TEXT,                                    -- readable name
    "extdata" JSONB DEFAULT '{}' NOT NULL,               -- full hardware description: cu_count, wave_front_size, num_xcc, mem_banks …
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process{{uuid}}" ("id") ON UPDATE CASCADE
);
