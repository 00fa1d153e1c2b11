-- HIP streams with their process, one row per row of rocpd_info_stream.
CREATE VIEW "streams" AS
SELECT
    S.id AS "id",     -- stream id, unique in its rank; 0 is the default stream
    S.guid AS "guid", -- GUID of the rank
    S.nid AS "nid",   -- node id
    P.pid AS "pid",   -- OS process id
    S.name AS "name"  -- stream name
FROM
    "rocpd_info_stream{{uuid}}" S
    LEFT JOIN "rocpd_info_process{{uuid}}" P ON P.id = S.pid;
