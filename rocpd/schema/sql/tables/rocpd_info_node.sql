-- The machine (or container) a process ran on.
CREATE TABLE "rocpd_info_node{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- node id (rocprofv3: a hash)
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,         -- GUID of the process that wrote the row
    "hash" BIGINT NOT NULL UNIQUE,                   -- hash of machine_id
    "machine_id" TEXT NOT NULL UNIQUE,               -- /etc/machine-id: equal for all containers of one machine
    "system_name" TEXT,                              -- uname: operating system
    "hostname" TEXT,                                 -- uname: host name, often a container id
    "release" TEXT,                                  -- uname: kernel release
    "version" TEXT,                                  -- uname: kernel version
    "hardware_name" TEXT,                            -- uname: machine hardware
    "domain_name" TEXT                               -- uname: NIS domain
);
