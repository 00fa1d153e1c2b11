-- HSA queues with their process, one row per row of rocpd_info_queue.
CREATE VIEW "queues" AS
SELECT
    Q.id AS "id",     -- queue id, unique in its rank; 0 is the default queue
    Q.guid AS "guid", -- GUID of the rank
    Q.nid AS "nid",   -- node id
    P.pid AS "pid",   -- OS process id
    Q.name AS "name"  -- queue name
FROM
    "rocpd_info_queue{{uuid}}" Q
    LEFT JOIN "rocpd_info_process{{uuid}}" P ON P.id = Q.pid;
