-- Arguments of regions: the rows of rocpd_arg whose event has a region.
CREATE VIEW "region_args" AS
SELECT
    R.id AS "id",       -- region id, unique in its rank
    R.guid AS "guid",   -- GUID of the rank
    R.nid AS "nid",     -- node id
    P.pid AS "pid",     -- OS process id
    A.type AS "type",   -- declared type
    A.name AS "name",   -- parameter name
    A.value AS "value"  -- value as text
FROM
    "rocpd_arg{{uuid}}" A
    JOIN "rocpd_region{{uuid}}" R ON R.event_id = A.event_id
    LEFT JOIN "rocpd_info_process{{uuid}}" P ON P.id = R.pid;
