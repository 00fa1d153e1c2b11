-- Counters that could be collected, one row per counter and agent.
CREATE TABLE "rocpd_info_pmc{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,                     -- counter id
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,                             -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                                              -- node the process ran on
    "pid" INTEGER NOT NULL,                                              -- process, by its id in rocpd_info_process (rocprofv3: the OS pid)
    "agent_id" INTEGER,                                                  -- agent that counts
    "target_arch" TEXT CHECK ("target_arch" IN ('CPU', 'GPU', 'NIC')),   -- kind of agent; NIC since 3.0.1
    "event_code" INT,                                                    -- hardware event number
    "instance_id" INTEGER,                                               -- instance of the hardware block
    "name" TEXT NOT NULL,                                                -- counter name
    "symbol" TEXT NOT NULL,                                              -- short name
    "description" TEXT,                                                  -- the counted events
    "long_description" TEXT DEFAULT '',                                  -- the counted events, at length
    "component" TEXT,                                                    -- software component that reads it
    "units" TEXT DEFAULT '',                                             -- unit of the value
    "value_type" TEXT CHECK ("value_type" IN ('ABS', 'ACCUM', 'RELATIVE')), -- absolute, accumulated or relative value
    "block" TEXT,                                                        -- hardware block
    "expression" TEXT,                                                   -- formula of a derived counter
    "is_constant" INTEGER,                                               -- 1: a constant of the device
    "is_derived" INTEGER,                                                -- 1: computed from other counters
    "extdata" JSONB DEFAULT '{}' NOT NULL,                               -- further facts
    "spm_support" INTEGER,                                               -- since 3.0.3: 1 when it can be streamed (SPM)
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("agent_id") REFERENCES "rocpd_info_agent{{uuid}}" ("id") ON UPDATE CASCADE
);
