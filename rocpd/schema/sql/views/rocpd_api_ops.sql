-- RPD's name: the launching call of each operation: the innermost call with its stack id.
CREATE VIEW "rocpd_api_ops" AS
SELECT
    V.id AS "id",                          -- as op_id
    L.id AS "api_id",                      -- the call, in rocpd_api {integer}
    V.id AS "op_id",                       -- the operation, in rocpd_op
    V.guid AS "guid"                       -- GUID of the rank
    {{rank_host_of_V}}
FROM
    "rocpd_op" V
    JOIN (
        SELECT guid, stack_id, id, ROW_NUMBER() OVER (PARTITION BY guid, stack_id ORDER BY start DESC, "end", id DESC) AS place
        FROM "rocpd_api"
        WHERE stack_id > 0 AND start > 0
    ) L ON L.guid = V.guid
    AND L.stack_id = V.stack_id
    AND L.place = 1;
