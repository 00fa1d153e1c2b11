-- Points in time on a track: samples and marks.
CREATE TABLE "rocpd_sample{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- sample id
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,         -- GUID of the process that wrote the row
    "track_id" INTEGER NOT NULL,                     -- track it lies on
    "timestamp" BIGINT NOT NULL,                     -- when [ns]
    "event_id" INTEGER,                              -- event that holds category, stack and correlation ids
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- further facts
    FOREIGN KEY ("track_id") REFERENCES "rocpd_track{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("event_id") REFERENCES "rocpd_event{{uuid}}" ("id") ON UPDATE CASCADE
);
