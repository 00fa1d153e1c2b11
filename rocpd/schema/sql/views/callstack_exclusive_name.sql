-- RPD's name (callStack_exclusive_name): time of each call, without the calls inside it, with function and text.
CREATE VIEW "callstack_exclusive_name" AS
SELECT
    V.id AS "parent_id",                   -- call, in rocpd_api
    V.apiName AS "apiName",                -- function; UserMarker for markers and operators of PyTorch
    V.args AS "args",                      -- text of a marker, name of an operator, or name=value | name=value
    T.cpu_self AS "cpu_time",             -- time on its thread [ns]
    T.gpu_self AS "gpu_time",             -- operations launched by it itself [ns]
    V.guid AS "guid"                       -- GUID of the rank
    {{rank_host_of_V}}
FROM
    "call_times" T
    JOIN "api" V ON V.guid = T.guid
    AND V.id = T.id;
