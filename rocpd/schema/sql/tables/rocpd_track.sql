-- Named time lines for samples.
CREATE TABLE "rocpd_track{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- track id
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,         -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                          -- node the process ran on
    "pid" INTEGER,                                   -- process, if the track belongs to one
    "tid" INTEGER,                                   -- thread, if the track belongs to one
    "name_id" INTEGER,                               -- name of the track
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- further facts
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("tid") REFERENCES "rocpd_info_thread{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("name_id") REFERENCES "rocpd_string{{uuid}}" ("id") ON UPDATE CASCADE
);
