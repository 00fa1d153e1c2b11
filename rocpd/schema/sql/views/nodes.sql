-- Nodes: the machines or containers that processes ran on, one row per row of rocpd_info_node. Each rank has its own.
CREATE VIEW "nodes" AS
SELECT
    N.id AS "id",                       -- node id, the nid of other views
    N.guid AS "guid",                   -- GUID of the rank
    N.machine_id AS "machine_id",       -- machine id, equal for all containers of one machine
    N.hostname AS "hostname",           -- host name, often a container id
    N.system_name AS "system_name",     -- operating system
    N.release AS "system_release",      -- kernel release
    N.version AS "system_version",      -- kernel version
    N.hardware_name AS "hardware_name", -- machine hardware, such as x86_64
    N.domain_name AS "domain_name"      -- NIS domain
FROM
    "rocpd_info_node{{uuid}}" N;
