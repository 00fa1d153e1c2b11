-- Arguments of events, in order.
CREATE TABLE "rocpd_arg{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- argument id
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,         -- GUID of the process that wrote the row
    "event_id" INTEGER NOT NULL,                     -- event it belongs to
    "position" INTEGER NOT NULL,                     -- position in the argument list, from 0
    "type" TEXT NOT NULL,                            -- declared type
    "name" TEXT NOT NULL,                            -- parameter name
    "value" TEXT,                                    -- value as text
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- further facts
    FOREIGN KEY ("event_id") REFERENCES "rocpd_event{{uuid}}" ("id") ON UPDATE CASCADE
);
