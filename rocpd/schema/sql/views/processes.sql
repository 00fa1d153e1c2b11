-- Processes, one row per row of rocpd_info_process.
CREATE VIEW "processes" AS
SELECT
    P.nid AS "nid",                 -- node id
    N.machine_id AS "machine_id",   -- machine id, equal for all containers of one machine
    N.system_name AS "system_name", -- operating system
    N.hostname AS "hostname",       -- host name, often a container id
    N.release AS "system_release",  -- kernel release
    N.version AS "system_version",  -- kernel version
    P.guid AS "guid",               -- GUID of the rank
    P.ppid AS "ppid",               -- OS pid of the parent
    P.pid AS "pid",                 -- OS process id
    P.init AS "init",               -- profiler initialised [ns]
    P.start AS "start",             -- process started [ns]
    P.end AS "end",                 -- process ended [ns]
    P.fini AS "fini",               -- profiler finalised [ns]
    P.command AS "command"          -- command line
FROM
    "rocpd_info_process{{uuid}}" P
    LEFT JOIN "rocpd_info_node{{uuid}}" N ON N.id = P.nid;
