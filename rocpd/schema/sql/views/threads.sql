-- Threads, one row per row of rocpd_info_thread.
CREATE VIEW "threads" AS
SELECT
    T.nid AS "nid",                 -- node id
    N.machine_id AS "machine_id",   -- machine id, equal for all containers of one machine
    N.system_name AS "system_name", -- operating system
    N.hostname AS "hostname",       -- host name, often a container id
    N.release AS "system_release",  -- kernel release
    N.version AS "system_version",  -- kernel version
    T.guid AS "guid",               -- GUID of the rank
    P.ppid AS "ppid",               -- OS pid of the parent process
    P.pid AS "pid",                 -- OS process id
    T.tid AS "tid",                 -- OS thread id
    T.start AS "start",             -- first seen [ns]
    T.end AS "end",                 -- last seen [ns]
    T.name AS "name"                -- thread name
FROM
    "rocpd_info_thread{{uuid}}" T
    LEFT JOIN "rocpd_info_process{{uuid}}" P ON P.id = T.pid
    LEFT JOIN "rocpd_info_node{{uuid}}" N ON N.id = T.nid;
