-- Facts about the file: schema_version, uuid (the table suffix) and guid.
CREATE TABLE "rocpd_metadata{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- row id
    "tag" TEXT NOT NULL,                             -- name of the fact: schema_version, schema_version_major, uuid, guid …
    "value" TEXT NOT NULL                            -- its value as text
);
