-- Counter values.
CREATE TABLE "rocpd_pmc_event{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- value id
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,         -- GUID of the process that wrote the row
    "event_id" INTEGER,                              -- event it was measured for
    "pmc_id" INTEGER NOT NULL,                       -- counter
    "value" REAL DEFAULT 0.0,                        -- value, in the unit of the counter
    "extdata" JSONB DEFAULT '{}',                    -- further facts
    "sample_id" INTEGER,                             -- since 3.0.3: streamed (SPM) sample it belongs to; NULL for a plain counter
    "xcc" INTEGER,                                   -- since 3.0.3: accelerator complex die
    "shader_engine" INTEGER,                         -- since 3.0.3: shader engine
    "instance" INTEGER,                              -- since 3.0.3: instance of the block
    FOREIGN KEY ("event_id") REFERENCES "rocpd_event{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pmc_id") REFERENCES "rocpd_info_pmc{{uuid}}" ("id") ON UPDATE CASCADE
);
