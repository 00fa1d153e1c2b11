-- RPD's name: calls and markers, with their arguments as text. Arguments from 100 on, which an RPD trace keeps in
-- rocpd_kernelapi and rocpd_copyapi, are left out.
CREATE VIEW "api" AS
SELECT
    V.id AS "id",                          -- call, unique in its rank
    V.pid AS "pid",                        -- OS process id
    V.tid AS "tid",                        -- OS thread id
    V.start AS "start",                    -- start [ns]
    V."end" AS "end",                      -- end [ns]
    V.apiName AS "apiName",                -- function; UserMarker for markers and operators of PyTorch
    COALESCE(V.text, A.args, '') AS "args", -- text of a marker, name of an operator, or name=value | name=value {text}
    V.guid AS "guid"                       -- GUID of the rank
    {{rank_host_of_V}}
FROM
    "rocpd_api" V
    LEFT JOIN (
        SELECT guid, event_id, GROUP_CONCAT(name || '=' || COALESCE(value, ''), ' | ') AS args
        FROM (SELECT guid, event_id, name, value FROM "rocpd_arg" WHERE position < 100 ORDER BY guid, event_id, position)
        GROUP BY guid, event_id
    ) A ON A.guid = V.guid
    AND A.event_id = V.event_id;
