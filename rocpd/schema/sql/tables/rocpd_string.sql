-- Texts that other tables refer to by id, each stored once.
CREATE TABLE "rocpd_string{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- string id, local to the GUID
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,         -- GUID of the process that wrote the row
    "string" TEXT NOT NULL UNIQUE ON CONFLICT ABORT  -- the text
);
